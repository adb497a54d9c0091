from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples

from queryveil.data import Bools, Int8s
from queryveil.data.rows import Rows, pointers
from queryveil.methods.km._deletion import build
from queryveil.methods.km._pivot_kernels import build_up, share_out
from queryveil.methods.km.combinations import index_terms
from queryveil.text.histories import Histories

N_TERMS = 8


def histories_of(rows: list[set[int]]) -> Histories:
    user_terms = Rows.from_lists([sorted(row) for row in rows])
    return Histories(user_terms=user_terms, counts=np.ones_like(user_terms.values), n_terms=N_TERMS)


def in_rounds(histories: Histories, *, k: int, m: int, n_shards: int) -> Bools:
    """Decide as a cluster does: shards see only what they were sent, and all start from what the round before left."""
    kept = np.ones(len(histories.terms), np.int8)
    is_open = np.ones(N_TERMS, np.int8)
    for _ in range(10 * N_TERMS):
        shard, _, begins, places = share_out(*histories.user_terms, kept, is_open, n_shards)
        after = kept.copy()
        for mine in range(n_shards):
            decide(
                histories, np.flatnonzero(shard == mine), begins, places, kept, after, is_open, (mine, n_shards, k, m)
            )
        first = np.full(histories.n_users, N_TERMS)
        changed = np.flatnonzero(after != kept)
        np.minimum.at(first, histories.entry_user[changed], histories.terms[changed])
        is_open = np.zeros(N_TERMS, np.int8)
        is_open[histories.terms[histories.terms > first[histories.entry_user]]] = 1
        kept = after
        if not is_open.any():
            return np.asarray(kept == 1)
    raise AssertionError("the rounds do not end")


def decide(
    histories: Histories,
    messages: np.ndarray,
    begins: np.ndarray,
    places: np.ndarray,
    before: Int8s,
    after: Int8s,
    is_open: Int8s,
    how: tuple[int, int, int, int],
) -> None:
    shard, n_shards, k, m = how
    parts = [places[begins[message] : begins[message + 1]] for message in messages]
    if not parts:
        return
    mine = np.concatenate(parts)
    rows = Rows(pointers([len(part) for part in parts]), histories.terms[mine])
    kept = before[mine].copy()
    labels = np.arange(N_TERMS, dtype=np.int32)
    open_here = np.where(labels % n_shards == shard, is_open, np.int8(0))
    built, length, work = np.empty_like(rows.values), np.zeros(rows.n_rows, np.int32), np.zeros((2, N_TERMS), np.int32)
    build_up(labels, index_terms(rows, n_terms=N_TERMS), open_here, k, m, built, length, work, kept)
    own = rows.values % n_shards == shard
    after[mine[own]] = kept[own]


@examples(150)
@given(
    rows=st.lists(st.sets(st.integers(0, N_TERMS - 1), max_size=6), min_size=1, max_size=14),
    k=st.integers(2, 4),
    m=st.integers(1, 4),
    n_shards=st.integers(1, 5),
)
def test_rounds_end_where_one_pass_in_order_does(rows: list[set[int]], k: int, m: int, n_shards: int) -> None:
    histories = histories_of(rows)
    one_pass = build(histories, np.arange(N_TERMS, dtype=np.int32), k=k, m=m)
    assert in_rounds(histories, k=k, m=m, n_shards=n_shards).tolist() == one_pass.tolist()


@pytest.mark.parametrize("n_shards", [1, 2, 3])
def test_a_triple_that_one_user_has_is_broken_though_all_its_pairs_are_shared(n_shards: int) -> None:
    rows = [{0, 1, 2}, {0, 1}, {0, 2}, {1, 2}]
    assert in_rounds(histories_of(rows), k=2, m=2, n_shards=n_shards).all()
    assert not in_rounds(histories_of(rows), k=2, m=3, n_shards=n_shards).all()


def test_a_row_is_sent_to_the_shards_of_its_open_labels_with_what_is_kept_before_them() -> None:
    labels, kept = np.array([0, 1, 3, 4], np.int32), np.array([1, 0, 1, 1], np.int8)
    is_open = np.array([0, 0, 0, 1, 0], np.int8)
    shard, row, begins, places = share_out(np.array([0, 4]), labels, kept, is_open, 2)
    assert shard.tolist() == [1]
    assert row.tolist() == [0]
    assert labels[places].tolist() == [0, 3]
    assert begins.tolist() == [0, 2]
