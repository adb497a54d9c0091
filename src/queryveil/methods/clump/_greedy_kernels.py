"""Algorithm 1 of Fard and Wang: transactions, the longest first, go to the open cluster that suffers least.

A transaction is kept as its *closure*: its items and all their ancestors, in falling order of node number, so that a
child always comes before its parent. Beside each node stand `own`, how often the transaction holds the node itself,
and `under`, how many of its items lie at or below it. A join of two closures walks both lists once; the tree is
never scanned.
"""

from typing import NamedTuple

import numpy as np

from queryveil.data import Floats, Int8s, Int32s, Int64s
from queryveil.data.rows import Rows, group
from queryveil.kernels import njit


class Closures(NamedTuple):
    """The closure of each transaction, as compressed rows: its nodes with `own` and `under` beside them."""

    ptr: Int64s
    nodes: Int32s
    own: Int32s
    under: Int32s


@njit(cache=True, nogil=True)
def close_upwards(transactions: Rows[np.int32], parent: Int32s) -> Closures:
    """Return the closure of every transaction."""
    row_ptr, items = transactions
    ptr, nodes = _with_ancestors(row_ptr, items, parent)
    own = np.zeros(len(nodes), np.int32)
    under = np.empty(len(nodes), np.int32)
    place = np.empty(len(parent), np.int64)
    for row in range(len(ptr) - 1):
        for i in range(ptr[row], ptr[row + 1]):
            place[nodes[i]] = i
        for item in items[row_ptr[row] : row_ptr[row + 1]]:
            own[place[item]] += 1
        under[ptr[row] : ptr[row + 1]] = own[ptr[row] : ptr[row + 1]]
        for i in range(ptr[row], ptr[row + 1]):
            if nodes[i] > 0:
                under[place[parent[nodes[i]]]] += under[i]
    return Closures(ptr, nodes, own, under)


@njit(cache=True, nogil=True)
def _with_ancestors(row_ptr: Int64s, items: Int32s, parent: Int32s) -> Rows[np.int32]:
    """Return the distinct items of each row and what is above them, in falling order."""
    depth = np.ones(len(parent), np.int64)
    for node in range(1, len(parent)):
        depth[node] += depth[parent[node]]
    n, n_most = 0, 0
    for item in items:
        n_most += depth[item]
    found, row_of = np.empty(n_most, np.int32), np.empty(n_most, np.int32)
    ptr, seen_by = np.zeros(len(row_ptr), np.int64), np.full(len(parent), -1, np.int64)
    for row in range(len(ptr) - 1):
        for item in items[row_ptr[row] : row_ptr[row + 1]]:
            node = item
            while node >= 0 and seen_by[node] != row:
                seen_by[node], found[n], row_of[n] = row, node, row
                n += 1
                node = parent[node]
        ptr[row + 1] = n
    # Nodes come in rising order and fill their rows from the end: sorted without comparing.
    nodes, end = np.empty(n, np.int32), ptr[1:].copy()
    for place in group(found[:n], len(parent)).values:
        row = row_of[place]
        end[row] -= 1
        nodes[end[row]] = found[place]
    return Rows(ptr, nodes)


@njit(cache=True, nogil=True)
def join(
    left: Int32s, left_own: Int32s, right: Int32s, right_own: Int32s, parent: Int32s, loss: Floats, carry: bool,
    work: Int64s, out: Int32s, out_own: Int32s,
) -> tuple[float, int, int]:  # fmt: skip
    """Return the loss and the length of the LCG of two closures, and the number of nodes walked, written to `out`.

    `work` is two rows of zeros, a number per node, and is zero again after; `out_own` says how often each node of
    `out` is in the LCG. With `carry` what a node has left over moves up to its parent.
    """
    n_left, n_right = 0, 0
    for i in range(len(left)):
        work[0, left[i]] += left_own[i]
        n_left += left_own[i]
    for i in range(len(right)):
        work[1, right[i]] += right_own[i]
        n_right += right_own[i]
    total, length, n, i, j = 0.0, 0, 0, 0, 0
    while i < len(left) or j < len(right):
        if j == len(right) or (i < len(left) and left[i] > right[j]):
            node = left[i]
            i += 1
        else:
            node = right[j]
            i += i < len(left) and left[i] == node
            j += 1
        a, b = work[0, node], work[1, node]
        work[0, node] = work[1, node] = 0
        # Paper: algorithm 2, line 11 of BUIG. The root makes up for what is missing to the shorter length.
        shared = min(a, b) if node > 0 else min(n_left, n_right) - length
        if node > 0 and (carry or shared == 0):
            work[0, parent[node]] += a - shared
            work[1, parent[node]] += b - shared
        total += shared * loss[node]
        length += shared
        out[n], out_own[n] = node, shared
        n += 1
    return total, length, n


@njit(cache=True, nogil=True)
def shrink(nodes: Int32s, own: Int32s, parent: Int32s, needed: Int8s) -> int:
    """Keep, in place, the nodes at or above an item; give their number. `needed` is zeros and is so again after."""
    n = 0
    for i in range(len(nodes)):
        node = nodes[i]
        if own[i] > 0 or needed[node]:
            needed[node] = 0
            nodes[n], own[n] = node, own[i]
            n += 1
            if node > 0:
                needed[parent[node]] = 1
    return n


@njit(cache=True, nogil=True)
def lcg_rows(sets: Rows[np.int64], closures: Closures, parent: Int32s, loss: Floats, carry: bool) -> Rows[np.int32]:
    """Return the items of the LCG of each set of transactions, joined in their order."""
    member_ptr, members = sets
    ptr, nodes, own, _ = closures
    n_sets, longest = len(member_ptr) - 1, np.diff(ptr).max()
    work = np.zeros((2, len(parent)), np.int64)
    needed = np.zeros(len(parent), np.int8)
    now, now_own = np.empty(2 * longest, np.int32), np.empty(2 * longest, np.int32)
    new, new_own = np.empty(2 * longest, np.int32), np.empty(2 * longest, np.int32)
    out_ptr = np.zeros(n_sets + 1, np.int64)
    out = np.empty(1024, np.int32)
    for s in range(n_sets):
        n = 0
        for i in range(member_ptr[s], member_ptr[s + 1]):
            first, last = ptr[members[i]], ptr[members[i] + 1]
            if i == member_ptr[s]:
                n = last - first
                new[:n], new_own[:n] = nodes[first:last], own[first:last]
            else:
                _, _, n = join(
                    now[:n], now_own[:n], nodes[first:last], own[first:last], parent, loss, carry, work, new, new_own
                )
                n = shrink(new[:n], new_own[:n], parent, needed)
            now, new, now_own, new_own = new, now, new_own, now_own
        length = now_own[:n].sum()
        while out_ptr[s] + length > len(out):
            out = np.concatenate((out, np.empty(len(out), np.int32)))
        out_ptr[s + 1] = out_ptr[s] + length
        out[out_ptr[s] : out_ptr[s + 1]] = np.repeat(now[:n], now_own[:n])
    return Rows(out_ptr, out[: out_ptr[-1]].copy())


@njit(cache=True, nogil=True)
def assign_in_order(
    order: Int64s, row_length: Int64s, closures: Closures, parent: Int32s, loss: Floats, k: int, r: int, carry: bool,
    by_rise: bool,
) -> tuple[Int32s, Int64s]:  # fmt: skip
    """Return each transaction's cluster, and the turn in which it joined.

    `order` is by falling length. `by_rise` compares how much the distortion rises, else how large it is after joining.
    """
    ptr, nodes, own, _ = closures
    n_rows, n_clusters = len(order), len(order) // k
    cluster_of = np.full(n_rows, -1, np.int32)
    turn = np.zeros(n_rows, np.int64)
    longest = np.diff(ptr).max()
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

    clusters = np.arange(n_clusters)
    # The clusters from this place on are open.
    first_open = 0 if k > 1 else n_clusters
    for i in range(n_rows):
        row = order[i]
        if cluster_of[row] >= 0:
            continue
        mine, mine_own = nodes[ptr[row] : ptr[row + 1]], own[ptr[row] : ptr[row + 1]]
        all_full = first_open == n_clusters
        best_place, best_value, best_distortion = -1, np.inf, 0.0
        for place in range(0 if all_full else first_open, n_clusters if all_full else min(first_open + r, n_clusters)):
            c = clusters[place]
            total, length, _ = join(lcg[c], lcg_own[c], mine, mine_own, parent, loss, carry, work, new, new_own)
            after = (size[c] + 1) * (total - length) + sum_length[c] + row_length[row]
            value = after - distortion[c] if by_rise else after
            # The margin keeps rounding from deciding between equals: the earlier cluster wins.
            if value < best_value - 1e-9:
                best_place, best_value, best_distortion = place, value, after
        best = clusters[best_place]
        _, _, n = join(lcg[best], lcg_own[best], mine, mine_own, parent, loss, carry, work, new, new_own)
        n = shrink(new[:n], new_own[:n], parent, needed)
        lcg[best], lcg_own[best] = new[:n].copy(), new_own[:n].copy()
        cluster_of[row], turn[row] = best, n_clusters + i
        size[best] += 1
        sum_length[best] += row_length[row]
        distortion[best] = best_distortion
        if not all_full and size[best] == k:
            for place in range(best_place, first_open, -1):
                clusters[place] = clusters[place - 1]
            clusters[first_open] = best
            first_open += 1
            if first_open == n_clusters:
                # Now all are compared, in their order.
                clusters = np.arange(n_clusters)
    return cluster_of, turn
