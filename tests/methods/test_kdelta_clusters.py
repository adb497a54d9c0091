"""Query clusters of kdelta: the facts of the paper's definition, and arrays against plain Python."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.plain_kdelta import clicks_of, diameter, plain_clusters

from queryveil.methods.kdelta._clusters import Repair, cluster_queries

DELTAS = [Fraction(0), Fraction(1, 4), Fraction(1, 3), Fraction(2, 5), Fraction(1, 2), Fraction(3, 5), Fraction(2, 3),
          Fraction(3, 4), Fraction(9, 10), Fraction(1)]  # fmt: skip
Rows = list[tuple[int, int]]


def rows(*, n_queries: int = 12, n_urls: int = 6, max_size: int = 40) -> st.SearchStrategy[Rows]:
    return st.lists(st.tuples(st.integers(0, n_queries - 1), st.integers(-1, n_urls - 1)), max_size=max_size)


def named(pairs: Rows) -> list[tuple[str, str | None]]:
    return [(str(query), None if url < 0 else str(url)) for query, url in pairs]


def clusters(pairs: Rows, *, delta: Fraction, n_queries: int = 12) -> list[set[str]]:
    query, url = np.array(pairs, np.int32).reshape(-1, 2).T
    found = cluster_queries(query.copy(), url.copy(), n_queries=n_queries, delta=float(delta))
    assert ((found < 0) == (np.bincount(query, minlength=n_queries) == 0)).all()
    return [set(np.flatnonzero(found == c).astype(str).tolist()) for c in range(int(found.max(initial=-1)) + 1)]


def test_delta_of_one_half_joins_queries_that_share_one_of_two_urls_and_less_does_not() -> None:
    pairs = [(1, 1), (1, 2), (2, 2), (3, 3)]
    assert clusters(pairs, delta=Fraction(1, 2)) == [{"1", "2"}, {"3"}]
    assert clusters(pairs, delta=Fraction(2, 5)) == [{"1"}, {"2"}, {"3"}]


def test_a_hair_too_far_is_too_far() -> None:
    pairs = [(0, url) for url in range(20)] + [(1, url) for url in range(19)]
    assert clusters(pairs, delta=Fraction(50, 1000)) == [{"0", "1"}]
    assert clusters(pairs, delta=Fraction(49, 1000)) == [{"0"}, {"1"}]


def test_queries_without_a_click_are_alone_even_at_delta_one() -> None:
    pairs = [(0, -1), (1, -1), (2, 0), (3, 1)]
    assert clusters(pairs, delta=Fraction(1)) == [{"2", "3"}, {"0"}, {"1"}]
    assert clusters(pairs, delta=Fraction(1, 2)) == [{"2"}, {"3"}, {"0"}, {"1"}]


def test_near_the_seed_is_not_enough_if_two_members_are_far_from_each_other() -> None:
    # 1 and 2 are each at one half of 0, but at two thirds of each other.
    pairs = [(0, 0), (0, 0), (0, 0), (1, 0), (1, 1), (2, 0), (2, 2)]
    assert clusters(pairs, delta=Fraction(1, 2)) == [{"0", "1"}, {"2"}]
    assert clusters(pairs, delta=Fraction(2, 3)) == [{"0", "1", "2"}]


def test_most_rows_come_first_and_the_nearest_joins_first() -> None:
    pairs = [(1, 0), (1, 1), (2, 0), (2, 1), (2, 2), (0, 0), (0, 1), (0, 2), (0, 3)] + 9 * [(0, 0)]
    assert clusters(pairs, delta=Fraction(1, 3)) == [{"0", "2"}, {"1"}]


@given(rows(), st.sampled_from(DELTAS))
def test_arrays_and_plain_python_agree(pairs: Rows, delta: Fraction) -> None:
    # Numbers must follow the first appearance, as they do in a log that is read.
    number: dict[int, int] = {}
    pairs = [(number.setdefault(query, len(number)), url) for query, url in pairs]
    assert clusters(pairs, delta=delta) == plain_clusters(named(pairs), delta=delta)


@given(rows(n_queries=30, n_urls=4, max_size=120), st.sampled_from(DELTAS))
def test_no_cluster_is_wider_than_delta(pairs: Rows, delta: Fraction) -> None:
    clicks = clicks_of(named(pairs))
    for cluster in clusters(pairs, delta=delta, n_queries=30):
        assert diameter(cluster, clicks) <= delta


@given(rows(), st.sampled_from(DELTAS), st.lists(st.integers(0, 2), min_size=12, max_size=12))
def test_queries_of_different_wholes_never_get_together(pairs: Rows, delta: Fraction, whole: list[int]) -> None:
    query, url = np.array(pairs, np.int32).reshape(-1, 2).T
    within = np.array(whole, np.int32)
    found = cluster_queries(query.copy(), url.copy(), n_queries=12, delta=float(delta), within=within)
    for c in range(int(found.max(initial=-1)) + 1):
        assert len(set(within[found == c].tolist())) == 1


@pytest.mark.parametrize("max_rounds", [1, 20])
@examples(40)
@given(pairs=rows(n_queries=10, n_urls=4), delta=st.sampled_from(DELTAS[:-1]), seed=st.integers(0, 5))
def test_after_the_repair_parts_are_tight_and_no_cell_is_split(
    max_rounds: int, pairs: Rows, delta: Fraction, seed: int
) -> None:
    query, url = np.array(pairs, np.int32).reshape(-1, 2).T.copy()
    # One whole of all queries: far worse than what any suppression leaves.
    repair = Repair(np.zeros(10, np.int32), delta=float(delta), max_rounds=max_rounds)
    after = repair.exchange(query, url, url + 1, rng=np.random.default_rng(seed))
    clicks = clicks_of(named(list(zip(after.tolist(), url.tolist(), strict=True))))
    parts = repair.part[after]
    for part in set(parts.tolist()):
        assert diameter({str(q) for q in after[parts == part]}, clicks) <= delta
    for one in set(url.tolist()):
        assert len(set(parts[url == one].tolist())) == 1
        # The way out after the last round: one query in each cell.
        assert max_rounds > 1 or (after == query).all() or len(set(after[url == one].tolist())) == 1
    assert set(zip(after.tolist(), url.tolist(), strict=True)) <= set(pairs)


def test_tight_clusters_are_left_as_they_are() -> None:
    query, url = np.array([0, 1, 2], np.int32), np.array([0, 0, 1], np.int32)
    repair = Repair(np.array([0, 0, 1], np.int32), delta=0.5)
    assert repair.exchange(query, url, url, rng=np.random.default_rng(0)).tolist() == [0, 1, 2]
    assert repair.part[0] == repair.part[1] != repair.part[2]
