"""Trees as arrays of parents, numbered depth-first: each subtree is a run of numbers that begins with its top."""

from __future__ import annotations

import numpy as np

from queryveil.kernels.arrays import Int32s


def depth_first(parent: Int32s) -> Int32s:
    """Give the nodes of any tree in depth-first order, children in the order of their numbers.

    >>> depth_first(np.array([2, 2, -1, 0], np.int32)).tolist()
    [2, 0, 3, 1]
    """
    n = len(parent)
    # Last child first: a stack gives them back the other way round.
    by_parent = np.argsort(parent, kind="stable")[::-1]
    ends = n - np.searchsorted(parent[by_parent[::-1]], np.arange(n + 1))
    children, bounds = by_parent.tolist(), ends.tolist()
    order, stack = [], [int(np.argmin(parent))]
    while stack:
        node = stack.pop()
        order.append(node)
        stack += children[bounds[node + 1] : bounds[node]]
    return np.array(order, np.int32)


def renumber(parent: Int32s, *, order: Int32s) -> Int32s:
    """Give the parents once the nodes are numbered in that order."""
    number = np.empty(len(parent) + 1, np.int32)
    number[order] = np.arange(len(order))
    number[-1] = -1
    return number[parent[order]]


def levels(parent: Int32s) -> Int32s:
    """Give each node's level; the root has 1.

    >>> levels(np.array([-1, 0, 1, 0], np.int32)).tolist()
    [1, 2, 3, 2]
    """
    level = np.ones(len(parent), np.int32)
    up = parent
    # Each round doubles the length of the leaps, so that a long chain takes few rounds.
    while (is_below := up >= 0).any():
        level[is_below] += level[up[is_below]]
        up = np.where(is_below, up[up], -1)
    return level


def last_below(parent: Int32s) -> Int32s:
    """Give the last node of each subtree; the nodes are numbered depth-first.

    >>> last_below(np.array([-1, 0, 1, 0], np.int32)).tolist()
    [3, 2, 2, 3]
    """
    n = len(parent)
    by_parent = np.argsort(parent, kind="stable")
    is_followed = parent[by_parent[:-1]] == parent[by_parent[1:]]
    next_sibling = np.full(n, n)
    next_sibling[by_parent[:-1][is_followed]] = by_parent[1:][is_followed]
    # A subtree ends before the next sibling of its top, or of the nearest node above that has one.
    up = np.where((next_sibling < n) | (parent < 0), np.arange(n), parent)
    while (leap := up[up]).tobytes() != up.tobytes():
        up = leap
    return (next_sibling[up] - 1).astype(np.int32)


def leaves_below(parent: Int32s, last: Int32s) -> Int32s:
    """Count the leaves of each subtree; a leaf has 1."""
    is_leaf = last == np.arange(len(parent))
    before = np.concatenate([[0], np.cumsum(is_leaf)])
    n_leaves: Int32s = (before[last + 1] - before[:-1]).astype(np.int32)
    return n_leaves
