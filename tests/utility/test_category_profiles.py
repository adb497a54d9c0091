"""Profiles by category before and after."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.plain_utility import plain_jensen_shannon
from tests.support.releases import released

from queryveil.data import QueryLog
from queryveil.data.rows import Rows
from queryveil.methods import Km, Swap
from queryveil.pairing import Identity, Pair
from queryveil.release import ColumnPolicy, Ids, Release
from queryveil.synthesis import synthesize
from queryveil.testing import log_of
from queryveil.utility.frequencies import category_profiles, jensen_shannon, merged

SPORT, ART = "european soccer barcelona players", "arctic monkeys songs"


def measured(before: QueryLog, release: Release) -> tuple[float, float]:
    found = category_profiles(Pair(before, release=release))
    unchanged, distance = found.named("profiles_unchanged"), found.named("profile_distance")
    assert unchanged is not None
    assert distance is not None
    return unchanged.value, distance.value


def test_another_query_of_the_same_category_leaves_a_profile_as_it_was() -> None:
    before = log_of({"u1": ["tennis titles", ART]})
    assert measured(before, released(log_of({"u1": [ART, "soccer scores"]}))) == (1, 0)


def test_a_user_who_is_gone_counts_as_far_away() -> None:
    before = log_of({"u1": [SPORT], "u2": [SPORT], "u3": [ART], "u4": [SPORT, ART]})
    after = log_of({"u1": [SPORT], "u2": [ART], "u4": [SPORT, SPORT, ART, ART]})
    unchanged, distance = measured(before, released(after))
    # u1 as before, u2 moved all the way, u3 gone, u4 has the same shares of twice as many queries
    assert unchanged == pytest.approx(1 / 4)
    assert distance == pytest.approx((0 + 1 + 1 + 0) / 4)


def test_half_a_profile_moved_is_the_distance_of_the_definition() -> None:
    _, distance = measured(log_of({"u1": [SPORT, ART]}), released(log_of({"u1": [SPORT]})))
    assert distance == pytest.approx(plain_jensen_shannon([1, 1], [1, 0]))


def test_queries_without_a_term_count_as_unclassified() -> None:
    before = log_of({"u1": ["", SPORT]})
    assert measured(before, released(before)) == (1, 0)
    assert measured(before, released(log_of({"u1": [SPORT]})))[0] == 0


@given(
    st.lists(
        st.tuples(
            st.lists(st.integers(0, 5), min_size=4, max_size=4), st.lists(st.integers(0, 5), min_size=4, max_size=4)
        ),
        min_size=1,
        max_size=5,
    )
)
def test_the_distance_is_that_of_the_definition(rows: list[tuple[list[int], list[int]]]) -> None:
    pairs = [(p, q) for p, q in rows if sum(p) and sum(q)]
    if pairs:
        found = jensen_shannon(np.array([p for p, _ in pairs]), np.array([q for _, q in pairs]))
        assert found.tolist() == pytest.approx([plain_jensen_shannon(p, q) for p, q in pairs], abs=1e-7)


def test_one_of_two_look_alikes_gone_is_half_of_each() -> None:
    who = Identity(users=Rows.from_lists([[0, 1]]), exact=False)
    counts, there = merged(np.array([[3, 1]]), identity=who, n_users=2, is_cut=False)
    assert counts.tolist() == [[3, 1], [3, 1]]
    assert there.tolist() == [0.5, 0.5]


def test_who_may_be_gone_is_unchanged_and_near_in_part() -> None:
    log = log_of({"u1": [SPORT], "u2": [SPORT]})
    # One of the two is left, and nobody can tell which: each is there by half.
    unchanged, distance = measured(log, released(log_of({"7": [SPORT]}), ids=Ids.FRESH))
    assert (unchanged, distance) == pytest.approx((0.5, 0.5))


def test_the_windows_of_a_user_make_one_profile() -> None:
    who = Identity(users=Rows.from_lists([[0], [0]]), exact=True)
    counts, there = merged(np.array([[3, 1], [0, 2]]), identity=who, n_users=1, is_cut=True)
    assert (counts.tolist(), there.tolist()) == ([[3, 3]], [1])


def test_swap_leaves_profiles_nearly_unchanged_and_km_does_not() -> None:
    log = synthesize(users=400, seed=3).log
    keep = ColumnPolicy(ids=Ids.KEEP)
    swapped = measured(log, Swap(k=3, repeats="all", columns=keep, seed=1).anonymize(log))
    deleted = measured(log, Km(k=5, m=2, columns=keep, seed=1).anonymize(log))
    assert swapped[0] > 0.7
    assert swapped[1] < 0.1
    assert deleted[0] < swapped[0]
    assert deleted[1] > 2 * swapped[1]


def test_an_estimate_of_who_is_who_says_so() -> None:
    log = synthesize(users=200, seed=3).log
    release = Km(k=3, m=2, seed=1).anonymize(log)
    found = category_profiles(Pair(log, release=release))
    assert any("was estimated" in text for text in found.notes)


def test_ids_of_windows_are_not_said_to_be_exact_under_a_key() -> None:
    log = synthesize(users=100, seed=1).log
    release = Km(k=2, m=1, window="7d").anonymize(log)
    notes = category_profiles(Pair(log, release=release)).notes
    assert [note for note in notes if "new in each window" in note]
    assert not [note for note in notes if "--ids keyed" in note]
