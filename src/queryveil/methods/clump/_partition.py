"""Top-down classes of at least k transactions: He and Naughton's Partition, as Fard and Wang describe it, over arrays.

Transactions are sets here: each class releases a set of nodes, and every original item has one of them above it.
The paper leaves three things open; we read them so.

- Which item to specialise: the one that lowers the loss of the original items most, counted over the
  sub-partitions that have k transactions.
- Sub-partitions of fewer than k merge back to the item they came from. If together they have fewer than k,
  transactions come back from the largest sub-partitions as long as these keep k; if none can spare one, the
  smallest sub-partition comes back as a whole.
- An item that is an inner node cannot be specialised: it stays beside the children that the others get.

`ptr`, `nodes`, `up` are the closures sorted by `up`, the parent of each node, so that a transaction's children of a
node stand together. A transaction that holds an inner node as an item of its own has there, beside its children of
that node, the node itself: an entry whose `up` and node are the same. Entries of leaves have no such second entry.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from queryveil import progress
from queryveil.data import Floats, Int32s, Int64s, UInt64s
from queryveil.data.rows import Rows, order_of
from queryveil.kernels import njit
from queryveil.methods.clump._clustering import Clustering, as_kernels_take, check_k, total_distortion
from queryveil.methods.clump._greedy_kernels import Closures, close_upwards


@njit(cache=True, nogil=True)
def by_parent(closures: Closures, parent: Int32s) -> tuple[Int64s, Int32s, Int32s, Int32s]:
    """Return closures sorted by parent: ptr, node, up, and the number of items behind each entry."""
    ptr, nodes, own, under = closures
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
    """Return the places of a row's entries under a node: first, and one behind the last."""
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
    candidates: Int32s, rows: Int64s, ptr: Int64s, nodes: Int32s, up: Int32s, behind: Int32s, loss: Floats,
    mixed: UInt64s, k: int,
) -> int:  # fmt: skip
    """Return the candidate whose split is valid and gains most, the first of equals; -1 if none is valid.

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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Class:
    """Transactions with the same release: nodes still `open` to be specialised, and those that are `done`."""

    rows: Int64s
    open: frozenset[int]
    done: frozenset[int]

    @property
    def released(self) -> list[int]:
        return sorted(self.open | self.done, reverse=True)


def partition(items: Rows[np.int32], parent: Int32s, loss: Floats, *, k: int) -> Clustering:
    """Split the transactions top-down into classes of k or more, and return what each releases.

    Transactions without items form a class that releases nothing; if they are fewer than k, the shortest others join
    them.
    """
    n_rows = items.n_rows
    check_k(k, n_rows)
    items, parent, loss = as_kernels_take(items, parent, loss)
    splitter = _Splitter(items, parent, loss, k=k)
    finished = [_Class(rows=rows, open=frozenset(), done=frozenset()) for rows in splitter.without_items]
    waiting = [_Class(rows=splitter.with_items, open=frozenset({0}), done=frozenset())]
    n_finished = 0
    while waiting:
        here = waiting.pop()
        parts = splitter.split(here)
        waiting.extend(reversed(parts))
        if not parts and len(here.rows):
            finished.append(here)
            n_finished += len(here.rows)
            progress.step("splitting", n_finished / n_rows)
    return _clustering(finished, items, loss)


class _Splitter:
    """Finds and makes the best valid split of a class."""

    def __init__(self, items: Rows[np.int32], parent: Int32s, loss: Floats, *, k: int) -> None:
        self.k, self.loss = k, loss
        self.ptr, self.nodes, self.up, self.behind = by_parent(close_upwards(items, parent), parent)
        self.is_inner = np.zeros(len(parent), np.bool_)
        self.is_inner[parent[1:]] = True
        # Any numbers will do, since equal sums are compared in full: no need for a secret seed.
        self.mixed: UInt64s = np.random.default_rng(0).integers(2**64, size=len(parent), dtype=np.uint64)
        length = items.lengths
        empty, self.with_items = np.flatnonzero(length == 0), np.flatnonzero(length)
        n_lent = max(0, k - len(empty)) if len(empty) else 0
        if 0 < len(self.with_items) - n_lent < k:
            n_lent = len(self.with_items)
        shortest_last = self.with_items[np.argsort(-length[self.with_items], kind="stable")]
        self.with_items = np.sort(shortest_last[: len(shortest_last) - n_lent])
        lent = shortest_last[len(shortest_last) - n_lent :]
        self.without_items = [np.sort(np.concatenate([empty, lent]))] if len(empty) else []

    def split(self, here: _Class) -> list[_Class]:
        """Return the parts of a class, what is left of it last; nothing if no split is valid."""
        candidates = np.array(sorted(node for node in here.open if self.is_inner[node]), np.int32)
        arrays = (here.rows, self.ptr, self.nodes, self.up)
        node = int(best_node(candidates, *arrays, self.behind, self.loss, self.mixed, self.k))
        if node < 0:
            return []
        rows, ends = split_by(node, *arrays, self.mixed)
        groups = [np.sort(rows[a:b]) for a, b in pairwise(ends)]
        groups.sort(key=lambda group: int(group[0]))
        large, left = balance(groups, k=self.k)
        parts = []
        for group in large:
            first, last = children_in(node, int(group[0]), self.ptr, self.up)
            children = frozenset(self.nodes[first:last].tolist())
            done = here.done | (children & {node})
            parts.append(_Class(rows=group, open=(here.open - {node}) | (children - {node}), done=done))
        if len(left):
            parts.append(_Class(rows=left, open=here.open - {node}, done=here.done | {node}))
        return parts


def balance(groups: list[Int64s], *, k: int) -> tuple[list[Int64s], Int64s]:
    """Return the groups that stay, each of k or more, and the rows that merge back: none, or k or more.

    >>> large, left = balance([np.arange(4), np.array([9])], k=2)
    >>> [group.tolist() for group in large], left.tolist()
    ([[0, 1, 2]], [3, 9])
    """
    large = [group for group in groups if len(group) >= k]
    left = [group for group in groups if len(group) < k]
    n_left = sum(map(len, left))
    while 0 < n_left < k:
        most = max(range(len(large)), key=lambda i: len(large[i]))
        if len(large[most]) > k:
            large[most], lent = large[most][:-1], large[most][-1:]
        else:
            # Only groups of k are left, so any one of them fills the gap.
            lent = large.pop()
        left.append(lent)
        n_left += len(lent)
    return large, np.sort(np.concatenate(left)) if left else np.empty(0, np.int64)


def _clustering(classes: list[_Class], items: Rows[np.int32], loss: Floats) -> Clustering:
    cluster_of = np.empty(items.n_rows, np.int32)
    for number, here in enumerate(classes):
        cluster_of[here.rows] = number
    released = Rows.from_lists([here.released for here in classes])
    distortion = total_distortion(cluster_of, released, n_items=len(items.values), loss=loss)
    return Clustering(cluster_of=cluster_of, released=released, distortion=distortion)
