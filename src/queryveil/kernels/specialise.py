"""Split a class of transactions by which children of a node they have.

`ptr`, `nodes`, `up` are the closures sorted by `up`, the parent of each node, so that a transaction's children of a
node stand together. A transaction that holds an inner node as an item of its own has there, beside its children of
that node, the node itself: an entry whose `up` and node are the same. Entries of leaves have no such second entry.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from queryveil.kernels.arrays import Floats, Int32s, Int64s, UInt64s
from queryveil.kernels.sorting import order_of


@njit(cache=True, nogil=True)
def by_parent(
    ptr: Int64s, nodes: Int32s, own: Int32s, under: Int32s, parent: Int32s
) -> tuple[Int64s, Int32s, Int32s, Int32s]:
    """Give closures sorted by parent: ptr, node, up, and the number of items behind each entry."""
    n_rows = len(ptr) - 1
    has_child = np.zeros(len(parent), np.bool_)
    for node in range(1, len(parent)):
        has_child[parent[node]] = True
    n = 0
    for i in range(len(nodes)):
        n += (nodes[i] > 0) + (own[i] > 0 and has_child[nodes[i]])
    out_ptr = np.zeros(n_rows + 1, np.int64)
    out, up, behind = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.int32)
    n = 0
    for row in range(n_rows):
        first = n
        for i in range(ptr[row], ptr[row + 1]):
            if nodes[i] > 0:
                out[n], up[n], behind[n] = nodes[i], parent[nodes[i]], under[i]
                n += 1
            if own[i] > 0 and has_child[nodes[i]]:
                out[n], up[n], behind[n] = nodes[i], nodes[i], own[i]
                n += 1
        order = order_of(up[first:n].astype(np.int64) * len(parent) + out[first:n])
        out[first:n], up[first:n], behind[first:n] = out[first:n][order], up[first:n][order], behind[first:n][order]
        out_ptr[row + 1] = n
    return out_ptr, out, up, behind


@njit(cache=True, nogil=True)
def children_in(node: int, row: int, ptr: Int64s, up: Int32s) -> tuple[int, int]:
    """Give the places of a row's entries under a node: first, and one behind the last."""
    first, last = ptr[row], ptr[row + 1]
    while first < last:
        middle = (first + last) // 2
        if up[middle] < node:
            first = middle + 1
        else:
            last = middle
    last = first
    while last < ptr[row + 1] and up[last] == node:
        last += 1
    return first, last


@njit(cache=True, nogil=True)
def split_by(node: int, rows: Int64s, ptr: Int64s, nodes: Int32s, up: Int32s, mixed: UInt64s) -> tuple[Int64s, Int64s]:
    """Order the rows by their children of a node; give them, and the ends of the stretches with the same children.

    `mixed` is a random number per node: rows are sorted by the sum over their children, then compared in full.
    """
    key = np.zeros(len(rows), np.uint64)
    for i in range(len(rows)):
        first, last = children_in(node, rows[i], ptr, up)
        for j in range(first, last):
            key[i] += mixed[nodes[j]]
    rows = rows[order_of(key)]
    ends = np.empty(len(rows) + 1, np.int64)
    ends[0], n = 0, 0
    for i in range(1, len(rows) + 1):
        if i == len(rows) or not _same_children(node, rows[i - 1], rows[i], ptr, nodes, up):
            n += 1
            ends[n] = i
    return rows, ends[: n + 1].copy()


@njit(cache=True, nogil=True)
def _same_children(node: int, a: int, b: int, ptr: Int64s, nodes: Int32s, up: Int32s) -> bool:
    first_a, last_a = children_in(node, a, ptr, up)
    first_b, last_b = children_in(node, b, ptr, up)
    if last_a - first_a != last_b - first_b:
        return False
    for i in range(last_a - first_a):
        if nodes[first_a + i] != nodes[first_b + i]:
            return False
    return True


@njit(cache=True, nogil=True)
def best_node(
    candidates: Int32s,
    rows: Int64s,
    ptr: Int64s,
    nodes: Int32s,
    up: Int32s,
    behind: Int32s,
    loss: Floats,
    mixed: UInt64s,
    k: int,
) -> int:
    """Give the candidate whose split is valid and gains most, the first of equals; -1 if none is valid.

    The gain is the fall in loss of the items behind the node, over the rows whose children k or more rows share.
    """
    best, best_gain = -1, -1.0
    for node in candidates:
        sorted_rows, ends = split_by(node, rows, ptr, nodes, up, mixed)
        n_large, n_left, n_spare, gain = 0, 0, 0, 0.0
        for s in range(len(ends) - 1):
            n = ends[s + 1] - ends[s]
            if n < k:
                n_left += n
                continue
            n_large += 1
            n_spare += n - k
            for row in sorted_rows[ends[s] : ends[s + 1]]:
                first, last = children_in(node, row, ptr, up)
                for j in range(first, last):
                    gain += behind[j] * (loss[node] - loss[nodes[j]])
        valid = n_large > 0 and (n_left == 0 or n_left + n_spare >= k or n_large > 1)
        if valid and gain > best_gain + 1e-9:
            best, best_gain = node, gain
    return best
