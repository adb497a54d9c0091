"""Count combinations of terms in histories: which are frequent, and who stands alone."""

from typing import NamedTuple

import numpy as np

from queryveil.data import Int8s, Int32s, Int64s
from queryveil.data.rows import Rows, group, sort_in_place, sort_in_rows
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


class _Block(NamedTuple):
    """The commoner terms beside a pivot, user after user, as local numbers, and the terms that these mean.

    Beside each of the `rest` stand its user and the place where the terms of that user end.
    """

    rest: Int32s
    user: Int32s
    ends: Int64s
    meaning: Int32s


@njit(cache=True, nogil=True)
def _block(pivot: int, index: Index, local: Int32s) -> _Block:
    row_ptr, terms, entry_user, posting_ptr, postings = index
    entries = postings[posting_ptr[pivot] : posting_ptr[pivot + 1]]
    n = 0
    for entry in entries:
        n += row_ptr[entry_user[entry] + 1] - entry - 1
    rest, user, met = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.int32)
    ends = np.empty(n, np.int64)
    n, n_met = 0, 0
    for entry in entries:
        end = row_ptr[entry_user[entry] + 1]
        ends[n : n + end - entry - 1] = n + end - entry - 1
        for t in terms[entry + 1 : end]:
            rest[n], user[n] = t, entry_user[entry]
            n += 1
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
    return _Block(rest, user, ends, meaning)


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
            _add_block(pivot, _block(pivot, index, local), k, m, totals)
    return totals


@njit(cache=True, nogil=True)
def _add_block(pivot: int, block: _Block, k: int, m: int, totals: Int64s) -> None:
    """Add the frequent combinations whose rarest term is the pivot, depth first."""
    rest, _, ends, meaning = block
    n_local = len(meaning)
    start = np.zeros((m, n_local + 1), np.int64)
    places = np.empty((m, len(rest)), np.int64)
    prefix = np.full(m, -1, np.int64)
    start[1], places[1] = group(rest, n_local)
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
            some = places[level, first:last]
            level += 1
            prefix[level] = -1
            _sort_followers(some, rest, ends, start[level], places[level])


@njit(cache=True, nogil=True)
def _sort_followers(some: Int64s, rest: Int32s, ends: Int64s, start: Int64s, places: Int64s) -> None:
    """Sort the terms that follow some places in their rows."""
    start[:] = 0
    for place in some:
        for j in range(place + 1, ends[place]):
            start[rest[j] + 1] += 1
    for t in range(len(start) - 1):
        start[t + 1] += start[t]
    fill = start[:-1].copy()
    for place in some:
        for j in range(place + 1, ends[place]):
            t = rest[j]
            places[fill[t]] = j
            fill[t] += 1


def first_alike(index: Index) -> Int32s:
    """Return for each term the first that exactly the same users have, which may be the term itself.

    A combination has the same users if its terms are replaced by these.
    """
    term_users = Rows(index.posting_ptr, index.entry_user[index.postings])
    first: dict[bytes, int] = {}
    terms = range(term_users.n_rows)
    return np.array([first.setdefault(term_users.row(term).tobytes(), term) for term in terms], np.int32)


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
            if m == 1 or _all_marked(entry_user[entries], alone):
                continue
            block = _block(pivot, index, local)
            steps[thread] += _mark_block(len(entries), block, k, m, alone, most_steps - steps[thread])
    return steps


@njit(cache=True, nogil=True)
def _all_marked(users: Int32s, alone: Int8s) -> bool:
    for user in users:
        if alone[user] == 0:
            return False
    return True


@njit(cache=True, nogil=True)
def _mark_block(n_users: int, block: _Block, k: int, m: int, alone: Int8s, most_steps: int) -> int:
    """Mark the users who stand alone with the pivot of this block; return the steps that combinations of three took."""
    rest, user, ends, meaning = block
    start, places = group(rest, len(meaning))
    count = np.zeros(len(meaning), np.int32)
    fewest, n_steps = n_users, 0
    for t in range(len(meaning) - 1, -1, -1):
        some = places[start[t] : start[t + 1]]
        n_lacking, rarest = n_users - len(some), fewest
        fewest = min(fewest, len(some))
        if len(some) < k:
            for place in some:
                alone[user[place]] = 1
            continue
        # Of the users of the pivot and a third term at most those go who lack this one: k or more are sure to stay.
        if m == 2 or rarest - n_lacking >= k or _all_marked(user[some], alone):
            continue
        if n_steps >= most_steps:
            # Counted, so that the limit is seen to be passed; pairs are still looked at.
            n_steps += 1
            continue
        for place in some:
            n_steps += 1 + ends[place] - place
            for other in rest[place + 1 : ends[place]]:
                count[other] += 1
        for place in some:
            for other in rest[place + 1 : ends[place]]:
                if count[other] < k:
                    alone[user[place]] = 1
        for place in some:
            for other in rest[place + 1 : ends[place]]:
                count[other] = 0
    return n_steps


def relabel(rows: Rows[np.int32], label: Int32s) -> tuple[Rows[np.int32], Int64s]:
    """Return the rows in labels, ascending, and the place that each entry came from; label -1 leaves a term out."""
    labels = label[rows.values]
    source = np.flatnonzero(labels >= 0)
    ptr, order = sort_in_rows(rows.row_of_entry[source], labels[source], n_rows=rows.n_rows, n_codes=len(label))
    source = source[order]
    return Rows(ptr, labels[source]), source
