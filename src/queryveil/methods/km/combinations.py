"""Count combinations of terms in histories: which are frequent, and who stands alone."""

from typing import NamedTuple

import numpy as np

from queryveil.data import Int8s, Int32s, Int64s, UInt64s
from queryveil.data.rows import Rows, group, sort_in_place
from queryveil.kernels import njit, prange


class Index(NamedTuple):
    """Histories as compressed rows (`ptr`, `terms`), the user of each entry, and the entries of each term."""

    ptr: Int64s
    terms: Int32s
    entry_user: Int32s
    posting_ptr: Int64s
    postings: Int64s


def index_terms(rows: Rows[np.int32], *, n_terms: int) -> Index:
    """Return histories with an index of their terms."""
    return Index(*rows, rows.row_of_entry.astype(np.int32), *group(rows.values, n_terms))


@njit(cache=True, nogil=True)
def _block(pivot: int, index: Index, local: Int32s) -> tuple[Int64s, Int32s, Int32s]:
    """Return the commoner terms beside the pivot as compressed rows over local numbers, and the terms these mean."""
    row_ptr, terms, entry_user, posting_ptr, postings = index
    entries = postings[posting_ptr[pivot] : posting_ptr[pivot + 1]]
    block_ptr = np.zeros(len(entries) + 1, np.int64)
    for i in range(len(entries)):
        block_ptr[i + 1] = block_ptr[i] + row_ptr[entry_user[entries[i]] + 1] - entries[i] - 1
    rest = np.empty(block_ptr[-1], np.int32)
    met = np.empty(block_ptr[-1], np.int32)
    n_met = 0
    for i in range(len(entries)):
        for j in range(block_ptr[i + 1] - block_ptr[i]):
            t = terms[entries[i] + 1 + j]
            rest[block_ptr[i] + j] = t
            if local[t] == 0:
                local[t] = 1
                met[n_met] = t
                n_met += 1
    meaning = met[:n_met].copy()
    sort_in_place(meaning)
    for i in range(n_met):
        local[meaning[i]] = i
    for j in range(len(rest)):
        rest[j] = local[rest[j]]
    for t in meaning:
        local[t] = 0
    return block_ptr, rest, meaning


@njit(cache=True, nogil=True)
def count_in_frequent(index: Index, k: int, m: int) -> Int64s:
    """Count, for each term and size up to m, the users of the frequent combinations of that size that hold it."""
    posting_ptr = index.posting_ptr
    n_terms = len(posting_ptr) - 1
    totals = np.zeros((n_terms, m), np.int64)
    local = np.zeros(n_terms, np.int32)
    for pivot in range(n_terms):
        n_users = posting_ptr[pivot + 1] - posting_ptr[pivot]
        if n_users < k:
            continue
        totals[pivot, 0] += n_users
        if m > 1:
            block_ptr, rest, meaning = _block(pivot, index, local)
            _add_block(pivot, block_ptr, rest, meaning, k, m, totals)
    return totals


@njit(cache=True, nogil=True)
def _add_block(pivot: int, block_ptr: Int64s, rest: Int32s, meaning: Int32s, k: int, m: int, totals: Int64s) -> None:
    """Add the frequent combinations whose rarest term is the pivot, depth first."""
    n_local = len(meaning)
    start = np.zeros((m, n_local + 1), np.int64)
    rows = np.empty((m, len(rest)), np.int32)
    places = np.empty((m, len(rest)), np.int64)
    prefix = np.full(m, -1, np.int64)
    all_rows = np.arange(len(block_ptr) - 1).astype(np.int32)
    _spread(all_rows, block_ptr[:-1] - 1, block_ptr, rest, start[1], rows[1], places[1])
    level = 1
    while level >= 1:
        prefix[level] += 1
        t = prefix[level]
        if t == n_local:
            level -= 1
            continue
        first, last = start[level, t], start[level, t + 1]
        if last - first < k:
            continue
        totals[pivot, level] += last - first
        for i in range(1, level + 1):
            totals[meaning[prefix[i]], level] += last - first
        if level + 1 < m:
            some_rows, some_places = rows[level, first:last], places[level, first:last]
            level += 1
            prefix[level] = -1
            _spread(some_rows, some_places, block_ptr, rest, start[level], rows[level], places[level])


@njit(cache=True, nogil=True)
def _spread(
    some_rows: Int32s, some_places: Int64s, block_ptr: Int64s, rest: Int32s, start: Int64s, rows: Int32s, places: Int64s
) -> None:
    """Sort rows by each of the terms that follow a place in them."""
    start[:] = 0
    for i in range(len(some_rows)):
        for j in range(some_places[i] + 1, block_ptr[some_rows[i] + 1]):
            start[rest[j] + 1] += 1
    for t in range(len(start) - 1):
        start[t + 1] += start[t]
    fill = start[:-1].copy()
    for i in range(len(some_rows)):
        for j in range(some_places[i] + 1, block_ptr[some_rows[i] + 1]):
            t = rest[j]
            rows[fill[t]], places[fill[t]] = some_rows[i], j
            fill[t] += 1


def first_alike(index: Index) -> Int32s:
    """Return for each term the first that exactly the same users have, which may be the term itself.

    A combination has the same users if its terms are replaced by these.
    """
    keys = _sums_of_users(index)
    return _first_of_same(index, keys, np.argsort(keys, kind="stable"))


@njit(cache=True, nogil=True)
def _sums_of_users(index: Index) -> UInt64s:
    """Return the sum of the hashes of each term's users: terms of the same users have the same."""
    _, _, entry_user, posting_ptr, postings = index
    n_terms = len(posting_ptr) - 1
    keys = np.zeros(n_terms, np.uint64)
    for t in range(n_terms):
        for place in postings[posting_ptr[t] : posting_ptr[t + 1]]:
            mixed = (np.uint64(entry_user[place]) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
            mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
            keys[t] += mixed ^ (mixed >> np.uint64(32))
    return keys


@njit(cache=True, nogil=True)
def _first_of_same(index: Index, keys: UInt64s, order: Int64s) -> Int32s:
    """Compare the users of neighbours with the same sum."""
    n_terms = len(keys)
    first = np.arange(n_terms).astype(np.int32)
    for i in range(1, n_terms):
        before, term = first[order[i - 1]], order[i]
        if keys[before] == keys[term] and _same_users(before, term, index):
            first[term] = before
    return first


@njit(cache=True, nogil=True)
def _same_users(one: int, other: int, index: Index) -> bool:
    _, _, entry_user, posting_ptr, postings = index
    n = posting_ptr[one + 1] - posting_ptr[one]
    if n != posting_ptr[other + 1] - posting_ptr[other]:
        return False
    for i in range(n):
        if entry_user[postings[posting_ptr[one] + i]] != entry_user[postings[posting_ptr[other] + i]]:
            return False
    return True


@njit(cache=True, nogil=True, parallel=True)
def mark_alone(index: Index, k: int, m: int, work: Int32s, alone: Int8s, most_steps: int) -> Int64s:
    """Mark the users with a combination of up to m terms (1 to 3) that fewer than k users have.

    Return the steps that each thread took for combinations of three. A thread that has taken `most_steps` looks at no
    further ones; then users who are not marked may stand alone all the same. `work` is zeroed work space, a number per
    term for each thread. Users marked before are not looked at again.
    """
    _, _, entry_user, posting_ptr, postings = index
    n_threads = work.shape[0]
    n_terms = len(posting_ptr) - 1
    steps = np.zeros(n_threads, np.int64)
    for thread in prange(n_threads):
        local = work[thread]
        for pivot in range(thread, n_terms, n_threads):
            entries = postings[posting_ptr[pivot] : posting_ptr[pivot + 1]]
            if len(entries) < k:
                for e in entries:
                    alone[entry_user[e]] = 1
                continue
            if m == 1 or _all_marked(entries, entry_user, alone):
                continue
            block_ptr, rest, meaning = _block(pivot, index, local)
            left = most_steps - steps[thread]
            steps[thread] += _mark_block(entries, entry_user, block_ptr, rest, len(meaning), k, m, alone, left)
    return steps


@njit(cache=True, nogil=True)
def _all_marked(entries: Int64s, entry_user: Int32s, alone: Int8s) -> bool:
    for e in entries:
        if alone[entry_user[e]] == 0:
            return False
    return True


@njit(cache=True, nogil=True)
def _mark_block(
    entries: Int64s, entry_user: Int32s, block_ptr: Int64s, rest: Int32s, n_local: int, k: int, m: int, alone: Int8s,
    most_steps: int,
) -> int:  # fmt: skip
    """Mark the users who stand alone with the pivot of this block; return the steps that combinations of three took."""
    n, n_steps = len(entries), 0
    start = np.zeros(n_local + 1, np.int64)
    rows = np.empty(len(rest), np.int32)
    places = np.empty(len(rest), np.int64)
    _spread(np.arange(n).astype(np.int32), block_ptr[:-1] - 1, block_ptr, rest, start, rows, places)
    count = np.zeros(n_local, np.int32)
    fewest = n
    for t in range(n_local - 1, -1, -1):
        some = rows[start[t] : start[t + 1]]
        n_lacking, rarest = n - len(some), fewest
        fewest = min(fewest, len(some))
        if len(some) < k:
            for row in some:
                alone[entry_user[entries[row]]] = 1
            continue
        # Of the users of the pivot and a third term at most those go who lack this one: k or more are sure to stay.
        if m == 2 or rarest - n_lacking >= k or _all_marked(entries[some], entry_user, alone):
            continue
        if n_steps >= most_steps:
            # Counted, so that the limit is seen to be passed; pairs are still looked at.
            n_steps += 1
            continue
        for i in range(start[t], start[t + 1]):
            n_steps += 1 + block_ptr[rows[i] + 1] - places[i]
        for i in range(start[t], start[t + 1]):
            for j in range(places[i] + 1, block_ptr[rows[i] + 1]):
                count[rest[j]] += 1
        for i in range(start[t], start[t + 1]):
            for j in range(places[i] + 1, block_ptr[rows[i] + 1]):
                if count[rest[j]] < k:
                    alone[entry_user[entries[rows[i]]]] = 1
        for i in range(start[t], start[t + 1]):
            for j in range(places[i] + 1, block_ptr[rows[i] + 1]):
                count[rest[j]] = 0
    return n_steps


@njit(cache=True, nogil=True)
def relabel(rows: Rows[np.int32], label: Int32s) -> tuple[Rows[np.int32], Int64s]:
    """Return the rows in labels, ascending, and the place that each entry came from; label -1 leaves a term out."""
    row_ptr, terms = rows
    n_users = len(row_ptr) - 1
    n_kept = 0
    for t in terms:
        n_kept += label[t] >= 0
    new_ptr = np.zeros(n_users + 1, np.int64)
    keys = np.empty(n_kept, np.int64)
    users = np.empty(n_kept, np.int32)
    n = 0
    for user in range(n_users):
        for j in range(row_ptr[user], row_ptr[user + 1]):
            if label[terms[j]] >= 0:
                # The low half remembers the place within the row, so that one sort carries both.
                keys[n] = (np.int64(label[terms[j]]) << 32) | (j - row_ptr[user])
                users[n] = user
                n += 1
        new_ptr[user + 1] = n
        sort_in_place(keys[new_ptr[user] : n])
    labels = np.empty(n_kept, np.int32)
    source = np.empty(n_kept, np.int64)
    for i in range(n_kept):
        labels[i] = keys[i] >> 32
        source[i] = row_ptr[users[i]] + (keys[i] & 0xFFFFFFFF)
    return Rows(new_ptr, labels), source
