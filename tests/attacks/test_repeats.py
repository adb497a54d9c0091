"""Whoever sees swapped rows in order, and the same query again and again; and whoever names the most active id."""

from __future__ import annotations

from datetime import datetime, timedelta

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.plain_rebuilding import plain_chance, plain_nearest

from queryveil.attacks import AuxiliaryData
from queryveil.attacks._likelihood import BY_ACCIDENT
from queryveil.attacks.rebuild import ActiveId
from queryveil.attacks.repeats import Repeats, guess_nearest, ordered, targets_of
from queryveil.attacks.swapped import Truth, truth_of
from queryveil.data import QueryLog
from queryveil.data.rows import Rows
from queryveil.guarantees import SwapAnonymity
from queryveil.methods import Km, Swap
from queryveil.pairing import Pair
from queryveil.release import ColumnPolicy, Ids, Release, TimeDetail
from queryveil.synthesis import synthesize
from queryveil.testing.logs import log_of

NOTHING = AuxiliaryData()
MONDAY = datetime(2024, 3, 4)


def swapped(log: QueryLog, *, k: int, distinct: int | None = None, time: TimeDetail = TimeDetail.KEEP) -> Pair:
    columns = ColumnPolicy(ids=Ids.KEEP, time=time)
    return Pair(log, release=Swap(k=k, l=distinct, repeats="all", columns=columns, seed=1).anonymize(log))


def as_swapped(original: list[tuple[str, str]], rows: list[tuple[str, str]], moments: list[int]) -> Pair:
    """Return rows as a release of swap, at so many hours."""
    times = [MONDAY + timedelta(hours=moment) for moment in moments]
    frame = pl.DataFrame(rows, schema={"user": pl.String, "query": pl.String}, orient="row").with_columns(
        time=pl.Series(times, dtype=pl.Datetime("us"))
    )
    log = QueryLog.from_frame(pl.DataFrame(original, schema={"user": pl.String, "query": pl.String}, orient="row"))
    made = Swap(k=2, columns=ColumnPolicy(ids=Ids.KEEP, time=TimeDetail.KEEP)).anonymize(log).manifest
    return Pair(log, release=Release(data=QueryLog(frame=frame), manifest=made))


@pytest.fixture(scope="module")
def made() -> QueryLog:
    return synthesize(users=600, like="aol", seed=3).log


@pytest.mark.slow
def test_a_query_that_comes_again_and_again_leads_to_who_asks_it_and_large_pools_help(made: QueryLog) -> None:
    found = {}
    for k, distinct in ((10, 2), (10, None), (50, None)):
        exposure = Repeats(k=k, seed=1).attack(swapped(made, k=k, distinct=distinct), auxiliary=NOTHING)
        assert exposure.surest is not None
        found[k, distinct] = exposure.share
        assert exposure.beats_chance
    assert found[10, 2] > 0.7
    assert found[10, 2] > found[10, None] > found[50, None] + 0.1


@pytest.mark.slow
def test_days_tell_the_order_nearly_as_well(made: QueryLog) -> None:
    by_day = Repeats(seed=1).attack(swapped(made, k=10, time=TimeDetail.DAY), auxiliary=NOTHING)
    assert by_day.beats_chance
    assert by_day.surest is not None
    assert by_day.surest.share > by_day.share


@pytest.mark.slow
def test_a_release_whose_ids_and_times_mean_nothing_leads_to_nobody(made: QueryLog) -> None:
    pair = swapped(made, k=10)
    frame = pair.release.log.frame
    anywhere = frame.with_columns(time=frame["time"].shuffle(seed=4), user=frame["user"].shuffle(seed=5))
    mixed = Pair(made, release=Release(data=made.with_frame(anywhere), manifest=pair.release.manifest))
    exposure = Repeats(seed=1).attack(mixed, auxiliary=NOTHING)
    assert exposure.n_targets > 100
    assert exposure.interval[0] <= exposure.chance_share


TEXTS = ("soccer cup", "tennis rules", "hockey", "soccer ball")
ROWS = st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from(TEXTS), st.integers(0, 6)), min_size=1, max_size=14)


@examples(60)
@given(rows=ROWS, k=st.integers(2, 5))
def test_the_likeliest_is_that_of_the_plain_one(rows: list[tuple[str, str, int]], k: int) -> None:
    pair = as_swapped(
        [("a", "hockey"), ("b", "hockey"), ("c", "elm"), ("d", "elm")],
        [row[:2] for row in rows],
        [row[2] for row in rows],
    )
    encoded = truth_of(pair).released
    category = np.zeros(len(rows), np.int32)
    order = ordered(pair, category)
    for code, text in enumerate(encoded.texts):
        places = np.flatnonzero(encoded.text[order.row] == code)
        releases = Rows(np.array([0, len(places)]), places)
        guessed, confidence = guess_nearest(releases, order, pair.n_candidates, float(k), farthest=1000)
        plain = plain_nearest(
            [(user, other, 0) for user, other, _ in rows], [row[2] for row in rows], text, k=k, by_accident=BY_ACCIDENT
        )
        if not plain:
            assert guessed.tolist() == [-1]
            continue
        assert confidence[0] == pytest.approx(max(plain.values()))
        assert plain[pair.candidates[int(guessed[0])]] == pytest.approx(max(plain.values()))


def test_targets_asked_a_text_alone_and_five_times() -> None:
    asked = [("a", "hockey")] * 6 + [("b", "elm")] * 9 + [("c", "elm")] + [("d", "tennis rules")] * 4
    asked += [("e", "soccer cup")] * 5 + [("e", "Soccer  ball")] * 7
    truth = truth_of(as_swapped(asked, [("a", "soccer ball"), ("e", "hockey"), ("d", "elm")], [1, 2, 3]))
    users, texts = targets_of(truth)
    assert [truth.released.users[int(user)] for user in users] == ["a", "e"]
    assert [truth.released.texts[int(text)] for text in texts] == ["hockey", "soccer ball"]


def test_a_text_that_is_not_released_leads_to_nobody() -> None:
    asked = [("a", "hockey")] * 6 + [("b", "soccer cup")] * 5
    exposure = Repeats(k=2, seed=1).attack(
        as_swapped(asked, [("a", "soccer cup"), ("b", "tennis rules")], [1, 2]), auxiliary=NOTHING
    )
    assert (exposure.n_targets, exposure.n_found) == (2, 1)
    empty = Repeats(k=2, seed=1).attack(as_swapped(asked, [], []), auxiliary=NOTHING)
    assert (empty.n_targets, empty.n_found) == (2, 0)


def test_it_needs_a_swapped_log_an_order_and_a_query_that_is_repeated(made: QueryLog) -> None:
    few = log_of({"u1": ["red wine"], "u2": ["elm"], "u3": ["elm"]})
    assert Repeats().skip_reason(Pair(few, release=Km(k=2, m=1).anonymize(few)), auxiliary=NOTHING) == (
        "no queries changed hands"
    )
    without = swapped(made, k=10, time=TimeDetail.DROP)
    assert Repeats().skip_reason(without, auxiliary=NOTHING) == "the release tells no order of its rows"
    rows = as_swapped([("a", "elm")], [("a", "elm")], [1])
    assert Repeats().skip_reason(rows, auxiliary=NOTHING) == (
        "nobody asked a query 5 times that is this person's alone"
    )


def test_a_stream_stands_in_the_order_of_release(made: QueryLog) -> None:
    pair = as_swapped([("a", "hockey"), ("b", "elm")], [("a", "elm"), ("b", "hockey"), ("a", "hockey")], [3, 2, 1])
    assert ordered(pair, np.zeros(3, np.int32)).row.tolist() == [2, 1, 0]
    from msgspec.structs import replace

    promise = SwapAnonymity(k=2, l=2, remembered=100)
    stream = Release(data=pair.release.log, manifest=replace(pair.release.manifest, promise=promise))
    assert ordered(Pair(pair.log, release=stream), np.zeros(3, np.int32)).row.tolist() == [0, 1, 2]


@pytest.mark.slow
def test_the_most_active_id_of_a_category_asked_more_of_it_than_pools_tell(made: QueryLog) -> None:
    exposure = ActiveId().attack(swapped(made, k=10, time=TimeDetail.DAY), auxiliary=NOTHING)
    assert exposure.what == "rows"
    assert exposure.beats_chance


def test_the_most_active_id_is_named_for_every_row_of_the_category() -> None:
    asked = [("a", "soccer cup"), ("a", "hockey"), ("b", "tennis rules"), ("b", "piano song")]
    rows = [("a", "tennis rules"), ("b", "soccer cup"), ("a", "hockey"), ("b", "piano song")]
    pair = as_swapped(asked, rows, [1, 2, 3, 4])
    exposure = ActiveId().attack(pair, auxiliary=NOTHING)
    # Sports are all taken for a's, which two of three are, and the song for b's.
    assert (exposure.n_targets, exposure.n_found) == (4, 3)
    # One user for everything: each asked two.
    assert exposure.n_by_chance == 2
    assert truth_of(pair).n_by_chance == plain_chance([(u, q, int(q == "piano song")) for u, q in rows], asked) == 3


def test_an_empty_release_names_nobody() -> None:
    pair = as_swapped([("a", "hockey")], [], [])
    exposure = ActiveId().attack(pair, auxiliary=NOTHING)
    assert (exposure.n_targets, exposure.n_found, exposure.n_by_chance) == (1, 0, 0)
    assert isinstance(truth_of(pair), Truth)
