"""What each person counts for: a few things, once each, picked by nobody but the person and chance."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from queryveil.errors import BadParameter
from queryveil.methods import Dp
from queryveil.methods.dp import Choice
from queryveil.methods.dp.dp import Contributions, contributions_of
from queryveil.rng import generator

ROWS = st.lists(st.tuples(st.integers(0, 6), st.integers(-1, 8)), max_size=60)


def gathered(rows: list[tuple[int, int]]) -> Contributions:
    return contributions_of(np.array([p for p, _ in rows], np.int32), np.array([item for _, item in rows], np.int32))


@given(rows=ROWS)
def test_everybodys_distinct_items_are_gathered_with_how_often_they_are_there(rows: list[tuple[int, int]]) -> None:
    own = gathered(rows)
    found = {
        (int(person), int(item)): int(times)
        for person, item, times in zip(own.items.row_of_entry, own.items.values, own.times, strict=True)
    }
    assert found == Counter((person, item) for person, item in rows if item >= 0)


@given(rows=ROWS, most=st.integers(1, 4), choose=st.sampled_from(Choice), hidden=st.sets(st.integers(0, 8)))
def test_nobody_counts_for_more_than_allowed_or_for_what_is_out_already(
    rows: list[tuple[int, int]], most: int, choose: Choice, hidden: set[int]
) -> None:
    is_out = np.isin(np.arange(9), list(hidden))
    counts = gathered(rows).without(is_out).counts(n_items=9, most=most, choose=choose, rng=generator(1))
    left = {(person, item) for person, item in rows if item >= 0 and item not in hidden}
    of_person = Counter(person for person, _ in left)
    assert counts.sum() == sum(min(most, n) for n in of_person.values())
    of_item = Counter(item for _, item in left)
    assert all(counts[item] <= of_item[item] for item in range(9))


@given(rows=ROWS, most=st.integers(1, 4))
def test_frequent_items_go_before_rarer_ones_of_the_same_person(rows: list[tuple[int, int]], most: int) -> None:
    for person in range(7):
        own = [(0, item) for who, item in rows if who == person]
        counts = gathered(own).counts(n_items=9, most=most, choose=Choice.FREQUENT, rng=generator(2))
        times = Counter(item for _, item in own if item >= 0)
        picked = sorted((times[item] for item in np.flatnonzero(counts).tolist()), reverse=True)
        assert picked == sorted(times.values(), reverse=True)[:most]


@pytest.mark.parametrize("choose", Choice)
def test_each_of_equally_frequent_items_is_picked_as_often(choose: Choice) -> None:
    n_people, n_items, most = 30_000, 6, 2
    own = contributions_of(
        np.repeat(np.arange(n_people, dtype=np.int32), n_items), np.tile(np.arange(6, dtype=np.int32), n_people)
    )
    counts = own.counts(n_items=n_items, most=most, choose=choose, rng=generator(None))
    expected = n_people * most / n_items
    # Six standard deviations: one false alarm in some 80 million runs.
    assert np.all(np.abs(counts - expected) < 6 * np.sqrt(expected * (1 - most / n_items)))


def test_an_unknown_way_to_pick_is_refused() -> None:
    with pytest.raises(BadParameter, match="choose must be one of random, frequent, got best"):
        Dp(choose="best")  # type: ignore[arg-type]
