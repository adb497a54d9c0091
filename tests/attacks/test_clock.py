"""Somebody who knows when a person searched."""

from __future__ import annotations

import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.plain_attacks import plain_likeliest
from tests.support.releases import MONDAY, released, timed_log

from queryveil.attacks._likelihood import BY_ACCIDENT
from queryveil.attacks.attacker import AuxiliaryData, Exposure
from queryveil.attacks.clock import Clock, ClockEquals
from queryveil.data import QueryLog
from queryveil.errors import BadParameter
from queryveil.methods import Clump, Kdelta, Km, Pseudonymise, Swap
from queryveil.pairing import Pair
from queryveil.release import ColumnPolicy, Ids, TimeDetail
from queryveil.synthesis import synthesize
from queryveil.testing.logs import tiny_log

NOTHING = AuxiliaryData()


def attacked(log: QueryLog, release: QueryLog, *, time: TimeDetail = TimeDetail.KEEP, n_known: int = 5) -> Exposure:
    pair = Pair(log, release=released(release, time=time))
    return Clock(n_known=n_known, seed=1).attack(pair, auxiliary=NOTHING)


@pytest.fixture(scope="module")
def made() -> QueryLog:
    return synthesize(users=3000, seed=3).log


def test_exact_times_give_nearly_everybody_away_and_coarser_ones_fewer(made: QueryLog) -> None:
    shares = {}
    for time in (TimeDetail.KEEP, TimeDetail.HOUR, TimeDetail.DAY):
        release = Pseudonymise(columns=ColumnPolicy(ids=Ids.KEEP, time=time), seed=1).anonymize(made)
        exposure = Clock(seed=1).attack(Pair(made, release=release), auxiliary=NOTHING)
        assert exposure.n_targets == 1000
        assert exposure.n_by_chance == pytest.approx(1000 / 3000)
        shares[time] = exposure.share
        assert exposure.beats_chance
    assert shares[TimeDetail.KEEP] > 0.9
    assert shares[TimeDetail.DAY] < shares[TimeDetail.HOUR] < shares[TimeDetail.KEEP]


def test_exact_times_undo_a_release_whatever_it_promises_of_terms(made: QueryLog) -> None:
    columns = ColumnPolicy(ids=Ids.KEEP, time=TimeDetail.KEEP)
    pair = Pair(made, release=Km(k=5, m=2, columns=columns, seed=1).anonymize(made))
    assert Clock(seed=1).attack(pair, auxiliary=NOTHING).share > 0.5


@pytest.mark.slow
def test_days_tell_which_id_is_whose_even_where_queries_changed_hands(made: QueryLog) -> None:
    # Nothing is promised of times; a release without them is what helps.
    swapped, without = (
        Pair(made, release=Swap(k=10, columns=ColumnPolicy(ids=Ids.KEEP, time=time), seed=1).anonymize(made))
        for time in (TimeDetail.DAY, TimeDetail.DROP)
    )
    assert Clock(seed=1).attack(swapped, auxiliary=NOTHING).beats_chance
    assert Clock(seed=1).skip_reason(without, auxiliary=NOTHING) == "the release has no times"


def test_known_times_are_rounded_as_those_of_the_release_are() -> None:
    log = timed_log([("u1", "a", 1.5), ("u1", "b", 26), ("u2", "c", 2), ("u3", "d", 25)])
    hours = timed_log([("u1", "a", 1), ("u1", "b", 26), ("u2", "c", 2), ("u3", "d", 25)])
    assert attacked(log, hours, time=TimeDetail.HOUR).n_found == 3
    assert attacked(log, hours, time=TimeDetail.KEEP).n_found == 3
    days = timed_log([("u1", "a", 0), ("u1", "b", 24), ("u2", "c", 0), ("u3", "d", 24)])
    # u1 was there on both days, and so was nobody else; of those who were there on one, u1 was there on the other too.
    assert attacked(log, days, time=TimeDetail.DAY).n_found == 3


def test_times_before_1970_are_rounded_down_too() -> None:
    hours_back = -24 * 365.25 * 60
    log = timed_log([("u1", "a", hours_back + 1), ("u2", "b", hours_back + 30)])
    release = Pseudonymise(columns=ColumnPolicy(ids=Ids.KEEP, time=TimeDetail.DAY), seed=1).anonymize(log)
    assert release.log.frame["time"].max() < MONDAY.replace(year=1970)  # type: ignore[operator]
    assert Clock(seed=1).attack(Pair(log, release=release), auxiliary=NOTHING).n_found == 2


def test_of_two_who_were_there_at_all_known_times_one_is_drawn() -> None:
    log = timed_log([(f"u{i}", "a", i // 2) for i in range(400)])
    exposure = attacked(log, log)
    assert exposure.n_targets == 400
    assert 150 < exposure.n_found < 250


def test_whoever_searched_more_at_the_known_times_and_less_at_others_is_likelier() -> None:
    log = timed_log([("u1", "a", 1), ("u1", "b", 2), ("u1", "c", 3), ("u2", "d", 4), ("u2", "e", 30), ("u3", "f", 5)])
    days = timed_log([("u1", "a", 0)] * 3 + [("u2", "d", 0), ("u2", "e", 24), ("u4", "g", 0), ("u4", "h", 48)])
    # On the first day u1 has three rows of three, u2 and u4 one of two; u2 alone was there on the second.
    exposure = attacked(log.with_frame(log.frame.filter(log.frame["user"] != "u3")), days, time=TimeDetail.DAY)
    assert (exposure.n_targets, exposure.n_found) == (2, 2)


def test_people_without_times_are_not_sought_and_rows_without_times_are_not_seen() -> None:
    log = timed_log([("u1", "a", 1), ("u1", "b", None), ("u2", "c", None), ("u3", "d", 3)])
    exposure = attacked(log, log)
    assert (exposure.n_targets, exposure.n_found) == (2, 2)


def test_people_who_are_gone_are_not_found() -> None:
    log = timed_log([("u1", "a", 1), ("u2", "b", 2)])
    exposure = attacked(log, timed_log([("u2", "b", 2)]))
    assert (exposure.n_targets, exposure.n_found, exposure.n_by_chance) == (2, 1, 1)
    nothing = attacked(log, timed_log([]))
    assert (nothing.n_targets, nothing.n_found, nothing.n_by_chance) == (2, 0, 0)


def test_a_rare_moment_counts_more_than_a_common_one() -> None:
    crowd = [(f"v{i}", "x", 5.0) for i in range(20)]
    log = timed_log([("u1", "a", 1), ("u1", "b", 5), ("u2", "c", 2), *crowd])
    # Of u1's two times the rare one leads to u1 alone, though all others have the common one.
    after = timed_log([("u1", "a", 1), ("u2", "c", 2), *crowd])
    assert attacked(log, after).n_found == 2


def test_a_release_or_a_log_without_times_is_not_attacked(made: QueryLog) -> None:
    log = timed_log([("u1", "a", 1)])
    without = log.with_frame(log.frame.drop("time"))
    no_release = Pair(log, release=released(without))
    assert Clock().skip_reason(no_release, auxiliary=NOTHING) == "the release has no times"
    dropped = Pair(log, release=released(log, time=TimeDetail.DROP))
    assert Clock().skip_reason(dropped, auxiliary=NOTHING) == "the release has no times"
    assert Clock().skip_reason(Pair.pseudonymised(tiny_log()), auxiliary=NOTHING) == "the release has no times"
    no_log = Pair(without, release=released(log))
    assert Clock().skip_reason(no_log, auxiliary=NOTHING) == "the log has no times"
    nulls = timed_log([("u1", "a", None)])
    assert Clock().skip_reason(Pair.pseudonymised(nulls), auxiliary=NOTHING) == "the log has no times"
    bags = Pair(made, release=Clump(k=5, seed=1).anonymize(made))
    assert Clock().skip_reason(bags, auxiliary=NOTHING) == "the release has no times"


ROWS = st.lists(
    st.tuples(st.sampled_from(["u1", "u2", "u3", "u4"]), st.just("a"), st.none() | st.integers(0, 60)), max_size=12
)


@examples(40)
@drawn(before=ROWS, after=ROWS, time=st.sampled_from([TimeDetail.DAY, TimeDetail.HOUR, TimeDetail.KEEP]))
def test_those_are_found_whom_the_plain_one_finds(
    before: list[tuple[str, str, float | None]], after: list[tuple[str, str, float | None]], time: TimeDetail
) -> None:
    known = {
        user: [hours for other, _, hours in before if other == user and hours is not None] for user, _, _ in before
    }
    after = [row for row in after if row[0] in known]
    hours_each = {TimeDetail.DAY: 24}.get(time, 1)
    candidates = list(dict.fromkeys(user for user, _, _ in after))
    seen = [
        [str(hours // hours_each) for other, _, hours in after if other == user and hours is not None]
        for user in candidates
    ]
    least, most = 0, 0
    for user, times in known.items():
        likeliest = plain_likeliest([str(hours // hours_each) for hours in times], seen, by_accident=BY_ACCIDENT)
        names = [candidates[number] for number in likeliest]
        least, most = least + (names == [user]), most + (user in names)
    pair = Pair(timed_log(before), release=released(timed_log(after), time=time))
    attacker = Clock(n_known=100, seed=1)
    if attacker.skip_reason(pair, auxiliary=NOTHING) is None:
        exposure = attacker.attack(pair, auxiliary=NOTHING)
        assert exposure.n_targets == sum(map(bool, known.values()))
        assert least <= exposure.n_found <= most


@pytest.mark.parametrize("name", ["n_known", "n_targets"])
def test_nothing_known_and_nobody_sought_are_refused(name: str) -> None:
    with pytest.raises(BadParameter, match=name):
        Clock(**{name: 0})


def among_equals(log: QueryLog, release: QueryLog, *, time: TimeDetail = TimeDetail.DAY) -> Exposure:
    pair = Pair(log, release=released(release, time=time))
    return ClockEquals(seed=1).attack(pair, auxiliary=NOTHING)


@pytest.mark.slow
def test_a_known_day_tells_the_equals_of_kdelta_apart(made: QueryLog) -> None:
    columns = ColumnPolicy(ids=Ids.KEEP, time=TimeDetail.DAY)
    pair = Pair(made, release=Kdelta(k=5, same_texts=True, columns=columns, seed=1).anonymize(made))
    exposure = ClockEquals(seed=1).attack(pair, auxiliary=NOTHING)
    assert exposure.share > 0.6
    assert exposure.chance_share < 0.25


def test_of_equals_the_one_with_most_of_the_rows_on_the_known_day_is_named() -> None:
    rows = [("u1", "a", 1.0), ("u2", "a", 30.0), ("u3", "a", 1.0), ("u3", "a", 50.0), ("u4", "b", 1.0)]
    log = timed_log([row for row in rows if row[2] != 50.0])
    exposure = among_equals(log, timed_log(rows))
    # u1 has all rows on the first day, u3 half of them, and u4 has no equals; u3 is taken for u1.
    assert (exposure.n_targets, exposure.n_found) == (3, 2)
    assert exposure.n_by_chance == pytest.approx(1)


def test_equals_with_the_same_days_are_told_apart_by_chance_alone() -> None:
    log = timed_log([(f"u{i:03}", "a", 24.0 * (i % 5)) for i in range(500)])
    shared = timed_log([(f"u{i:03}", "a", 0.0) for i in range(500)])
    exposure = among_equals(log, shared)
    assert exposure.n_targets == 500
    assert exposure.n_by_chance == pytest.approx(1)
    assert not exposure.beats_chance


def test_a_release_without_equals_is_not_attacked_by_a_day() -> None:
    log = timed_log([("u1", "a", 1), ("u2", "b", 2)])
    reason = ClockEquals().skip_reason(Pair(log, release=released(log)), auxiliary=NOTHING)
    assert reason == "no two users of the release have the same queries"
    dropped = Pair(log, release=released(log, time=TimeDetail.DROP))
    assert ClockEquals().skip_reason(dropped, auxiliary=NOTHING) == "the release has no times"


EQUAL_ROWS = st.lists(
    st.tuples(st.sampled_from(["u1", "u2", "u3"]), st.sampled_from("ab"), st.none() | st.integers(0, 60)), max_size=10
)


@examples(60)
@drawn(rows=EQUAL_ROWS)
def test_the_equals_named_are_those_of_the_plain_one(rows: list[tuple[str, str, float | None]]) -> None:
    days = {user: [h // 24 for other, _, h in rows if other == user and h is not None] for user, _, _ in rows}
    asked = {user: {query for other, query, _ in rows if other == user} for user in days}
    least, most, by_chance, n_targets = 0, 0, 0.0, 0
    for user, own in days.items():
        equals = [other for other in days if asked[other] == asked[user]]
        if not own or len(equals) < 2:
            continue
        # One of the person's days is drawn: found for sure if any day leads to the person alone.
        outcomes = []
        for day in own:
            shares = {other: days[other].count(day) / max(1, len(days[other])) for other in equals}
            best = [other for other in equals if shares[other] == max(shares.values())]
            outcomes.append((best == [user], user in best))
        least, most = least + all(sure for sure, _ in outcomes), most + any(may for _, may in outcomes)
        by_chance, n_targets = by_chance + 1 / len(equals), n_targets + 1
    log = timed_log(rows)
    pair = Pair(log, release=released(log))
    if ClockEquals().skip_reason(pair, auxiliary=NOTHING) is None:
        exposure = ClockEquals(seed=1).attack(pair, auxiliary=NOTHING)
        assert exposure.n_targets == n_targets
        assert exposure.n_by_chance == pytest.approx(by_chance)
        assert least <= exposure.n_found <= most
    else:
        assert n_targets == 0
