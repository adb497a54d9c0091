"""Top-down classes of at least k transactions: He and Naughton's Partition, as Fard and Wang describe it, over arrays.

Transactions are sets here: each class releases a set of nodes, and every original item has one of them above it.
The paper leaves three things open; we read them so.

- Which item to specialise: the one that lowers the loss of the original items most, counted over the
  sub-partitions that have k transactions.
- Sub-partitions of fewer than k merge back to the item they came from. If together they have fewer than k,
  transactions come back from the largest sub-partitions as long as these keep k; if none can spare one, the
  smallest sub-partition comes back as a whole.
- An item that is an inner node cannot be specialised: it stays beside the children that the others get.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from queryveil import progress
from queryveil.data import Bools, Floats, Int32s, Int64s, UInt64s
from queryveil.data.rows import Rows, order_of, sort_in_rows
from queryveil.kernels import njit
from queryveil.methods.clump._clustering import Clustering, as_kernels_take, check_k
from queryveil.methods.clump._greedy_kernels import Closures, close_upwards


class Entries(NamedTuple):
    """Closures sorted by parent, so that a transaction's children of a node stand together, as compressed rows.

    A transaction that holds an inner node as an item of its own has there, beside its children of that node, the node
    itself: an entry whose `up` and node are the same.

    - ptr: where the entries of each transaction begin
    - nodes: the nodes
    - up: the parent of each
    - behind: the number of items at or below each; of the node itself, the number of these
    """

    ptr: Int64s
    nodes: Int32s
    up: Int32s
    behind: Int32s


def by_parent(closures: Closures, parent: Int32s, *, is_inner: Bools) -> Entries:
    """Return closures sorted by parent."""
    ptr, nodes, own, under = closures
    itself = np.flatnonzero((own > 0) & is_inner[nodes])
    below = np.flatnonzero(nodes)[::-1]
    place = np.concatenate([itself, below])
    up = np.concatenate([nodes[itself], parent[nodes[below]]])
    behind = np.concatenate([own[itself], under[below]])
    # Equals keep their order: a node itself, then its children in rising order.
    row = Rows(ptr, nodes).row_of_entry[place]
    ptr, order = sort_in_rows(row, up, n_rows=len(ptr) - 1, n_codes=len(parent))
    return Entries(ptr, nodes[place[order]], up[order], behind[order])


@njit(cache=True, nogil=True)
def children_in(node: int, row: int, e: Entries) -> tuple[int, int]:
    """Return the places of a row's entries under a node: first, and one behind the last."""
    first, last = e.ptr[row], e.ptr[row + 1]
    while first < last:
        middle = (first + last) // 2
        if e.up[middle] < node:
            first = middle + 1
        else:
            last = middle
    last = first
    while last < e.ptr[row + 1] and e.up[last] == node:
        last += 1
    return first, last


@njit(cache=True, nogil=True)
def split_by(node: int, rows: Int64s, e: Entries, mixed: UInt64s) -> tuple[Int64s, Int64s]:
    """Order the rows by their children of a node; give them, and the ends of the stretches with the same children.

    `mixed` is a random number per node: rows are sorted by the sum over their children, then compared in full.
    """
    key = np.zeros(len(rows), np.uint64)
    for i in range(len(rows)):
        first, last = children_in(node, rows[i], e)
        for j in range(first, last):
            key[i] += mixed[e.nodes[j]]
    rows = rows[order_of(key)]
    ends = np.empty(len(rows) + 1, np.int64)
    ends[0], n = 0, 0
    for i in range(1, len(rows) + 1):
        if i == len(rows) or not _same_children(node, rows[i - 1], rows[i], e):
            n += 1
            ends[n] = i
    return rows, ends[: n + 1].copy()


@njit(cache=True, nogil=True)
def _same_children(node: int, a: int, b: int, e: Entries) -> bool:
    first_a, last_a = children_in(node, a, e)
    first_b, last_b = children_in(node, b, e)
    return np.array_equal(e.nodes[first_a:last_a], e.nodes[first_b:last_b])


@njit(cache=True, nogil=True)
def best_node(candidates: Int32s, rows: Int64s, e: Entries, loss: Floats, mixed: UInt64s, k: int) -> int:
    """Return the candidate whose split is valid and gains most, the first of equals; -1 if none is valid.

    The gain is the fall in loss of the items behind the node, over the rows whose children k or more rows share.
    """
    best, best_gain = -1, -1.0
    for node in candidates:
        sorted_rows, ends = split_by(node, rows, e, mixed)
        n_large, n_left, n_spare, gain = 0, 0, 0, 0.0
        for s in range(len(ends) - 1):
            n = ends[s + 1] - ends[s]
            if n < k:
                n_left += n
                continue
            n_large += 1
            n_spare += n - k
            for row in sorted_rows[ends[s] : ends[s + 1]]:
                first, last = children_in(node, row, e)
                for j in range(first, last):
                    gain += e.behind[j] * (loss[node] - loss[e.nodes[j]])
        valid = n_large > 0 and (n_left == 0 or n_left + n_spare >= k or n_large > 1)
        if valid and gain > best_gain + 1e-9:
            best, best_gain = node, gain
    return best


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Class:
    """Transactions with the same release: nodes still `open` to be specialised, and those that are `done`."""

    rows: Int64s
    open: frozenset[int] = frozenset()
    done: frozenset[int] = frozenset()


def partition(items: Rows[np.int32], parent: Int32s, loss: Floats, *, k: int) -> Clustering:
    """Split the transactions top-down into classes of k or more, and return what each releases.

    Transactions without items form a class that releases nothing; if fewer than k, the shortest others join them.
    """
    n_rows = items.n_rows
    check_k(k, n_rows)
    items, parent, loss = as_kernels_take(items, parent, loss)
    splitter = _Splitter(items, parent, loss, k=k)
    finished = [_Class(rows=rows) for rows in splitter.without_items]
    waiting = [_Class(rows=splitter.with_items, open=frozenset({0}))]
    n_finished = 0
    while waiting:
        here = waiting.pop()
        parts = splitter.split(here)
        waiting.extend(reversed(parts))
        if not parts and len(here.rows):
            finished.append(here)
            n_finished += len(here.rows)
            progress.step("splitting", n_finished / n_rows)
    cluster_of = np.empty(n_rows, np.int32)
    for number, here in enumerate(finished):
        cluster_of[here.rows] = number
    released = Rows.from_lists([sorted(here.open | here.done, reverse=True) for here in finished])
    return Clustering(cluster_of=cluster_of, released=released)


class _Splitter:
    """Finds and makes the best valid split of a class."""

    def __init__(self, items: Rows[np.int32], parent: Int32s, loss: Floats, *, k: int) -> None:
        self.k, self.loss = k, loss
        self.is_inner = np.zeros(len(parent), np.bool_)
        self.is_inner[parent[1:]] = True
        self.entries = by_parent(close_upwards(items, parent), parent, is_inner=self.is_inner)
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
        node = int(best_node(candidates, here.rows, self.entries, self.loss, self.mixed, self.k))
        if node < 0:
            return []
        rows, ends = split_by(node, here.rows, self.entries, self.mixed)
        groups = [np.sort(rows[a:b]) for a, b in pairwise(ends)]
        groups.sort(key=lambda rows: int(rows[0]))
        large, left = balance(groups, k=self.k)
        parts = []
        for same in large:
            first, last = children_in(node, int(same[0]), self.entries)
            children = frozenset(self.entries.nodes[first:last].tolist())
            done = here.done | (children & {node})
            parts.append(_Class(rows=same, open=(here.open - {node}) | (children - {node}), done=done))
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
