"""The most frequent queries and URLs, and the order of the frequent ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.plain_utility import plain_spearman, plain_top_kept
from tests.support.releases import released

from queryveil.data import QueryLog
from queryveil.pairing import Pair
from queryveil.release.texts import n_top_kept
from queryveil.testing import log_of
from queryveil.utility import Measures
from queryveil.utility.frequencies import frequencies, spearman

COUNTS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=12)


def value(found: Measures, name: str) -> float:
    score = found.named(name)
    assert score is not None
    return score.value


def measured(before: QueryLog, after: QueryLog) -> Measures:
    return frequencies(Pair(before, release=released(after)))


@given(counts=COUNTS, n_top=st.integers(1, 6))
def test_the_top_is_shared_as_the_definition_says(counts: list[tuple[int, int]], n_top: int) -> None:
    before, after = ({str(i): pair[side] for i, pair in enumerate(counts) if pair[side]} for side in (0, 1))
    if before:
        pairs, n_each = np.unique(np.array(counts), axis=0, return_counts=True)
        expected = plain_top_kept(before, after, n_top=n_top) * min(n_top, len(before))
        assert n_top_kept(*np.array(counts).T, n_top=n_top) == pytest.approx(float(expected))
        assert n_top_kept(*pairs.T, n_each=n_each, n_top=n_top) == pytest.approx(float(expected))


@examples(40)
@given(counts=COUNTS)
def test_the_correlation_is_that_of_mean_ranks(counts: list[tuple[int, int]]) -> None:
    one, other = [b for b, _ in counts], [a for _, a in counts]
    assert spearman(np.array(one), np.array(other)) == pytest.approx(plain_spearman(one, other))


def test_a_query_pushed_out_of_the_top_50_is_not_kept() -> None:
    before = {f"u{i}": [f"query{chr(97 + i % 26)}{chr(97 + i // 26)}"] * (100 - i) for i in range(51)}
    after = dict(before)
    # The 51st becomes the most frequent, so the 50th is out.
    after["u50"] = before["u50"] * 4
    assert value(measured(log_of(before), log_of(after)), "top_queries_kept") == pytest.approx(49 / 50)


def test_urls_are_measured_where_both_sides_have_some() -> None:
    rows = {"user": ["u1", "u2", "u3"], "query": ["wine"] * 3, "url": ["a.example", "b.example", None]}
    log = QueryLog.from_frame(rows)
    fewer = QueryLog.from_frame(rows | {"url": ["a.example", None, None]})
    assert value(measured(log, fewer), "top_urls_kept") == 0.5
    without = measured(log, QueryLog.from_frame({name: rows[name] for name in ("user", "query")}))
    assert without.named("top_urls_kept") is None
    assert any("the release has no URLs" in text for text in without.notes)


def test_an_empty_url_column_is_no_urls() -> None:
    log = QueryLog.from_frame({"user": ["u1"], "query": ["wine"], "url": ["a.example"]})
    dropped = QueryLog.from_frame({"user": ["u1"], "query": ["wine"], "url": [None]})
    assert measured(log, dropped).named("top_urls_kept") is None


def test_queries_that_are_gone_count_as_asked_never() -> None:
    before = log_of({"u1": ["elm"] * 3 + ["oak"] * 2 + ["fir"]})
    assert value(measured(before, log_of({"u1": ["elm"] * 3})), "frequency_correlation") == pytest.approx(
        plain_spearman([3, 2, 1], [3, 0, 0])
    )
    assert value(measured(before, log_of({"u1": ["yew"]})), "frequency_correlation") == 0


def test_where_all_queries_are_equally_frequent_there_is_no_correlation() -> None:
    log = log_of({"u1": ["elm", "oak"]})
    found = measured(log, log)
    assert found.named("frequency_correlation") is None
    assert any("equally frequent" in text for text in found.notes)


def test_case_and_empty_queries_make_no_difference() -> None:
    found = measured(log_of({"u1": ["Elm!", "elm", "", "oak"]}), log_of({"u1": ["elm", "ELM", "oak"]}))
    assert (value(found, "top_queries_kept"), value(found, "frequency_correlation")) == (1, 1)
