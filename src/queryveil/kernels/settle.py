"""The heart of km: make every small combination with one given term frequent, or give the term up.

A *block* is what is left of the histories of the users who have one term, the *pivot*: a row per user with
the user's other terms, as local numbers in ascending order. `settle` visits the combinations of the pivot
with one or more of the others and, where fewer than k rows have one, deletes its least liked member from that
row: the pivot (the row leaves the block) or one of the others. Deletions go on until none is needed.

Counting goes depth first, one prefix at a time, in a dense array per depth: what FP-growth and Eclat do for
frequent sets, without storing any.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from queryveil.kernels.arrays import Int8s, Int32s, Int64s, UInt64s

ROW_DEAD = np.int8(0)
ROW_FIXED = np.int8(2)
"""A row that counts but is never touched: its user keeps the pivot whatever happens (`ROW_OPEN` may lose it)."""
ROW_OPEN = np.int8(1)


@njit(cache=True, nogil=True)
def settle(
    row_ptr: Int64s,
    terms: Int32s,
    row_state: Int8s,
    alive: Int8s,
    ranks: Int32s,
    pivot_rank: int,
    k: int,
    m: int,
    count: Int32s,
    random_state: UInt64s,
) -> None:
    """Delete in place until every combination of up to m terms with the pivot has k rows.

    `ranks[t]` says how much local term t is liked, the lowest goes first; `random_state[0] != 0` asks for a
    random victim instead. `count` is work space, a zero for each rank, and is zero again after.
    """
    n_deleted = 1
    while n_deleted > 0:
        rows = np.flatnonzero(row_state != ROW_DEAD).astype(np.int32)
        if len(rows) < k:
            for row in rows:
                if row_state[row] == ROW_OPEN:
                    row_state[row] = ROW_DEAD
            return
        n_deleted = 0
        if m > 1:
            n_deleted = _round(rows, row_ptr, terms, row_state, alive, ranks, pivot_rank, k, m, count, random_state)


@njit(cache=True, nogil=True)
def _round(
    first_rows: Int32s,
    row_ptr: Int64s,
    terms: Int32s,
    row_state: Int8s,
    alive: Int8s,
    ranks: Int32s,
    pivot_rank: int,
    k: int,
    m: int,
    count: Int32s,
    random_state: UInt64s,
) -> int:
    """Visit every combination once, depth first; give the number of deletions.

    A loop over levels, since Numba cannot cache a function that calls itself.
    """
    n_terms = len(ranks)
    prefix = np.full(m, -1, np.int32)
    first_places = row_ptr[first_rows] - 1
    n_deleted = _check(
        1, first_rows, first_places, prefix, row_ptr, terms, row_state, alive, ranks, pivot_rank, k, count, random_state
    )
    if m == 2:
        return n_deleted
    start = np.zeros((m, n_terms + 1), np.int64)
    rows = np.empty((m, len(terms)), np.int32)
    places = np.empty((m, len(terms)), np.int64)
    _by_next_term(first_rows, first_places, row_ptr, terms, row_state, alive, start[1], rows[1], places[1])
    level = 1
    while level >= 1:
        prefix[level] += 1
        t = prefix[level]
        if t == n_terms:
            level -= 1
            continue
        if start[level, t] == start[level, t + 1]:
            continue
        some_rows = rows[level, start[level, t] : start[level, t + 1]]
        some_places = places[level, start[level, t] : start[level, t + 1]]
        n_deleted += _check(
            level + 1,
            some_rows,
            some_places,
            prefix,
            row_ptr,
            terms,
            row_state,
            alive,
            ranks,
            pivot_rank,
            k,
            count,
            random_state,
        )
        if level + 2 < m:
            level += 1
            prefix[level] = -1
            _by_next_term(
                some_rows, some_places, row_ptr, terms, row_state, alive, start[level], rows[level], places[level]
            )
    return n_deleted


@njit(cache=True, nogil=True)
def _check(
    size: int,
    rows: Int32s,
    places: Int64s,
    prefix: Int32s,
    row_ptr: Int64s,
    terms: Int32s,
    row_state: Int8s,
    alive: Int8s,
    ranks: Int32s,
    pivot_rank: int,
    k: int,
    count: Int32s,
    random_state: UInt64s,
) -> int:
    """Settle the combinations of the prefix (`size` terms with the pivot) and one term more."""
    for i in range(len(rows)):
        if _holds(rows[i], places[i], size, prefix, row_ptr, terms, row_state, alive):
            for j in range(places[i] + 1, row_ptr[rows[i] + 1]):
                count[terms[j]] += alive[j]
    n_deleted = 0
    again = True
    while again:
        again = False
        for i in range(len(rows)):
            row, place = rows[i], places[i]
            if row_state[row] != ROW_OPEN or not _holds(row, place, size, prefix, row_ptr, terms, row_state, alive):
                continue
            for j in range(place + 1, row_ptr[row + 1]):
                if alive[j] == 0 or count[terms[j]] >= k:
                    continue
                n_deleted += 1
                victim = _victim(row, place, j, size, prefix, row_ptr, terms, ranks, pivot_rank, random_state)
                if victim == j:
                    alive[j] = 0
                    count[terms[j]] -= 1
                    again = again or count[terms[j]] > 0
                    continue
                if victim < 0:
                    row_state[row] = ROW_DEAD
                else:
                    alive[victim] = 0
                for z in range(place + 1, row_ptr[row + 1]):
                    if alive[z]:
                        count[terms[z]] -= 1
                        again = again or count[terms[z]] == k - 1
                break
    for i in range(len(rows)):
        for j in range(places[i] + 1, row_ptr[rows[i] + 1]):
            count[terms[j]] = 0
    return n_deleted


@njit(cache=True, nogil=True)
def _by_next_term(
    rows: Int32s,
    places: Int64s,
    row_ptr: Int64s,
    terms: Int32s,
    row_state: Int8s,
    alive: Int8s,
    start: Int64s,
    next_rows: Int32s,
    next_places: Int64s,
) -> None:
    """Sort the rows by each term that comes after the prefix; a term that no open row has needs no look."""
    n_terms = len(start) - 1
    wanted = np.zeros(n_terms, np.int8)
    for i in range(len(rows)):
        if row_state[rows[i]] == ROW_OPEN:
            for j in range(places[i] + 1, row_ptr[rows[i] + 1]):
                wanted[terms[j]] |= alive[j]
    start[:] = 0
    for i in range(len(rows)):
        if row_state[rows[i]] != ROW_DEAD:
            for j in range(places[i] + 1, row_ptr[rows[i] + 1]):
                start[terms[j] + 1] += alive[j] & wanted[terms[j]]
    for t in range(n_terms):
        start[t + 1] += start[t]
    fill = start[:-1].copy()
    for i in range(len(rows)):
        if row_state[rows[i]] != ROW_DEAD:
            for j in range(places[i] + 1, row_ptr[rows[i] + 1]):
                t = terms[j]
                if alive[j] & wanted[t]:
                    next_rows[fill[t]], next_places[fill[t]] = rows[i], j
                    fill[t] += 1


@njit(cache=True, nogil=True, inline="always")
def _holds(
    row: int, place: int, size: int, prefix: Int32s, row_ptr: Int64s, terms: Int32s, row_state: Int8s, alive: Int8s
) -> bool:
    """Say whether the row still has every term of the prefix."""
    if row_state[row] == ROW_DEAD:
        return False
    if size == 1:
        return True
    if alive[place] == 0:
        return False
    for i in range(1, size - 1):
        if alive[_find(prefix[i], row, row_ptr, terms)] == 0:
            return False
    return True


@njit(cache=True, nogil=True)
def _find(term: int, row: int, row_ptr: Int64s, terms: Int32s) -> int:
    return row_ptr[row] + np.searchsorted(terms[row_ptr[row] : row_ptr[row + 1]], term)


@njit(cache=True, nogil=True)
def _victim(
    row: int,
    place: int,
    last: int,
    size: int,
    prefix: Int32s,
    row_ptr: Int64s,
    terms: Int32s,
    ranks: Int32s,
    pivot_rank: int,
    random_state: UInt64s,
) -> int:
    """Give the place of the term to delete from the row, or -1 for the pivot."""
    if random_state[0] != 0:
        pick = _draw(random_state) % (size + 1)
        if pick == 0:
            return -1
        if pick == size:
            return last
        return place if pick == size - 1 else _find(prefix[pick], row, row_ptr, terms)
    victim, lowest = -1, pivot_rank
    if ranks[terms[last]] < lowest:
        victim, lowest = last, ranks[terms[last]]
    for i in range(1, size):
        if ranks[prefix[i]] < lowest:
            victim, lowest = _find(prefix[i], row, row_ptr, terms), ranks[prefix[i]]
    return victim


@njit(cache=True, nogil=True)
def _draw(state: UInt64s) -> int:
    """Give the next number of a xorshift generator: quality enough to choose a victim, and it repeats by seed."""
    x = state[0]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    state[0] = x
    return np.int64(x >> np.uint64(33))
