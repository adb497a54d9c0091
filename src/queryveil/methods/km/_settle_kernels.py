"""Kernel of km: make every small combination with one given term frequent, or delete the term.

`settle` visits the combinations of the pivot of a block with one or more of the other terms and, where fewer than k
rows have one, deletes its member of lowest rank from that row: the pivot (the row leaves the block) or one of the
others. Deletions go on until none is needed.

Counting goes depth first, one prefix at a time, in a dense array: what FP-growth and Eclat do for frequent
sets, without storing any.
"""

from typing import NamedTuple

import numpy as np

from queryveil.data import Int8s, Int32s, Int64s, UInt64s
from queryveil.kernels import njit

ROW_DEAD = np.int8(0)
ROW_OPEN = np.int8(1)
ROW_FIXED = np.int8(2)
"""A row that counts but is never touched; an open one may lose the pivot or another term."""


class Block(NamedTuple):
    """What is left of the histories of the users who have one term, the *pivot*: a row per user.

    Row r has the places `first[r]` to `last[r]` in `terms`, in one order for all rows, and the state `row_state[r]`;
    `alive` marks the places of terms that are not deleted.
    """

    first: Int64s
    last: Int64s
    terms: Int32s
    row_state: Int8s
    alive: Int8s


class Rule(NamedTuple):
    """Which member of a combination of fewer than k rows is deleted.

    The one of lowest rank, `ranks[t]` for term t; one drawn at random instead if `random_state[0]` is not 0.
    """

    ranks: Int32s
    pivot_rank: np.int64
    k: int
    random_state: UInt64s


@njit(cache=True, nogil=True)
def settle(block: Block, rule: Rule, m: int, count: Int32s, deleted: Int64s) -> int:
    """Delete in place until every combination of up to m terms with the pivot has k rows.

    `count` is work space, a zero for each rank, and is zero again after. The places of deleted terms go to `deleted`;
    their number is the result.
    """
    row_state = block.row_state
    n_deleted_entries = 0
    rows = np.empty(len(row_state), np.int32)
    while True:
        n = 0
        for row in range(len(row_state)):
            if row_state[row] != ROW_DEAD:
                rows[n] = row
                n += 1
        if n < rule.k:
            for row in rows[:n]:
                if row_state[row] == ROW_OPEN:
                    row_state[row] = ROW_DEAD
            return n_deleted_entries
        if m == 1:
            return n_deleted_entries
        n_deleted, n_deleted_entries = _round(rows[:n], block, rule, m, count, deleted, n_deleted_entries)
        if n_deleted == 0:
            return n_deleted_entries


@njit(cache=True, nogil=True)
def _round(
    all_rows: Int32s, block: Block, rule: Rule, m: int, count: Int32s, deleted: Int64s, n_deleted_entries: int
) -> tuple[int, int]:
    """Visit every combination once, depth first; return the number of deletions and of deleted entries.

    A loop over levels, since Numba cannot cache a function that calls itself.
    """
    prefix = np.full(m, -1, np.int32)
    before = block.first[all_rows] - 1
    n_deleted, n_deleted_entries = _check(1, all_rows, before, prefix, block, rule, count, deleted, n_deleted_entries)
    if m == 2 or _all_common(all_rows, block, rule.k, m, count):
        return n_deleted, n_deleted_entries
    n_terms = len(rule.ranks)
    start = np.zeros((m, n_terms + 1), np.int64)
    rows = np.empty((m, len(block.terms)), np.int32)
    places = np.empty((m, len(block.terms)), np.int64)
    _by_next_term(all_rows, before, block, start[1], rows[1], places[1])
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
        n_now, n_deleted_entries = _check(
            level + 1, some_rows, some_places, prefix, block, rule, count, deleted, n_deleted_entries
        )
        n_deleted += n_now
        if level + 2 < m:
            level += 1
            prefix[level] = -1
            _by_next_term(some_rows, some_places, block, start[level], rows[level], places[level])
    return n_deleted, n_deleted_entries


@njit(cache=True, nogil=True)
def _check(
    size: int, rows: Int32s, places: Int64s, prefix: Int32s, block: Block, rule: Rule, count: Int32s, deleted: Int64s,
    n_deleted_entries: int,
) -> tuple[int, int]:  # fmt: skip
    """Settle the combinations of the prefix (`size` terms with the pivot) and one term more."""
    # What is called for each row takes arrays: a tuple of them would be counted anew in each call.
    first, last, terms, row_state, alive = block
    ranks, pivot_rank, k, random_state = rule
    for i in range(len(rows)):
        if _holds(rows[i], places[i], size, prefix, first, last, terms, row_state, alive):
            for j in range(places[i] + 1, last[rows[i]]):
                count[terms[j]] += alive[j]
    n_deleted = 0
    again = True
    while again:
        again = False
        for i in range(len(rows)):
            row, place = rows[i], places[i]
            if row_state[row] != ROW_OPEN or not _holds(row, place, size, prefix, first, last, terms, row_state, alive):
                continue
            for j in range(place + 1, last[row]):
                if alive[j] == 0 or count[terms[j]] >= k:
                    continue
                n_deleted += 1
                victim = _victim(row, place, j, size, prefix, first, last, terms, ranks, pivot_rank, random_state)
                if victim >= 0:
                    deleted[n_deleted_entries] = victim
                    n_deleted_entries += 1
                    alive[victim] = 0
                else:
                    row_state[row] = ROW_DEAD
                if victim == j:
                    count[terms[j]] -= 1
                    again = again or count[terms[j]] > 0
                    continue
                # The row no longer has the prefix: none of its combinations with it count any more.
                for z in range(place + 1, last[row]):
                    if alive[z]:
                        count[terms[z]] -= 1
                        again = again or count[terms[z]] == k - 1
                break
    for i in range(len(rows)):
        for j in range(places[i] + 1, last[rows[i]]):
            count[terms[j]] = 0
    return n_deleted, n_deleted_entries


@njit(cache=True, nogil=True)
def _all_common(rows: Int32s, block: Block, k: int, m: int, count: Int32s) -> bool:
    """Return whether every combination must have k rows, because even the rarest terms lack only few.

    Many long histories that are alike would take the cube of their length otherwise.
    """
    first, last, terms, row_state, alive = block
    n_rows = 0
    for row in rows:
        if row_state[row] != ROW_DEAD:
            n_rows += 1
            for j in range(first[row], last[row]):
                count[terms[j]] += alive[j]
    lacks = np.zeros(m - 1, np.int64)
    for row in rows:
        for j in range(first[row], last[row]):
            if count[terms[j]] > 0:
                lack = n_rows - count[terms[j]]
                count[terms[j]] = 0
                place = np.argmin(lacks)
                lacks[place] = max(lacks[place], lack)
    return bool(n_rows - lacks.sum() >= k)


@njit(cache=True, nogil=True)
def _by_next_term(
    rows: Int32s, places: Int64s, block: Block, start: Int64s, next_rows: Int32s, next_places: Int64s
) -> None:
    """Sort the rows by each term that comes after the prefix; a term that no open row has needs no look."""
    _, last, terms, row_state, alive = block
    n_terms = len(start) - 1
    wanted = np.zeros(n_terms, np.int8)
    for i in range(len(rows)):
        if row_state[rows[i]] == ROW_OPEN:
            for j in range(places[i] + 1, last[rows[i]]):
                wanted[terms[j]] |= alive[j]
    start[:] = 0
    for i in range(len(rows)):
        if row_state[rows[i]] != ROW_DEAD:
            for j in range(places[i] + 1, last[rows[i]]):
                start[terms[j] + 1] += alive[j] & wanted[terms[j]]
    for t in range(n_terms):
        start[t + 1] += start[t]
    fill = start[:-1].copy()
    for i in range(len(rows)):
        if row_state[rows[i]] != ROW_DEAD:
            for j in range(places[i] + 1, last[rows[i]]):
                t = terms[j]
                if alive[j] & wanted[t]:
                    next_rows[fill[t]], next_places[fill[t]] = rows[i], j
                    fill[t] += 1


@njit(cache=True, nogil=True, inline="always")
def _holds(
    row: int, place: int, size: int, prefix: Int32s,
    first: Int64s, last: Int64s, terms: Int32s, row_state: Int8s, alive: Int8s,
) -> bool:  # fmt: skip
    """Return whether the row still has every term of the prefix."""
    if row_state[row] == ROW_DEAD:
        return False
    if size == 1:
        return True
    if alive[place] == 0:
        return False
    for i in range(1, size - 1):
        if alive[_find(prefix[i], row, first, last, terms)] == 0:
            return False
    return True


@njit(cache=True, nogil=True)
def _find(term: int, row: int, first: Int64s, last: Int64s, terms: Int32s) -> int:
    for place in range(first[row], last[row]):
        if terms[place] == term:
            return place
    return -1


@njit(cache=True, nogil=True)
def _victim(
    row: int, place: int, newest: int, size: int, prefix: Int32s,
    first: Int64s, last: Int64s, terms: Int32s, ranks: Int32s, pivot_rank: np.int64, random_state: UInt64s,
) -> int:  # fmt: skip
    """Return the place of the term to delete from the row, or -1 for the pivot."""
    if random_state[0] != 0:
        pick = _draw(random_state) % (size + 1)
        if pick == 0:
            return -1
        if pick == size:
            return newest
        return place if pick == size - 1 else _find(prefix[pick], row, first, last, terms)
    victim, lowest = -1, pivot_rank
    if ranks[terms[newest]] < lowest:
        victim, lowest = newest, ranks[terms[newest]]
    for i in range(1, size):
        if ranks[prefix[i]] < lowest:
            victim, lowest = _find(prefix[i], row, first, last, terms), ranks[prefix[i]]
    return victim


@njit(cache=True, nogil=True)
def _draw(state: UInt64s) -> np.int64:
    """Return the next number of a xorshift generator: quality enough to choose a victim, and it repeats by seed."""
    x = state[0]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    state[0] = x
    return np.int64(x >> np.uint64(33))
