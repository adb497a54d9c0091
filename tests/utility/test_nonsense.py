"""Releases that are worth nothing, or no more than before: no measure may be taken in by them."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from queryveil.pairing import pseudonymised
from queryveil.release import Release
from queryveil.rng import generator
from queryveil.synthesis import synthesize, term_values
from queryveil.utility import Measures, measure
from queryveil.utility.purposes import PURPOSES

pytestmark = pytest.mark.slow

LOG = synthesize(users=500, seed=3).log
VALUES = term_values(LOG, seed=1)
SAME = pseudonymised(LOG)
ROWS = SAME.log.frame
OF_PURPOSE = {purpose.measure for purpose in PURPOSES.values()}


def of(frame: pl.DataFrame) -> Release:
    return replace(SAME, data=SAME.log.with_frame(frame))


def scores(frame: pl.DataFrame) -> dict[str, float]:
    found: Measures = measure(LOG, of(frame), values=VALUES)
    return {score.name: score.value for score in found}


@pytest.fixture(scope="module")
def whole() -> dict[str, float]:
    return scores(ROWS)


def test_the_log_itself_has_every_measure_of_a_purpose_and_keeps_all(whole: dict[str, float]) -> None:
    assert whole.keys() >= OF_PURPOSE
    assert {name: value for name, value in whole.items() if value != 1} == {
        "count_query_error": 0,
        "profile_distance": 0,
    }


def test_a_release_without_rows_keeps_nothing(whole: dict[str, float]) -> None:
    found = scores(ROWS.clear())
    assert found.keys() | {"top_urls_kept"} == whole.keys()
    assert {name: value for name, value in found.items() if value} == {"count_query_error": 1, "profile_distance": 1}


def test_a_release_of_one_row_keeps_next_to_nothing() -> None:
    found = scores(ROWS.head(1))
    assert {name for name in OF_PURPOSE | {"log_size_kept", "coverage_volume"} if found[name] > 0.06} == set()


def test_rows_that_are_there_many_times_keep_no_more_than_once(whole: dict[str, float]) -> None:
    found = scores(pl.concat([ROWS] * 10))
    assert all(found[name] <= 1 for name in whole if name.endswith("_kept"))
    thinned = ROWS.gather_every(3)
    once, often = scores(thinned), scores(pl.concat([thinned] * 3))
    assert often["coverage_volume"] == once["coverage_volume"]
    assert often["count_query_error"] == pytest.approx(once["count_query_error"])
    assert often["queries_kept"] == once["queries_kept"]


def test_texts_dealt_to_other_people_and_pages_say_nothing_of_people_clicks_and_times() -> None:
    order = generator(1).permutation(ROWS.height)
    found = scores(ROWS.with_columns(query=ROWS["query"].gather(order)))
    assert found["interests_kept"] < 0.05
    assert found["ranking_kept"] < 0.15
    assert found["related_kept"] < 0.15
    assert found["trends_kept"] < 0.4
    # Counts alone are enough for these, and counts are what they were.
    assert found["completions_kept"] == found["spelling_kept"] == found["revenue_kept"] == 1


def test_words_that_nobody_asked_keep_rows_and_nothing_else() -> None:
    found = scores(ROWS.with_columns(query=pl.lit("zzz qqq")))
    others = OF_PURPOSE - {"ranking_kept"}
    assert {name for name in others | {"log_size_kept", "queries_kept"} if found[name] > 0.05} == set()
    # Which pages are clicked at all is still there.
    assert found["ranking_kept"] < 0.3
    assert found["rows_kept"] == 1
