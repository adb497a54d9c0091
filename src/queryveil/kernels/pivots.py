"""Blocks around one term: cut them out of the histories, settle them, and say what became of them.

The histories are compressed rows over *labels*: terms renumbered so that the rarest comes first, which keeps
blocks small. An *entry* is a place in `terms`, `entry_user` its user, and `postings` lists the entries of each
term. `alive` marks the entries that are still there.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from queryveil.kernels.arrays import Int8s, Int32s, Int64s, UInt64s
from queryveil.kernels.settle import ROW_DEAD, ROW_FIXED, ROW_OPEN, settle


@njit(cache=True, nogil=True, parallel=True)
def delete_around(
    pivots: Int32s,
    row_ptr: Int64s,
    terms: Int32s,
    entry_user: Int32s,
    posting_ptr: Int64s,
    postings: Int64s,
    alive: Int8s,
    ranks: Int32s,
    k: int,
    m: int,
    seeds: UInt64s,
    work: Int32s,
    doomed: Int8s,
) -> None:
    """Mark in `doomed` what must go so that the combinations of each pivot with commoner terms are frequent.

    Every pivot sees the same `alive`, so the outcome does not depend on the number of threads. `work` is
    zeroed work space, two rows of one number per term for each thread.
    """
    n_threads = work.shape[0]
    for thread in prange(n_threads):
        for i in range(thread, len(pivots), n_threads):
            pivot = pivots[i]
            entries = _alive_entries(pivot, posting_ptr, postings, alive)
            if len(entries) == 0:
                continue
            row_state = np.full(len(entries), ROW_OPEN, np.int8)
            block_ptr, places = _rest_of_rows(entries, True, row_ptr, entry_user, alive)
            kept = _settle_block(
                row_state, block_ptr, places, terms, ranks, ranks[pivot], k, m, seeds[i : i + 1], work[thread]
            )
            for row in range(len(entries)):
                doomed[entries[row]] |= row_state[row] == ROW_DEAD
            for j in range(len(places)):
                doomed[places[j]] |= kept[j] == 0


@njit(cache=True, nogil=True)
def restore_around(
    pivots: Int32s,
    row_ptr: Int64s,
    terms: Int32s,
    entry_user: Int32s,
    posting_ptr: Int64s,
    postings: Int64s,
    alive: Int8s,
    k: int,
    m: int,
    work: Int32s,
    unsettled: Int8s,
) -> int:
    """Give each pivot in turn back to as many users as can have it; give the number of entries restored.

    `unsettled` marks the terms of the users who gained one: only those can have become restorable since.
    """
    n_restored = 0
    for pivot in pivots:
        for entry in restorable(pivot, row_ptr, terms, entry_user, posting_ptr, postings, alive, k, m, work):
            alive[entry] = 1
            n_restored += 1
            user = entry_user[entry]
            for j in range(row_ptr[user], row_ptr[user + 1]):
                unsettled[terms[j]] = 1
    return n_restored


@njit(cache=True, nogil=True)
def restorable(
    pivot: int,
    row_ptr: Int64s,
    terms: Int32s,
    entry_user: Int32s,
    posting_ptr: Int64s,
    postings: Int64s,
    alive: Int8s,
    k: int,
    m: int,
    work: Int32s,
) -> Int64s:
    """Give the largest set of the pivot's lost entries that can all come back without breaking the promise.

    All of them come back at first; a user with a combination below k leaves again, until nobody must. Supports
    only fall on the way, so the set is unique.
    """
    entries = postings[posting_ptr[pivot] : posting_ptr[pivot + 1]]
    row_state = np.empty(len(entries), np.int8)
    n_lost = 0
    for i in range(len(entries)):
        lost = alive[entries[i]] == 0
        row_state[i] = ROW_OPEN if lost else ROW_FIXED
        n_lost += lost
    if n_lost == 0 or len(entries) < k:
        return entries[:0]
    block_ptr, places = _rest_of_rows(entries, False, row_ptr, entry_user, alive)
    no_random = np.zeros(1, np.uint64)
    # The pivot ranks below all others (zeros will do): it alone is given up, never a term that is there.
    zeros = work[1]
    _settle_block(row_state, block_ptr, places, terms, zeros, -1, k, m, no_random, work)
    return entries[row_state == ROW_OPEN]


@njit(cache=True, nogil=True)
def _alive_entries(pivot: int, posting_ptr: Int64s, postings: Int64s, alive: Int8s) -> Int64s:
    entries = postings[posting_ptr[pivot] : posting_ptr[pivot + 1]]
    return entries[alive[entries] == 1]


@njit(cache=True, nogil=True)
def _rest_of_rows(
    entries: Int64s, only_commoner: bool, row_ptr: Int64s, entry_user: Int32s, alive: Int8s
) -> tuple[Int64s, Int64s]:
    """Give the entries that are alive beside each of the given ones, as compressed rows."""
    block_ptr = np.empty(len(entries) + 1, np.int64)
    size = 0
    for i in range(len(entries)):
        user = entry_user[entries[i]]
        size += row_ptr[user + 1] - (entries[i] if only_commoner else row_ptr[user])
    places = np.empty(size, np.int64)
    n = 0
    for i in range(len(entries)):
        block_ptr[i] = n
        user = entry_user[entries[i]]
        first = entries[i] + 1 if only_commoner else row_ptr[user]
        for j in range(first, row_ptr[user + 1]):
            if alive[j] and j != entries[i]:
                places[n] = j
                n += 1
    block_ptr[len(entries)] = n
    return block_ptr, places[:n]


@njit(cache=True, nogil=True)
def _settle_block(
    row_state: Int8s,
    block_ptr: Int64s,
    places: Int64s,
    terms: Int32s,
    ranks: Int32s,
    pivot_rank: int,
    k: int,
    m: int,
    random_state: UInt64s,
    work: Int32s,
) -> Int8s:
    """Settle singles and pairs on the labels themselves, the rest on a smaller block with labels of its own."""
    kept = np.ones(len(places), np.int8)
    block_terms = terms[places]
    settle(block_ptr, block_terms, row_state, kept, ranks, pivot_rank, k, min(m, 2), work[0], random_state)
    if m <= 2:
        return kept
    small_ptr, small_places, small_rows, local = _shrink(block_ptr, block_terms, row_state, kept, work[1])
    if len(small_places) == 0:
        return kept
    small_terms = np.searchsorted(local, block_terms[small_places]).astype(np.int32)
    small_state = row_state[small_rows]
    small_kept = np.ones(len(small_places), np.int8)
    count = np.zeros(len(local), np.int32)
    settle(small_ptr, small_terms, small_state, small_kept, ranks[local], pivot_rank, k, m, count, random_state)
    row_state[small_rows] = small_state
    kept[small_places] = small_kept
    return kept


@njit(cache=True, nogil=True)
def _shrink(
    block_ptr: Int64s, block_terms: Int32s, row_state: Int8s, kept: Int8s, wanted: Int32s
) -> tuple[Int64s, Int64s, Int64s, Int32s]:
    """Leave out dead rows and every term that no open row has: no combination to be settled holds it."""
    n_rows = len(row_state)
    local = np.empty(len(block_terms), np.int32)
    n_local = 0
    for row in range(n_rows):
        if row_state[row] == ROW_OPEN:
            for j in range(block_ptr[row], block_ptr[row + 1]):
                if kept[j] and wanted[block_terms[j]] == 0:
                    wanted[block_terms[j]] = 1
                    local[n_local] = block_terms[j]
                    n_local += 1
    small_ptr = np.zeros(n_rows + 1, np.int64)
    small_rows = np.empty(n_rows, np.int64)
    small_places = np.empty(len(block_terms), np.int64)
    n, n_small = 0, 0
    for row in range(n_rows):
        if row_state[row] == ROW_DEAD:
            continue
        for j in range(block_ptr[row], block_ptr[row + 1]):
            if kept[j] and wanted[block_terms[j]]:
                small_places[n] = j
                n += 1
        small_rows[n_small] = row
        n_small += 1
        small_ptr[n_small] = n
    for i in range(n_local):
        wanted[local[i]] = 0
    return small_ptr[: n_small + 1], small_places[:n], small_rows[:n_small], np.sort(local[:n_local])
