"""The compiled kernels against plain Python."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.plain_km import combinations_of, largest_set, plain_build

from queryveil.data import Int32s
from queryveil.data.rows import Rows
from queryveil.methods.km._deletion import Labelled, build, delete, label, restore
from queryveil.methods.km._pivot_kernels import restorable
from queryveil.methods.km.combinations import count_in_frequent
from queryveil.reports.inspection import count_alone
from queryveil.text.histories import Histories

TERMS = "abcdefgh"

histories = st.lists(st.frozensets(st.sampled_from(TERMS), max_size=7), min_size=1, max_size=14)
sizes = st.integers(1, 5)
thresholds = st.integers(2, 4)


def compressed(sets: list[frozenset[str]]) -> Histories:
    rows = [sorted(TERMS.index(term) for term in terms) for terms in sets]
    return Histories(
        user_terms=Rows.from_lists(rows),
        counts=np.ones(sum(map(len, rows)), np.int32),
        n_terms=len(TERMS),
    )


def sets_of(labelled: Labelled, alive: np.ndarray) -> list[frozenset[str]]:
    found = []
    row_ptr, terms, *_ = labelled.index
    for user in range(len(row_ptr) - 1):
        row = slice(row_ptr[user], row_ptr[user + 1])
        labels = terms[row][alive[row] == 1]
        found.append(frozenset(TERMS[labelled.label_term[t]] for t in labels))
    return found


def built_sets(histories: Histories, order: Int32s, *, k: int, m: int) -> list[frozenset[str]]:
    kept = histories.keep(build(histories, order, k=k, m=m))
    return [frozenset(TERMS[t] for t in row) for row in kept.user_terms.to_lists()]


def violations(sets: list[frozenset[str]], *, k: int, m: int) -> list[tuple[str, ...]]:
    support = Counter(c for history in sets for c in combinations_of(history, m=m))
    return [c for c, n in support.items() if n < k]


@given(histories, st.permutations(TERMS), thresholds, sizes)
def test_building_up_gives_each_term_to_the_largest_set_of_users(
    sets: list[frozenset[str]], order: list[str], k: int, m: int
) -> None:
    numbers = np.array([TERMS.index(term) for term in order], np.int32)
    assert built_sets(compressed(sets), numbers, k=k, m=m) == plain_build(sets, order, k=k, m=m)


@given(histories, st.permutations(TERMS), thresholds, sizes, st.booleans())
def test_deleting_ends_in_histories_that_keep_the_promise(
    sets: list[frozenset[str]], order: list[str], k: int, m: int, at_random: bool
) -> None:
    scores = np.array([order.index(term) for term in TERMS], np.float64)
    labelled = label(compressed(sets), k=k)
    alive = delete(labelled, scores[labelled.label_term], k=k, m=m, rng=np.random.default_rng(1), at_random=at_random)
    kept = sets_of(labelled, alive)
    assert violations(kept, k=k, m=m) == []
    assert all(after <= before for after, before in zip(kept, sets, strict=True))


@given(histories, st.permutations(TERMS), thresholds, sizes)
def test_restoring_adds_and_keeps_the_promise_and_leaves_nothing_restorable(
    sets: list[frozenset[str]], order: list[str], k: int, m: int
) -> None:
    labelled = label(compressed(sets), k=k)
    scores = np.array([order.index(term) for term in TERMS], np.float64)[labelled.label_term]
    alive = delete(labelled, scores, k=k, m=m, rng=np.random.default_rng(1))
    before, after = sets_of(labelled, alive), sets_of(labelled, restore(labelled, alive, scores, k=k, m=m))
    assert all(less <= more for less, more in zip(before, after, strict=True))
    assert violations(after, k=k, m=m) == []
    for term in {term for history in sets for term in history}:
        lost = {user for user, history in enumerate(sets) if term in history and term not in after[user]}
        fixed = {user for user in range(len(sets)) if term in after[user]}
        assert largest_set(term, lost, [set(h) for h in after], fixed=fixed, k=k, m=m) == set()


@given(histories, st.integers(0, len(TERMS) - 1), thresholds, sizes)
def test_the_set_that_can_come_back_is_the_largest_one(sets: list[frozenset[str]], pivot: int, k: int, m: int) -> None:
    labelled = label(compressed(sets), k=k)
    if pivot >= labelled.n_labels:
        return
    start = restore(labelled, np.zeros(len(labelled.index.terms), np.int8), np.zeros(labelled.n_labels), k=k, m=m)
    rng = np.random.default_rng(3)
    # Take the pivot away from some users: what is left still keeps the promise only if it is gone for all below k.
    mine = labelled.index.terms == pivot
    start[mine & (rng.random(len(start)) < 0.5)] = 0
    kept = sets_of(labelled, start)
    term = TERMS[labelled.label_term[pivot]]
    lost = {user for user, history in enumerate(sets) if term in history and term not in kept[user]}
    fixed = {user for user in range(len(sets)) if term in kept[user]}
    work = np.zeros((2, labelled.n_labels), np.int32)
    entries = restorable(pivot, labelled.index, start, k, m, work)
    expected = largest_set(term, lost, [set(h) for h in kept], fixed=fixed, k=k, m=m)
    assert set(labelled.index.entry_user[entries].tolist()) == expected
    assert not work.any()


@given(histories, thresholds, st.integers(1, 4))
def test_counts_in_frequent_combinations_equal_the_sum_of_their_supports(
    sets: list[frozenset[str]], k: int, m: int
) -> None:
    labelled = label(compressed(sets), k=k)
    counts = count_in_frequent(labelled.index, k, m)
    support = Counter(c for history in sets for c in combinations_of(history, m=m))
    for i, number in enumerate(labelled.label_term):
        for size in range(1, m + 1):
            expected = sum(n for c, n in support.items() if n >= k and len(c) == size and TERMS[number] in c)
            assert counts[i, size - 1] == expected


@given(histories, thresholds)
def test_users_who_stand_alone_are_those_with_a_rare_combination(sets: list[frozenset[str]], k: int) -> None:
    found = count_alone(compressed(sets), k=k, m=3).n_users
    for size in (1, 2, 3):
        rare = set(violations(sets, k=k, m=size))
        assert found[size] == sum(any(c in rare for c in combinations_of(h, m=size)) for h in sets)


@examples(5)
@given(st.integers(0, 10**6))
def test_a_log_with_long_histories_keeps_the_promise(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n_terms, n_users = 60, 200
    rows = [np.unique(rng.zipf(1.3, rng.integers(1, 40)) % n_terms).tolist() for _ in range(n_users)]
    large = Histories(
        user_terms=Rows.from_lists(rows),
        counts=np.ones(sum(map(len, rows)), np.int32),
        n_terms=n_terms,
    )
    kept = large.keep(build(large, np.argsort(-large.support()).astype(np.int32), k=5, m=3))
    support = Counter(c for row in kept.user_terms.to_lists() for size in (1, 2, 3) for c in combinations(row, size))
    assert min(support.values(), default=5) >= 5


@pytest.mark.parametrize("m", [1, 2, 3, 4])
def test_no_histories_at_all_are_fine(m: int) -> None:
    nothing = compressed([frozenset()])
    labelled = label(nothing, k=2)
    assert len(build(nothing, np.arange(len(TERMS), dtype=np.int32), k=2, m=m)) == 0
    assert len(delete(labelled, np.zeros(0), k=2, m=m, rng=np.random.default_rng(0))) == 0
