"""km in rounds, for histories that lie on several machines: which part goes where, and what each may keep.

The histories are compressed rows over *labels*, terms numbered by the order in which they are granted. A term is kept
by the users who can have it beside the earlier terms that they keep. So what is right for a label follows from the
labels before it; whoever decides again from what others have decided, as long as anything changes, ends where one pass
in order does (`pivots.build_up`).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from queryveil.kernels.arrays import Int8s, Int32s, Int64s
from queryveil.kernels.pivots import _settle_block
from queryveil.kernels.settle import ROW_OPEN


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
    """Say what each shard must be sent to decide its open labels; label l is decided by shard l % n_shards.

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
