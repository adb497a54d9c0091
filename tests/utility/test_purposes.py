"""Ranking, completions, spelling, related queries, trends and interests, beside their definitions."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.plain_utility import (
    Row,
    plain_completions,
    plain_interests,
    plain_one_edit,
    plain_ranking,
    plain_related,
    plain_spearman,
    plain_spelling,
)
from tests.support.releases import MONDAY, released, released_tallies, timed_log

from queryveil.data import EVENTS_SCHEMA, QueryLog
from queryveil.errors import BadInput
from queryveil.methods import Plink
from queryveil.pairing import Pair, pseudonymised
from queryveil.release import Ids, TimeDetail
from queryveil.synthesis import synthesize, term_values
from queryveil.testing import log_of
from queryveil.testing.strategies import clicked_logs
from queryveil.text.tokens import join_terms
from queryveil.utility import Measures, measure
from queryveil.utility.measuring import Reference, run
from queryveil.utility.purposes import PURPOSES
from queryveil.utility.ranking import Ranking
from queryveil.utility.spelling import Respellings, neighbours
from queryveil.utility.suggestions import reciprocal_rank, related
from queryveil.utility.views import View

HOURS = [None, 0.0, 0.1, 0.4, 0.8, 5.0, 24.0, 24.3, 170.0]


def value(found: Measures, name: str) -> float:
    score = found.named(name)
    assert score is not None, name
    return score.value


def view_of(before: QueryLog, after: QueryLog | None = None, *, time: TimeDetail | None = None) -> View:
    return View.of(Pair(before, release=pseudonymised(before) if after is None else released(after, time=time)))


def clicks_of(log: QueryLog) -> Counter[tuple[str, str]]:
    queries = join_terms(log.frame["query"])
    return Counter((query, url) for query, url in zip(queries, log.frame["url"], strict=True) if query and url)


@examples(60)
@given(before=clicked_logs(), after=clicked_logs(), asked=clicked_logs())
def test_ranking_is_that_of_the_definition(before: QueryLog, after: QueryLog, asked: QueryLog) -> None:
    judged = view_of(asked).clicks
    exam = Ranking.of(view_of(before), judged=judged, seed=0)
    if exam is None:
        assert not clicks_of(before) or not clicks_of(asked)
        return
    pages = sorted({url for _, url in clicks_of(before) + clicks_of(asked)})
    there = Counter({pair: n for pair, n in clicks_of(after).items() if pair[1] in pages})
    for clicks, found in (
        (clicks_of(before), exam.with_log),
        (Counter[tuple[str, str]](), exam.without),
        (there, exam.quality(view_of(before, after).clicks)),
    ):
        expected = plain_ranking(clicks, judged=clicks_of(asked), pages=pages)
        assert (found.ndcg, found.likelihood) == pytest.approx(expected)


def test_rarer_words_and_the_words_of_addresses_count_in_ranking() -> None:
    pages = {
        "elm tree": "www.wood.example",
        "oak tree": "www.leaf.example",
        "elm": "www.seed.example",
        "tree": "www.elm.example",
    }
    rows = {"user": list("1234"), "query": list(pages), "url": list(pages.values())}
    log = QueryLog.from_frame(rows)
    public = QueryLog.from_frame(
        {"user": ["9"] * 2, "query": ["elm oak tree", "tree wood"], "url": list(pages.values())[:2]}
    )
    exam = Ranking.of(view_of(log), judged=view_of(public).clicks, seed=0)
    assert exam is not None
    for clicks, found in ((clicks_of(log), exam.with_log), (Counter[tuple[str, str]](), exam.without)):
        expected = plain_ranking(clicks, judged=clicks_of(public), pages=sorted(pages.values()))
        assert (found.ndcg, found.likelihood) == pytest.approx(expected)


def test_of_completions_asked_equally_often_each_has_the_last_place() -> None:
    log = log_of({"u1": ["jam jar", "jam pot", "jam tart", "jam tart", "jam"]})
    typed = pl.DataFrame({"query": ["jam pot", "jam tart", "jam lid"], "count": [1, 1, 1]})
    assert reciprocal_rank(view_of(log), typed=typed) == pytest.approx((1 / 3 + 1 + 0) / 3)


@examples(60)
@given(before=clicked_logs(), after=clicked_logs(), asked=clicked_logs())
def test_completions_are_those_of_the_definition(before: QueryLog, after: QueryLog, asked: QueryLog) -> None:
    typed = Counter(query for query in join_terms(asked.frame["query"]) if query)
    frame = pl.DataFrame(
        {"query": list(typed), "count": list(typed.values())}, schema={"query": pl.String, "count": pl.Int64}
    )
    found = reciprocal_rank(view_of(before, after), typed=frame.filter(pl.col("query").str.len_chars() > 3))
    counted = Counter(query for query in join_terms(after.frame["query"]) if query)
    assert found == pytest.approx(plain_completions(counted, typed=typed))


@examples(60)
@given(before=clicked_logs(), after=clicked_logs(), by_day=st.booleans())
def test_related_queries_are_those_of_the_definition(before: QueryLog, after: QueryLog, by_day: bool) -> None:
    if not by_day:
        after = QueryLog(frame=after.frame.drop("time"))
    elif not after.n_rows:
        return
    view = view_of(before, after, time=TimeDetail.DAY if by_day else TimeDetail.DROP)
    found = related(view, is_common=view.n_asked > 0)
    texts = view.queries.to_list()
    queries = join_terms(after.frame["query"])
    times = after.frame["time"] if by_day else [None] * after.n_rows
    rows = list(zip(after.frame["user"], queries, times, strict=True))
    for query in {query for query in queries if query}:
        strength = plain_related(rows, clicks_of(after), query=query, by_day=by_day)
        mine = found.filter(pl.col("query") == texts.index(query))["next"]
        # There are fewer than ten queries in all, so that whatever is related is among them, the most related first.
        assert [strength[texts[other]] for other in mine] == sorted(strength.values(), reverse=True)
        assert {texts[other] for other in mine} == set(strength)


TYPOS = (
    "kestrel",
    "kestral",
    "kestrels",
    "ketsrel",
    "lantern",
    "lantren",
    "win 7 pc",
    "win 8 pc",
    "elm",
    "élan",
    "elan",
)
ROWS = st.lists(
    st.tuples(st.sampled_from(["u1", "u2", "u3"]), st.sampled_from(TYPOS), st.sampled_from(HOURS)), max_size=30
)


def plain(rows: list[tuple[str, str, float | None]]) -> list[Row]:
    return [(u, q, None if hours is None else MONDAY + timedelta(hours=hours)) for u, q, hours in rows]


@pytest.mark.parametrize(
    ("way", "time"), [("exact", TimeDetail.KEEP), ("day", TimeDetail.DAY), ("user", TimeDetail.DROP)]
)
@examples(60)
@given(before=ROWS, after=ROWS)
def test_respellings_are_those_of_the_definition(
    way: str, time: TimeDetail, before: list[tuple[str, str, float | None]], after: list[tuple[str, str, float | None]]
) -> None:
    # A column of times that is empty is no times at all, which is another way.
    if any(all(hours is None for _, _, hours in rows) for rows in (before, after)):
        return
    logs = [timed_log(rows) for rows in (before, after)]
    exam = Respellings.of(view_of(logs[0]))
    shown = logs[1] if way != "user" else QueryLog(frame=logs[1].frame.drop("time"))
    expected = plain_spelling(plain(before), plain(after), way=way)
    assert (exam is None) == (expected is None)
    if exam is not None and expected is not None:
        found = value(exam.measure(view_of(logs[0], shown, time=time)), "spelling_kept")
        # Of two guesses that are asked equally often, one is taken.
        assert found >= expected - 1e-9
        if len(set(Counter(query for _, query, _ in after).values())) == len({query for _, query, _ in after}):
            assert found == pytest.approx(expected)


@pytest.mark.parametrize("one", TYPOS)
def test_one_edit_is_a_letter_too_many_missing_wrong_or_two_exchanged(one: str) -> None:
    view = view_of(log_of({"u1": list(TYPOS)}))
    there = view.n_asked > 0
    pairs = neighbours(view.queries, of=there, among=there)
    texts = view.queries.to_list()
    found = {texts[other] for other in pairs.filter(pl.col("query") == texts.index(one))["next"]}
    assert found == {other for other in TYPOS if min(len(one), len(other)) >= 4 and plain_one_edit(one, other)}


def test_a_correction_is_learned_from_counts_where_nobody_makes_it_in_the_release() -> None:
    log = timed_log([("u1", "kestrle", 0), ("u1", "kestrel", 0.1), ("u2", "kestrel", 0), ("u3", "lantern", 0)])
    for release, expected in ((["kestrel", "lantern"], 1), (["lantern"], 0), (["kestrel", "kestrle"], 0)):
        assert value(measure(log, released(log_of({"u9": release}), time=TimeDetail.DROP)), "spelling_kept") == expected
    assert value(measure(log, released_tallies({"kestrel": 5})), "spelling_kept") == 1


def test_trends_are_the_mean_correlation_of_each_week() -> None:
    weeks = {"elm": (9, 3), "oak": (6, 6), "fir": (3, 9)}
    rows = [(f"u{i}", query, 168.0 * week) for query, ns in weeks.items() for week in (0, 1) for i in range(ns[week])]
    log = timed_log(rows)
    swapped = timed_log([(user, query, 168.0 - hours) for user, query, hours in rows])
    same_order = timed_log([row for row in rows if row[0] in {f"u{i}" for i in range(7)}])
    assert value(measure(log, released(log, time=TimeDetail.DAY)), "trends_kept") == 1
    assert value(measure(log, released(swapped, time=TimeDetail.DAY)), "trends_kept") == 0
    half = plain_spearman([9, 6, 3], [7, 6, 3])
    assert value(measure(log, released(same_order, time=TimeDetail.DAY)), "trends_kept") == pytest.approx(half)
    without = measure(log, released(log_of({"u1": ["elm"]}), time=TimeDetail.DROP))
    assert value(without, "trends_kept") == 0
    assert any("no times" in text for text in without.notes)


SPORT, ART = "european soccer barcelona players", "arctic monkeys songs"


def fans() -> dict[str, list[str]]:
    return {f"u{i}": [f"{(SPORT, ART)[i % 2]} {word}" for word in ("one", "two", "three")] for i in range(8)}


def test_a_history_that_says_what_is_asked_next_is_worth_more_than_none() -> None:
    log = log_of(fans())
    kept = value(measure(log, released(log)), "interests_kept")
    strangers = log_of({f"u{i}": queries for i, queries in enumerate([*fans().values()][::-1])})
    some = log_of({user: queries for user, queries in fans().items() if user in ("u0", "u1")})
    found = [value(measure(log, released(each)), "interests_kept") for each in (strangers, some, log_of({"u1": []}))]
    assert kept == 1
    assert found == [0, pytest.approx(2 / 8), 0]


KINDS = {SPORT: "sport", ART: "art", "tennis titles": "sport", "guitar songs": "art"}
ASKED = st.lists(st.tuples(st.sampled_from(["u1", "u2", "u3"]), st.sampled_from([*KINDS, ""])), max_size=20)


@examples(60)
@given(before=ASKED, after=ASKED)
def test_interests_are_those_of_the_definition(before: list[tuple[str, str]], after: list[tuple[str, str]]) -> None:
    if {user for user, _ in after} - {user for user, _ in before}:
        return
    logs = [
        timed_log([(user, query, float(hour)) for hour, (user, query) in enumerate(rows)]) for rows in (before, after)
    ]
    score = measure(logs[0], released(logs[1])).named("interests_kept") if after else None
    expected = plain_interests(before, after, category=KINDS) if after else None
    assert (score.value if score else None) == (expected if expected is None else pytest.approx(expected))


def test_each_id_is_a_history_of_its_own() -> None:
    log = log_of(fans())
    shorter = log_of({user: queries[:2] for user, queries in fans().items()})
    assert 0 < value(measure(log, released(shorter)), "interests_kept") < 1


def test_where_histories_say_nothing_interests_are_left_out() -> None:
    log = log_of({f"u{i}": [SPORT, ART] for i in range(4)})
    found = measure(log, released(log))
    assert found.named("interests_kept") is None
    assert any(text.startswith("interests are left out") for text in found.notes)


@pytest.mark.slow
def test_the_profile_of_a_group_is_the_history_of_its_members() -> None:
    likes = (["tennis soccer football", "tennis", "soccer"], ["guitar piano music", "guitar", "piano"])
    log = log_of({f"u{i}": likes[i % 2] for i in range(8)})
    grouping = Plink(p=0.6, seed=1).group(log)
    groups = grouping.membership["group"]
    others = grouping.membership.with_columns(group=groups.shift(1).fill_null(groups.last()))
    own, wrong, without = (
        measure(log, grouping.release, membership=who) for who in (grouping.membership, others, None)
    )
    assert value(own, "interests_kept") > 0.5
    assert value(wrong, "interests_kept") == 0
    assert without.named("interests_kept") is None


def test_other_peoples_clicks_are_judged_where_they_are_given() -> None:
    rows = {
        "user": ["1", "2", "3"],
        "query": ["elm tree", "elm wood", "oak"],
        "url": ["a.example", "a.example", "b.example"],
    }
    log, public = QueryLog.from_frame(rows), QueryLog.from_frame(rows | {"user": ["7", "8", "9"]})
    inside, outside = measure(log, pseudonymised(log)), measure(log, pseudonymised(log), public=public)
    assert value(outside, "ranking_kept") == value(outside, "click_likelihood_kept") == 1
    assert any("--public LOG" in text for text in inside.notes)
    assert not any("--public LOG" in text for text in outside.notes)
    bare = measure(log, released(QueryLog(frame=log.frame.drop("url"))), public=public)
    assert value(bare, "ranking_kept") == value(bare, "click_likelihood_kept") == 0
    assert any("no clicks" in text for text in bare.notes)


def test_counts_of_clicks_are_as_good_as_the_clicks() -> None:
    rows = {"user": ["1", "2", "3"], "query": ["elm", "elm", "oak"], "url": ["a.example", "a.example", "b.example"]}
    log = QueryLog.from_frame(rows)
    release = released_tallies({"elm": 2, "oak": 1}, clicks={("elm", "a.example"): 2, ("oak", "b.example"): 1})
    found = measure(log, release, public=log)
    assert (value(found, "ranking_kept"), value(found, "click_likelihood_kept")) == (1, 1)


def test_clicks_that_are_events_count_as_those_in_rows() -> None:
    clicks = {"search": ["1", "2", "3", "3"], "action": ["click"] * 3 + ["impression"], "object": ["a", "a", "b", "c"]}
    missing = [pl.lit(None, kind).alias(name) for name, kind in EVENTS_SCHEMA.items() if name not in clicks]
    frame = pl.DataFrame({"user": ["1", "2", "3"], "query": ["elm", "elm", "oak"], "search": ["1", "2", "3"]})
    log = QueryLog(frame=frame, events=pl.DataFrame(clicks).with_columns(missing).select(EVENTS_SCHEMA.keys()))
    clicked = view_of(log).clicks
    assert clicked is not None
    assert clicked.rows() == [("elm", "a", 2), ("oak", "b", 1)]


def test_what_the_original_gives_is_computed_once_and_gives_the_same() -> None:
    log = log_of(fans())
    reference, release = Reference(log=log), released(log_of({"u0": fans()["u0"]}))
    assert run(Pair(log, release=release), reference=reference) == measure(log, release)
    assert reference.related is reference.related
    with pytest.raises(BadInput, match="the log that is beside the release"):
        run(Pair(log_of({"u1": ["elm"]}), release=release), reference=reference)


def test_the_same_seed_draws_the_same_and_every_purpose_has_its_measure() -> None:
    log = synthesize(users=300, seed=3).log
    release = released(log, ids=Ids.KEEP)
    once, again = (measure(log, release, values=term_values(log, seed=3), seed=5) for _ in range(2))
    assert once == again
    assert {purpose.measure for purpose in PURPOSES.values()} <= {score.name for score in once}
