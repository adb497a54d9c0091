"""Algorithm 1 of Fard and Wang: transactions, the longest first, go to the open cluster that suffers least."""

from __future__ import annotations

import numpy as np
from numba import njit

from queryveil.kernels.arrays import Floats, Int32s, Int64s
from queryveil.kernels.lcg import join, shrink


@njit(cache=True, nogil=True)
def assign_in_order(
    order: Int64s,
    row_length: Int64s,
    ptr: Int64s,
    nodes: Int32s,
    own: Int32s,
    parent: Int32s,
    loss: Floats,
    k: int,
    r: int,
    carry: bool,
    by_rise: bool,
) -> tuple[Int32s, Int64s]:
    """Give each transaction's cluster, and the turn in which it joined.

    `order` is by falling length; `ptr`, `nodes`, `own` are the closures. `by_rise` compares how much the distortion
    rises, else how large it is after joining.
    """
    n_rows, n_clusters = len(order), len(order) // k
    cluster_of = np.full(n_rows, -1, np.int32)
    turn = np.zeros(n_rows, np.int64)
    longest = 0
    for row in range(n_rows):
        longest = max(longest, ptr[row + 1] - ptr[row])
    work = np.zeros((2, len(parent)), np.int64)
    needed = np.zeros(len(parent), np.int8)
    new, new_own = np.empty(2 * longest, np.int32), np.empty(2 * longest, np.int32)

    size = np.ones(n_clusters, np.int64)
    sum_length = np.empty(n_clusters, np.int64)
    distortion = np.zeros(n_clusters)
    lcg = [nodes[:0]] * n_clusters
    lcg_own = [own[:0]] * n_clusters
    for c in range(n_clusters):
        # Paper: algorithm 1, line 4.
        row = order[c * k]
        cluster_of[row], turn[row], sum_length[c] = c, c, row_length[row]
        lcg[c], lcg_own[c] = nodes[ptr[row] : ptr[row + 1]], own[ptr[row] : ptr[row + 1]]
        for i in range(len(lcg[c])):
            distortion[c] += lcg_own[c][i] * loss[lcg[c][i]]

    following = np.arange(1, n_clusters + 1)
    preceding = np.arange(-1, n_clusters)
    first_open = 0 if k > 1 else n_clusters
    for i in range(n_rows):
        row = order[i]
        if cluster_of[row] >= 0:
            continue
        mine, mine_own = nodes[ptr[row] : ptr[row + 1]], own[ptr[row] : ptr[row + 1]]
        all_full = first_open == n_clusters
        best, best_value, best_distortion = -1, np.inf, 0.0
        c, n_tried = 0 if all_full else first_open, 0
        while c < n_clusters and (all_full or n_tried < r):
            total, length, _ = join(lcg[c], lcg_own[c], mine, mine_own, parent, loss, carry, work, new, new_own)
            after = (size[c] + 1) * (total - length) + sum_length[c] + row_length[row]
            value = after - distortion[c] if by_rise else after
            # The margin keeps rounding from deciding between equals: the earlier cluster wins.
            if value < best_value - 1e-9:
                best, best_value, best_distortion = c, value, after
            n_tried += 1
            c = c + 1 if all_full else following[c]
        _, _, n = join(lcg[best], lcg_own[best], mine, mine_own, parent, loss, carry, work, new, new_own)
        n = shrink(new[:n], new_own[:n], parent, needed)
        lcg[best], lcg_own[best] = new[:n].copy(), new_own[:n].copy()
        cluster_of[row], turn[row] = best, n_clusters + i
        size[best] += 1
        sum_length[best] += row_length[row]
        distortion[best] = best_distortion
        if not all_full and size[best] == k:
            before, after_it = preceding[best], following[best]
            if best == first_open:
                first_open = after_it
            else:
                following[before] = after_it
            if after_it < n_clusters:
                preceding[after_it] = before
    return cluster_of, turn
