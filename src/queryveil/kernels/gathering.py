"""Gather near transactions into clusters of k: in each block the largest takes its best partners one by one.

Vectors are as in `neighbourhoods`. What a cluster keeps is the weighted sum of the least counts of its members: with
left-overs carried up, the items of an LCG at or below a node are as many as the least of the members has there.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from queryveil.kernels.arrays import Bools, Floats, Int32s, Int64s

_CLAIM = 0.5
"""How much of what a partner brings counts against it.

At 1 a partner is chosen by how little the distortion rises, which favours small partners, since what they lose is
little; at 0 by what the cluster keeps, which favours large ones. On two made-up logs of nouns 0.3 to 0.7 came within
one percent of each other; 0 and 1 were mostly one to two percent worse.
"""


@njit(cache=True, nogil=True)
def sizes(ptr: Int64s, nodes: Int32s, under: Int32s, weight: Floats) -> Floats:
    """Give the weighted size of each vector: what a cluster of its like alone would keep."""
    out = np.zeros(len(ptr) - 1)
    for row in range(len(out)):
        for i in range(ptr[row], ptr[row + 1]):
            out[row] += weight[nodes[i]] * under[i]
    return out


@njit(cache=True, nogil=True)
def heads_of(head_nodes: Int32s, ptr: Int64s, nodes: Int32s, under: Int32s, weight: Floats) -> Floats:
    """Give the weighted counts of each row at a few nodes."""
    number = np.full(len(weight), -1, np.int64)
    for i in range(len(head_nodes)):
        number[head_nodes[i]] = i
    heads = np.zeros((len(ptr) - 1, len(head_nodes)))
    for row in range(len(heads)):
        for i in range(ptr[row], ptr[row + 1]):
            if number[nodes[i]] >= 0:
                heads[row, number[nodes[i]]] = weight[nodes[i]] * under[i]
    return heads


@njit(cache=True, nogil=True, parallel=True)
def gather(
    rows: Int64s,
    ends: Int64s,
    ptr: Int64s,
    nodes: Int32s,
    under: Int32s,
    weight: Floats,
    size: Floats,
    head_nodes: Int32s,
    heads: Floats,
    k: int,
    work: Int32s,
) -> Int32s:
    """Give each transaction's cluster of exactly k; up to k-1 in the last block stay without one (-1).

    The blocks are as `neighbourhoods.split` gives them in steps of k, in each the rows by falling size; `heads` are
    the weighted counts of each row at `head_nodes`, which rule out most partners at little cost; `work` is zeros, a
    number per node for each thread.
    """
    cluster_of = np.full(len(size), -1, np.int32)
    n_threads = len(work)
    for thread in prange(n_threads):
        for block in range(thread, len(ends) - 1, n_threads):
            mine = rows[ends[block] : ends[block + 1]]
            _gather_block(
                mine,
                ends[block] // k,
                ptr,
                nodes,
                under,
                weight,
                size[mine],
                head_nodes,
                heads[mine],
                k,
                work[thread],
                cluster_of,
            )
    return cluster_of


@njit(cache=True, nogil=True)
def _gather_block(
    rows: Int64s,
    first_cluster: int,
    ptr: Int64s,
    nodes: Int32s,
    under: Int32s,
    weight: Floats,
    size: Floats,
    head_nodes: Int32s,
    heads: Floats,
    k: int,
    dense: Int32s,
    cluster_of: Int32s,
) -> None:
    taken = np.zeros(len(rows), np.bool_)
    largest = 0
    for row in rows:
        largest = max(largest, ptr[row + 1] - ptr[row])
    least, count = np.empty(largest, np.int32), np.empty(largest, np.int32)
    head = np.empty(len(head_nodes))
    seed = 0
    for cluster in range(first_cluster, first_cluster + len(rows) // k):
        while taken[seed]:
            seed += 1
        taken[seed] = True
        row = rows[seed]
        cluster_of[row] = cluster
        n = ptr[row + 1] - ptr[row]
        least[:n], count[:n] = nodes[ptr[row] : ptr[row + 1]], under[ptr[row] : ptr[row + 1]]
        for n_members in range(1, k):
            kept = 0.0
            for i in range(n):
                dense[least[i]] = count[i]
                kept += weight[least[i]] * count[i]
            for i in range(len(head)):
                head[i] = weight[head_nodes[i]] * dense[head_nodes[i]]
            best = _best_partner(
                n_members, kept, head, rows, seed + 1, taken, ptr, nodes, under, weight, size, heads, dense
            )
            for i in range(n):
                dense[least[i]] = 0
            taken[best] = True
            cluster_of[rows[best]] = cluster
            n = lower(least, count, n, rows[best], ptr, nodes, under, dense)


@njit(cache=True, nogil=True)
def _best_partner(
    n_members: int,
    kept: float,
    head: Floats,
    rows: Int64s,
    first: int,
    taken: Bools,
    ptr: Int64s,
    nodes: Int32s,
    under: Int32s,
    weight: Floats,
    size: Floats,
    heads: Floats,
    dense: Int32s,
) -> int:
    """Give the place of the row to take next; the rows are by falling size."""
    best, best_value = -1, -np.inf
    for place in range(first, len(rows)):
        if taken[place]:
            continue
        needed = (best_value + _CLAIM * size[place]) / (n_members + 1)
        if size[place] <= needed:
            # Even if it were shared as a whole; the smaller ones behind it need no less in proportion.
            break
        # What the cluster and the row have in excess of each other at the heads is not shared.
        excess, lack = 0.0, 0.0
        for i in range(len(head)):
            difference = heads[place, i] - head[i]
            excess += max(difference, 0.0)
            lack += max(-difference, 0.0)
        if min(size[place] - excess, kept - lack) <= needed:
            continue
        value = (n_members + 1) * shared(rows[place], ptr, nodes, under, weight, dense) - _CLAIM * size[place]
        if value > best_value:
            best, best_value = place, value
    return best


@njit(cache=True, nogil=True)
def shared(row: int, ptr: Int64s, nodes: Int32s, under: Int32s, weight: Floats, dense: Int32s) -> float:
    """Give the weighted sum of the lesser counts of a row and of the vector spread out in `dense`."""
    total = 0.0
    for i in range(ptr[row], ptr[row + 1]):
        other = dense[nodes[i]]
        if other > 0:
            total += weight[nodes[i]] * min(other, under[i])
    return total


@njit(cache=True, nogil=True)
def lower(
    least: Int32s, count: Int32s, n: int, row: int, ptr: Int64s, nodes: Int32s, under: Int32s, dense: Int32s
) -> int:
    """Lower a vector of n nodes in place to the lesser counts of itself and a row; give the number of nodes left."""
    for i in range(ptr[row], ptr[row + 1]):
        dense[nodes[i]] = under[i]
    n_left = 0
    for i in range(n):
        smaller = min(count[i], dense[least[i]])
        if smaller > 0:
            least[n_left], count[n_left] = least[i], smaller
            n_left += 1
    for i in range(ptr[row], ptr[row + 1]):
        dense[nodes[i]] = 0
    return n_left


@njit(cache=True, nogil=True)
def place_rest(
    cluster_of: Int32s,
    member_ptr: Int64s,
    members: Int64s,
    ptr: Int64s,
    nodes: Int32s,
    under: Int32s,
    weight: Floats,
) -> None:
    """Give each transaction without a cluster to the one whose distortion rises least; all are compared."""
    rest = np.flatnonzero(cluster_of < 0)
    best_value = np.full(len(rest), -np.inf)
    dense = np.zeros(len(weight), np.int32)
    largest = 0
    for row in range(len(ptr) - 1):
        largest = max(largest, ptr[row + 1] - ptr[row])
    least, count = np.empty(largest, np.int32), np.empty(largest, np.int32)
    for cluster in range(len(member_ptr) - 1):
        mine = members[member_ptr[cluster] : member_ptr[cluster + 1]]
        n = ptr[mine[0] + 1] - ptr[mine[0]]
        least[:n], count[:n] = nodes[ptr[mine[0]] : ptr[mine[0] + 1]], under[ptr[mine[0]] : ptr[mine[0] + 1]]
        for row in mine[1:]:
            n = lower(least, count, n, row, ptr, nodes, under, dense)
        before = 0.0
        for i in range(n):
            dense[least[i]] = count[i]
            before += weight[least[i]] * count[i]
        for i in range(len(rest)):
            after = shared(rest[i], ptr, nodes, under, weight, dense)
            value = (len(mine) + 1) * after - len(mine) * before
            if value > best_value[i]:
                best_value[i], cluster_of[rest[i]] = value, cluster
        for i in range(n):
            dense[least[i]] = 0
