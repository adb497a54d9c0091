"""Gather near transactions into clusters of k: in each block the largest takes its best partners one by one."""

from typing import NamedTuple

import numpy as np

from queryveil.data import Bools, Floats, Int32s, Int64s
from queryveil.data.rows import Rows, group
from queryveil.kernels import njit, prange


class Vectors(NamedTuple):
    """Transactions as sparse vectors over the nodes that can be in an LCG, as compressed rows.

    - ptr: where the entries of each transaction begin
    - nodes: the nodes, numbered anew, in falling order
    - under: how many of the transaction's items lie at or below each of them
    - weight: by how much the loss falls from its parent to each node
    - n_items: the number of items of all transactions
    """

    ptr: Int64s
    nodes: Int32s
    under: Int32s
    weight: Floats
    n_items: int

    @property
    def n_rows(self) -> int:
        """The number of transactions."""
        return len(self.ptr) - 1

    def deviations(self) -> Floats:
        """Return the standard deviation of each node's count over the transactions."""
        n_nodes = len(self.weight)
        mean = np.bincount(self.nodes, weights=self.under, minlength=n_nodes) / self.n_rows
        square = np.bincount(self.nodes, weights=self.under.astype(np.float64) ** 2, minlength=n_nodes) / self.n_rows
        return np.sqrt(np.maximum(0.0, square - mean**2))

    def sizes(self) -> Floats:
        """Return the weighted size of each vector: what a cluster of its like alone would keep."""
        row = Rows(self.ptr, self.nodes).row_of_entry
        weighted = self.weight[self.nodes] * self.under
        return np.asarray(np.bincount(row, weights=weighted, minlength=self.n_rows), np.float64)

    def at(self, nodes: Int32s) -> Floats:
        """Return the weighted counts of each transaction at a few nodes, a column for each of them."""
        column = np.full(len(self.weight), -1, np.int64)
        column[nodes] = np.arange(len(nodes))
        of_entry, row = column[self.nodes], Rows(self.ptr, self.nodes).row_of_entry
        is_there = of_entry >= 0
        out = np.zeros((self.n_rows, len(nodes)))
        out[row[is_there], of_entry[is_there]] = (self.weight[self.nodes] * self.under)[is_there]
        return out


_CLAIM = 0.5
"""How much of what a partner brings counts against it.

At 1 a partner is chosen by how little the distortion rises, which favours small partners, since what they lose is
little; at 0 by what the cluster keeps, which favours large ones. On two made-up logs of nouns 0.3 to 0.7 came within
one percent of each other; 0 and 1 were mostly one to two percent worse.
"""


@njit(cache=True, nogil=True, parallel=True)
def gather(
    rows: Int64s, ends: Int64s, v: Vectors, size: Floats, head_nodes: Int32s, heads: Floats, k: int, work: Int32s
) -> Int32s:
    """Return each transaction's cluster of exactly k; up to k-1 in the last block stay without one (-1).

    The blocks are as `split` gives them in steps of k, in each the rows by falling size; `heads` are
    the weighted counts of each row at `head_nodes`, which rule out most partners at little cost; `work` is zeros, a
    number per node for each thread.
    """
    cluster_of = np.full(len(size), -1, np.int32)
    n_threads = len(work)
    for thread in prange(n_threads):
        for block in range(thread, len(ends) - 1, n_threads):
            mine = rows[ends[block] : ends[block + 1]]
            _gather_block(mine, ends[block] // k, v, size[mine], head_nodes, heads[mine], k, work[thread], cluster_of)
    return cluster_of


@njit(cache=True, nogil=True)
def _gather_block(
    rows: Int64s, first_cluster: int, v: Vectors, size: Floats, head_nodes: Int32s, heads: Floats, k: int,
    dense: Int32s, cluster_of: Int32s,
) -> None:  # fmt: skip
    taken = np.zeros(len(rows), np.bool_)
    largest = 0
    for row in rows:
        largest = max(largest, v.ptr[row + 1] - v.ptr[row])
    least, count = np.empty(largest, np.int32), np.empty(largest, np.int32)
    head = np.empty(len(head_nodes))
    seed = 0
    for cluster in range(first_cluster, first_cluster + len(rows) // k):
        while taken[seed]:
            seed += 1
        taken[seed] = True
        row = rows[seed]
        cluster_of[row] = cluster
        n = v.ptr[row + 1] - v.ptr[row]
        least[:n], count[:n] = v.nodes[v.ptr[row] : v.ptr[row + 1]], v.under[v.ptr[row] : v.ptr[row + 1]]
        for n_members in range(1, k):
            kept = 0.0
            for i in range(n):
                dense[least[i]] = count[i]
                kept += v.weight[least[i]] * count[i]
            for i in range(len(head)):
                head[i] = v.weight[head_nodes[i]] * dense[head_nodes[i]]
            best = _best_partner(n_members, kept, head, rows, seed + 1, taken, v, size, heads, dense)
            for i in range(n):
                dense[least[i]] = 0
            taken[best] = True
            cluster_of[rows[best]] = cluster
            n = lower(least, count, n, rows[best], v, dense)


@njit(cache=True, nogil=True)
def _best_partner(
    n_members: int, kept: float, head: Floats, rows: Int64s, first: int, taken: Bools, v: Vectors, size: Floats,
    heads: Floats, dense: Int32s,
) -> int:  # fmt: skip
    """Return the place of the row to take next; the rows are by falling size."""
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
        value = (n_members + 1) * shared(rows[place], v, dense) - _CLAIM * size[place]
        if value > best_value:
            best, best_value = place, value
    return best


@njit(cache=True, nogil=True)
def shared(row: int, v: Vectors, dense: Int32s) -> float:
    """Return the weighted sum of the lesser counts of a row and of the vector spread out in `dense`."""
    total = 0.0
    for i in range(v.ptr[row], v.ptr[row + 1]):
        other = dense[v.nodes[i]]
        if other > 0:
            total += v.weight[v.nodes[i]] * min(other, v.under[i])
    return total


@njit(cache=True, nogil=True)
def lower(least: Int32s, count: Int32s, n: int, row: int, v: Vectors, dense: Int32s) -> int:
    """Lower a vector of n nodes in place to the lesser counts of itself and a row; give the number of nodes left."""
    for i in range(v.ptr[row], v.ptr[row + 1]):
        dense[v.nodes[i]] = v.under[i]
    n_left = 0
    for i in range(n):
        smaller = min(count[i], dense[least[i]])
        if smaller > 0:
            least[n_left], count[n_left] = least[i], smaller
            n_left += 1
    for i in range(v.ptr[row], v.ptr[row + 1]):
        dense[v.nodes[i]] = 0
    return n_left


@njit(cache=True, nogil=True)
def place_rest(cluster_of: Int32s, members: Rows[np.int64], v: Vectors) -> None:
    """Put each transaction without a cluster into the one whose distortion rises least; all are compared."""
    rest = np.flatnonzero(cluster_of < 0)
    best_value = np.full(len(rest), -np.inf)
    dense = np.zeros(len(v.weight), np.int32)
    largest = np.diff(v.ptr).max()
    least, count = np.empty(largest, np.int32), np.empty(largest, np.int32)
    for cluster in range(len(members.ptr) - 1):
        mine = members.values[members.ptr[cluster] : members.ptr[cluster + 1]]
        first, last = v.ptr[mine[0]], v.ptr[mine[0] + 1]
        n = last - first
        least[:n], count[:n] = v.nodes[first:last], v.under[first:last]
        for row in mine[1:]:
            n = lower(least, count, n, row, v, dense)
        before = 0.0
        for i in range(n):
            dense[least[i]] = count[i]
            before += v.weight[least[i]] * count[i]
        for i in range(len(rest)):
            after = shared(rest[i], v, dense)
            value = (len(mine) + 1) * after - len(mine) * before
            if value > best_value[i]:
                best_value[i], cluster_of[rest[i]] = value, cluster
        for i in range(n):
            dense[least[i]] = 0


_N_CHOICES = 4


@njit(cache=True, nogil=True)
def split(rows: Int64s, v: Vectors, most: int, step: int, draws: Floats) -> tuple[Int64s, Int64s]:
    """Order the rows into blocks of at most `most`, each a multiple of `step` but for the last; give order and ends.

    A block is cut in two near the median of one node's count, drawn among the nodes of widest weighted spread, so
    that other `draws` (numbers in [0, 1)) give other blocks.
    """
    rows = rows.copy()
    n_cuts = 0
    count = np.zeros(len(rows), np.int32)
    spread = np.zeros((2, len(v.weight)))
    stack = [(0, len(rows))]
    ends = [0]
    while len(stack) > 0:
        first, last = stack.pop()
        if last - first <= max(most, step):
            ends.append(last)
            continue
        node = _wide_node(rows[first:last], v, spread, draws[n_cuts % len(draws)])
        n_cuts += 1
        block = rows[first:last]
        for i in range(len(block)):
            count[i] = _count_of(node, block[i], v)
        order = group(count[: len(block)], count[: len(block)].max() + 1).values
        block[:] = block[order]
        middle = first + _cut(count[order], step)
        stack.append((middle, last))
        stack.append((first, middle))
    return rows, np.array(ends)


@njit(cache=True, nogil=True)
def _wide_node(block: Int64s, v: Vectors, spread: Floats, draw: float) -> int:
    """Draw one of the nodes whose weighted count varies most among the rows; -1 if none does."""
    met = [np.int32(0) for _ in range(0)]
    for row in block:
        for i in range(v.ptr[row], v.ptr[row + 1]):
            if spread[0, v.nodes[i]] == 0:
                met.append(v.nodes[i])
            spread[0, v.nodes[i]] += v.under[i]
            spread[1, v.nodes[i]] += v.under[i] * v.under[i]
    widest = np.zeros(_N_CHOICES)
    choices = np.full(_N_CHOICES, -1, np.int64)
    for node in met:
        mean = spread[0, node] / len(block)
        wide = v.weight[node] * np.sqrt(max(0.0, spread[1, node] / len(block) - mean * mean))
        spread[:, node] = 0
        if wide > widest[-1]:
            j = _N_CHOICES - 1
            while j > 0 and widest[j - 1] < wide:
                widest[j], choices[j] = widest[j - 1], choices[j - 1]
                j -= 1
            widest[j], choices[j] = wide, node
    rest = draw * widest.sum()
    for j in range(_N_CHOICES):
        if rest < widest[j]:
            return int(choices[j])
        rest -= widest[j]
    return int(choices[0])


@njit(cache=True, nogil=True)
def _count_of(node: int, row: int, v: Vectors) -> int:
    first, last = v.ptr[row], v.ptr[row + 1]
    while first < last:
        middle = (first + last) // 2
        if v.nodes[middle] > node:
            first = middle + 1
        else:
            last = middle
    return v.under[first] if first < v.ptr[row + 1] and v.nodes[first] == node else 0


@njit(cache=True, nogil=True)
def _cut(count: Int32s, step: int) -> int:
    """Return where to cut sorted counts, never at an end: where the count changes near the median, or right there."""
    n = len(count)
    low = high = n // 2
    while low > 0 and count[low - 1] == count[n // 2]:
        low -= 1
    while high < n and count[high] == count[n // 2]:
        high += 1
    middle = n // 2
    if low >= n // 4 and n // 2 - low <= high - n // 2:
        middle = low
    elif n - high >= n // 4:
        middle = high
    elif low >= n // 4:
        middle = low
    return min(max(1, (middle + step // 2) // step), (n - 1) // step) * step
