"""Blocks around one term after another: delete from them, build them up, or restore terms in them.

The histories are an `Index` over *labels*, terms renumbered by some order. `alive` marks the entries that are still
there. `work` is zeroed work space, two numbers per term.

`share_out` is for a cluster: labels are numbered by the order in which they are granted, and a term is kept by the
users who can have it beside the earlier terms that they keep. So what is right for a label follows from the labels
before it; whoever decides again from what others have decided, as long as anything changes, ends where one pass does.
"""

import numpy as np

from queryveil.data import Int8s, Int32s, Int64s, UInt64s
from queryveil.data.rows import Rows, pointers
from queryveil.kernels import njit
from queryveil.methods.km._settle_kernels import ROW_DEAD, ROW_FIXED, ROW_OPEN, Block, Rule, settle
from queryveil.methods.km.combinations import Index


@njit(cache=True, nogil=True)
def delete_around(
    pivots: Int32s, index: Index, alive: Int8s, ranks: Int32s, k: int, m: int, random_state: UInt64s, work: Int32s,
    unsettled: Int8s,
) -> None:  # fmt: skip
    """Make the combinations of each pivot with terms of higher label frequent.

    `unsettled` marks the pivots that must be looked at again, because a combination of theirs lost a user.
    """
    row_ptr, terms, entry_user, posting_ptr, postings = index
    deleted = np.empty(len(terms), np.int64)
    for pivot in pivots:
        entries = postings[posting_ptr[pivot] : posting_ptr[pivot + 1]]
        entries = entries[alive[entries] == 1]
        if len(entries) == 0:
            continue
        row_state = np.full(len(entries), ROW_OPEN, np.int8)
        block = Block(entries + 1, row_ptr[entry_user[entries] + 1], terms, row_state, alive)
        n = _settle_block(block, Rule(ranks, np.int64(ranks[pivot]), k, random_state), m, work, deleted)
        for entry in entries[row_state == ROW_DEAD]:
            alive[entry] = 0
            deleted[n] = entry
            n += 1
        for entry in deleted[:n]:
            # A combination belongs to its lowest label: only pivots up to this one can have lost support.
            for j in range(row_ptr[entry_user[entry]], entry):
                unsettled[terms[j]] |= alive[j]
            unsettled[terms[entry]] = 1
        unsettled[pivot] = 0 if n == 0 else unsettled[pivot]


@njit(cache=True, nogil=True)
def build_up(
    pivots: Int32s, index: Index, is_open: Int8s, k: int, m: int, built: Int32s, length: Int32s, work: Int32s,
    kept: Int8s,
) -> None:  # fmt: skip
    """Grant the open ones of the pivots, in turn, each to as many of its users as can have it; mark that in `kept`.

    User u has been given `built[row_ptr[u]:row_ptr[u] + length[u]]` so far. A pivot that is not open is given to those
    for whom it is marked already.
    """
    row_ptr, _, entry_user, posting_ptr, postings = index
    alive = np.ones(len(built), np.int8)
    for pivot in pivots:
        entries = postings[posting_ptr[pivot] : posting_ptr[pivot + 1]]
        if is_open[pivot]:
            row_state = np.full(len(entries), ROW_OPEN, np.int8)
            first = row_ptr[entry_user[entries]]
            _settle_pivot(Block(first, first + length[entry_user[entries]], built, row_state, alive), k, m, work)
            kept[entries] = row_state == ROW_OPEN
        for entry in entries[kept[entries] == 1]:
            user = entry_user[entry]
            built[row_ptr[user] + length[user]] = pivot
            length[user] += 1


@njit(cache=True, nogil=True)
def restore_around(pivots: Int32s, index: Index, alive: Int8s, k: int, m: int, work: Int32s, unsettled: Int8s) -> None:
    """Restore each pivot in turn for as many users as can have it.

    `unsettled` marks the terms of the users who gained one: only those can have become restorable since.
    """
    row_ptr, terms, entry_user, _, _ = index
    for pivot in pivots:
        for entry in restorable(pivot, index, alive, k, m, work):
            alive[entry] = 1
            user = entry_user[entry]
            for j in range(row_ptr[user], row_ptr[user + 1]):
                unsettled[terms[j]] = 1


@njit(cache=True, nogil=True)
def restorable(pivot: int, index: Index, alive: Int8s, k: int, m: int, work: Int32s) -> Int64s:
    """Return the largest set of the pivot's lost entries that can all come back without breaking the promise.

    All of them come back at first; a user with a combination below k leaves again, until nobody must. Supports
    only fall on the way, so the set is unique.
    """
    row_ptr, terms, entry_user, posting_ptr, postings = index
    entries = postings[posting_ptr[pivot] : posting_ptr[pivot + 1]]
    row_state = np.where(alive[entries] == 0, ROW_OPEN, ROW_FIXED)
    if not (row_state == ROW_OPEN).any():
        return entries[:0]
    users = entry_user[entries]
    _settle_pivot(Block(row_ptr[users], row_ptr[users + 1], terms, row_state, alive), k, m, work)
    back: Int64s = entries[row_state == ROW_OPEN]
    return back


@njit(cache=True, nogil=True)
def _settle_pivot(block: Block, k: int, m: int, work: Int32s) -> None:
    """Settle a block in which the pivot alone is given up: it ranks below all others, for which zeros will do."""
    rule = Rule(work[1], np.int64(-1), k, np.zeros(1, np.uint64))
    _settle_block(block, rule, m, work, np.empty(0, np.int64))


@njit(cache=True, nogil=True)
def _settle_block(block: Block, rule: Rule, m: int, work: Int32s, deleted: Int64s) -> int:
    """Settle singles and pairs in place, the rest on a small copy of what they leave; return how many entries went."""
    n_deleted_entries = settle(block, rule, min(m, 2), work[0], deleted)
    if m <= 2:
        return n_deleted_entries
    rows, small, places, meaning = _shrink(block, work[1])
    if len(places) == 0:
        return n_deleted_entries
    small_rule = Rule(rule.ranks[meaning], rule.pivot_rank, rule.k, rule.random_state)
    n_more = settle(small, small_rule, m, np.zeros(len(meaning), np.int32), deleted[n_deleted_entries:])
    block.row_state[rows] = small.row_state
    for i in range(n_deleted_entries, n_deleted_entries + n_more):
        deleted[i] = places[deleted[i]]
        block.alive[deleted[i]] = 0
    return n_deleted_entries + n_more


@njit(cache=True, nogil=True)
def _shrink(block: Block, number: Int32s) -> tuple[Int64s, Block, Int64s, Int32s]:
    """Leave out dead rows and every term that no open row has: no combination to be settled holds it.

    Returns the rows that are left, their block over numbers of its own, the places of its terms, and the terms that
    the numbers mean.
    """
    first, last, terms, row_state, alive = block
    rows = np.flatnonzero(row_state != ROW_DEAD)
    size = (last[rows] - first[rows]).sum()
    meaning = np.empty(size, np.int32)
    n_terms = 0
    for row in rows:
        if row_state[row] == ROW_OPEN:
            for j in range(first[row], last[row]):
                if alive[j] and number[terms[j]] == 0:
                    meaning[n_terms] = terms[j]
                    n_terms += 1
                    number[terms[j]] = n_terms
    row_ptr = np.zeros(len(rows) + 1, np.int64)
    places = np.empty(size, np.int64)
    small_terms = np.empty(size, np.int32)
    n = 0
    for i in range(len(rows)):
        for j in range(first[rows[i]], last[rows[i]]):
            if alive[j] and number[terms[j]]:
                places[n], small_terms[n] = j, number[terms[j]] - 1
                n += 1
        row_ptr[i + 1] = n
    for i in range(n_terms):
        number[meaning[i]] = 0
    small = Block(row_ptr[:-1], row_ptr[1:], small_terms[:n], row_state[rows], np.ones(n, np.int8))
    return rows, small, places[:n], meaning[:n_terms]


def share_out(
    row_ptr: Int64s, labels: Int32s, kept: Int8s, is_open: Int8s, n_shards: int
) -> tuple[Int32s, Int64s, Int64s, Int64s]:
    """Return what each shard must be sent to decide its open labels; label l is decided by shard l % n_shards.

    A row goes to a shard with an open label of its own: those labels, and all kept ones before the last of them.
    Returns for each such message its shard and its row, where its places begin, and the places.
    """
    owner, undecided = Rows(row_ptr, labels).row_of_entry, is_open[labels] == 1
    from_last = np.flatnonzero(undecided)[::-1]
    message, first = np.unique(owner[from_last] * n_shards + labels[from_last] % n_shards, return_index=True)
    row, shard = np.divmod(message, n_shards)
    lengths = from_last[first] + 1 - row_ptr[row]
    ptr = pointers(lengths)
    places = np.repeat(row_ptr[row] - ptr[:-1], lengths) + np.arange(ptr[-1])
    is_own = undecided[places] & (labels[places] % n_shards == np.repeat(shard, lengths))
    sent = Rows(ptr, places).keep((kept[places] == 1) | is_own)
    return shard.astype(np.int32), row, sent.ptr, sent.values
