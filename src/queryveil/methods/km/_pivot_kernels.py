"""Blocks around one term after another: delete from them, build them up, or give back to them.

The histories are compressed rows over *labels*, terms renumbered by some order. An *entry* is a place in `terms`,
`entry_user` its user, `postings` lists the entries of each term, and `alive` marks those still there. `work` is
zeroed work space, two numbers per term.

The histories are compressed rows over *labels*, terms numbered by the order in which they are granted. A term is kept
by the users who can have it beside the earlier terms that they keep. So what is right for a label follows from the
labels before it; whoever decides again from what others have decided, as long as anything changes, ends where one pass
in order does (`pivots.build_up`).
"""

import numpy as np
from numba import njit

from queryveil.data import Int8s, Int32s, Int64s, UInt64s
from queryveil.methods.km._settle_kernels import ROW_DEAD, ROW_FIXED, ROW_OPEN, settle


@njit(cache=True, nogil=True)
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
    random_state: UInt64s,
    work: Int32s,
    unsettled: Int8s,
) -> int:
    """Make the combinations of each pivot with terms of higher label frequent; give the number of deletions.

    `unsettled` marks the pivots that must be looked at again, because a combination of theirs lost a user.
    """
    graves = np.empty(len(terms), np.int64)
    n_deleted = 0
    for pivot in pivots:
        entries = _alive_entries(pivot, posting_ptr, postings, alive)
        if len(entries) == 0:
            continue
        row_state = np.full(len(entries), ROW_OPEN, np.int8)
        first = entries + 1
        last = row_ptr[entry_user[entries] + 1]
        n = _settle_block(first, last, terms, row_state, alive, ranks, ranks[pivot], k, m, random_state, work, graves)
        for row in range(len(entries)):
            if row_state[row] == ROW_DEAD:
                alive[entries[row]] = 0
                graves[n] = entries[row]
                n += 1
        n_deleted += n
        for entry in graves[:n]:
            # A combination belongs to its lowest label: only pivots up to this one can have lost support.
            for j in range(row_ptr[entry_user[entry]], entry):
                unsettled[terms[j]] |= alive[j]
            unsettled[terms[entry]] = 1
        unsettled[pivot] = 0 if n == 0 else unsettled[pivot]
    return n_deleted


@njit(cache=True, nogil=True)
def build_up(
    pivots: Int32s,
    row_ptr: Int64s,
    entry_user: Int32s,
    posting_ptr: Int64s,
    postings: Int64s,
    k: int,
    m: int,
    built: Int32s,
    length: Int32s,
    work: Int32s,
    kept: Int8s,
) -> None:
    """Return the pivots, in turn, each to as many of its users as can have it, and mark that in `kept`.

    User u has been given `built[row_ptr[u]:row_ptr[u] + length[u]]` so far.
    """
    alive = np.ones(len(built), np.int8)
    graves = np.empty(0, np.int64)
    no_random = np.zeros(1, np.uint64)
    for pivot in pivots:
        entries = postings[posting_ptr[pivot] : posting_ptr[pivot + 1]]
        users = entry_user[entries]
        row_state = np.full(len(users), ROW_OPEN, np.int8)
        first = row_ptr[users]
        # The pivot ranks below all others (zeros will do): it alone is given up, never a term that is there.
        _settle_block(first, first + length[users], built, row_state, alive, work[1], -1, k, m, no_random, work, graves)
        for row in range(len(users)):
            if row_state[row] == ROW_OPEN:
                user = users[row]
                built[row_ptr[user] + length[user]] = pivot
                length[user] += 1
                kept[entries[row]] = 1


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
    """Return each pivot in turn back to as many users as can have it; give the number of entries restored.

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
    """Return the largest set of the pivot's lost entries that can all come back without breaking the promise.

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
    if n_lost == 0:
        return entries[:0]
    users = entry_user[entries]
    graves = np.empty(0, np.int64)
    no_random = np.zeros(1, np.uint64)
    _settle_block(
        row_ptr[users], row_ptr[users + 1], terms, row_state, alive, work[1], -1, k, m, no_random, work, graves
    )
    back: Int64s = entries[row_state == ROW_OPEN]
    return back


@njit(cache=True, nogil=True)
def _alive_entries(pivot: int, posting_ptr: Int64s, postings: Int64s, alive: Int8s) -> Int64s:
    entries = np.empty(posting_ptr[pivot + 1] - posting_ptr[pivot], np.int64)
    n = 0
    for i in range(posting_ptr[pivot], posting_ptr[pivot + 1]):
        if alive[postings[i]]:
            entries[n] = postings[i]
            n += 1
    return entries[:n]


@njit(cache=True, nogil=True)
def _settle_block(
    first: Int64s,
    last: Int64s,
    terms: Int32s,
    row_state: Int8s,
    alive: Int8s,
    ranks: Int32s,
    pivot_rank: int,
    k: int,
    m: int,
    random_state: UInt64s,
    work: Int32s,
    graves: Int64s,
) -> int:
    """Settle singles and pairs in place, the rest on a small copy of what they leave; give the number of graves."""
    n_graves = settle(
        first, last, terms, row_state, alive, ranks, pivot_rank, k, min(m, 2), work[0], random_state, graves
    )
    if m <= 2:
        return n_graves
    rows, row_ptr, places, small_terms, meaning = _shrink(first, last, terms, row_state, alive, work[1])
    if len(places) == 0:
        return n_graves
    small_state = row_state[rows]
    n_more = settle(
        row_ptr[:-1],
        row_ptr[1:],
        small_terms,
        small_state,
        np.ones(len(places), np.int8),
        ranks[meaning],
        pivot_rank,
        k,
        m,
        np.zeros(len(meaning), np.int32),
        random_state,
        graves[n_graves:],
    )
    row_state[rows] = small_state
    for i in range(n_graves, n_graves + n_more):
        graves[i] = places[graves[i]]
        alive[graves[i]] = 0
    return n_graves + n_more


@njit(cache=True, nogil=True)
def _shrink(
    first: Int64s, last: Int64s, terms: Int32s, row_state: Int8s, alive: Int8s, number: Int32s
) -> tuple[Int64s, Int64s, Int64s, Int32s, Int32s]:
    """Leave out dead rows and every term that no open row has: no combination to be settled holds it.

    Gives the rows that are left; as compressed rows, the places of their terms and these terms in numbers of their
    own; and the terms that the numbers mean.
    """
    size = 0
    for row in range(len(row_state)):
        if row_state[row] != ROW_DEAD:
            size += last[row] - first[row]
    meaning = np.empty(size, np.int32)
    n_terms = 0
    for row in range(len(row_state)):
        if row_state[row] == ROW_OPEN:
            for j in range(first[row], last[row]):
                if alive[j] and number[terms[j]] == 0:
                    meaning[n_terms] = terms[j]
                    n_terms += 1
                    number[terms[j]] = n_terms
    rows = np.empty(len(row_state), np.int64)
    row_ptr = np.zeros(len(row_state) + 1, np.int64)
    places = np.empty(size, np.int64)
    small_terms = np.empty(size, np.int32)
    n, n_rows = 0, 0
    for row in range(len(row_state)):
        if row_state[row] != ROW_DEAD:
            for j in range(first[row], last[row]):
                if alive[j] and number[terms[j]]:
                    places[n], small_terms[n] = j, number[terms[j]] - 1
                    n += 1
            rows[n_rows] = row
            n_rows += 1
            row_ptr[n_rows] = n
    for i in range(n_terms):
        number[meaning[i]] = 0
    return rows[:n_rows], row_ptr[: n_rows + 1], places[:n], small_terms[:n], meaning[:n_terms]


@njit(cache=True, nogil=True)
def settle_labels(
    pivots: Int32s,
    row_ptr: Int64s,
    labels: Int32s,
    entry_row: Int32s,
    posting_ptr: Int64s,
    postings: Int64s,
    kept: Int8s,
    k: int,
    m: int,
    work: Int32s,
) -> None:
    """Decide for each pivot, in ascending order, which rows keep it, and mark that in `kept`.

    The rows hold all users of the pivots, each with at least the kept labels before its last pivot.
    """
    graves = np.empty(0, np.int64)
    no_random = np.zeros(1, np.uint64)
    for pivot in pivots:
        entries = postings[posting_ptr[pivot] : posting_ptr[pivot + 1]]
        row_state = np.full(len(entries), ROW_OPEN, np.int8)
        # The pivot ranks below all others (zeros will do): it alone is given up, never a term that is there.
        _settle_block(
            row_ptr[entry_row[entries]], entries, labels, row_state, kept, work[1], -1, k, m, no_random, work, graves
        )
        for row in range(len(entries)):
            kept[entries[row]] = row_state[row] == ROW_OPEN


@njit(cache=True, nogil=True)
def share_out(
    row_ptr: Int64s, labels: Int32s, kept: Int8s, is_open: Int8s, n_shards: int
) -> tuple[Int32s, Int64s, Int64s, Int64s]:
    """Return what each shard must be sent to decide its open labels; label l is decided by shard l % n_shards.

    A row goes to a shard with an open label of its own: those labels, and all kept ones before the last of them. Gives
    for each such message its shard and its row, where its places begin, and the places.
    """
    last = np.full(n_shards, -1, np.int64)
    n_messages, n_places = 0, 0
    for fill in range(2):
        if fill:
            shard_of = np.empty(n_messages, np.int32)
            row_of = np.empty(n_messages, np.int64)
            begins = np.zeros(n_messages + 1, np.int64)
            places = np.empty(n_places, np.int64)
        n_messages, n_places = 0, 0
        for row in range(len(row_ptr) - 1):
            for j in range(row_ptr[row], row_ptr[row + 1]):
                if is_open[labels[j]]:
                    last[labels[j] % n_shards] = j
            for shard in range(n_shards):
                if last[shard] < 0:
                    continue
                for j in range(row_ptr[row], last[shard] + 1):
                    if kept[j] or (is_open[labels[j]] and labels[j] % n_shards == shard):
                        if fill:
                            places[n_places] = j
                        n_places += 1
                if fill:
                    shard_of[n_messages], row_of[n_messages] = shard, row
                    begins[n_messages + 1] = n_places
                n_messages += 1
                last[shard] = -1
    return shard_of, row_of, begins, places
