"""Trees as arrays of parents, numbered depth-first: each subtree is a run of numbers that begins with its top."""

import unicodedata
from bisect import bisect_left
from typing import NamedTuple

import numpy as np
import polars as pl

from queryveil.data import Int32s, Int64s


def depth_first(parent: Int32s) -> Int32s:
    """Return the nodes of any tree in depth-first order, children in the order of their numbers.

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
    """Return the parents once the nodes are numbered in that order."""
    number = np.empty(len(parent) + 1, np.int32)
    number[order] = np.arange(len(order))
    number[-1] = -1
    return number[parent[order]]


def levels(parent: Int32s) -> Int32s:
    """Return each node's level; the root has 1.

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
    """Return the last node of each subtree; the nodes are numbered depth-first.

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


_BLANKS = " \t\r\n"


def fold(word: str) -> str:
    """Write a word as tables have it: lower case, composed letters, no blanks around it.

    >>> fold("  Ice Cream ")
    'ice cream'
    """
    return unicodedata.normalize("NFC", word.lower()).strip(_BLANKS)


def fold_all(words: pl.Series) -> pl.Series:
    """Fold every word of a column."""
    return words.cast(pl.String).str.to_lowercase().str.normalize("NFC").str.strip_chars(_BLANKS)


def place(word: str, *, table: pl.Series) -> int:
    """Return the place of a word in a table, -1 where it has none.

    >>> place("b", table=pl.Series(["a", "b"])), place("c", table=pl.Series(["a", "b"]))
    (1, -1)
    """
    at = bisect_left(table, word)
    return at if at < len(table) and table[at] == word else -1


def places(words: pl.Series, *, table: pl.Series) -> Int32s:
    """Return the place of every word in a table, -1 where it has none; this table need not be sorted."""
    known = pl.DataFrame({"word": table}).with_row_index("place")
    asked = pl.DataFrame({"word": words.cast(pl.String)})
    found = asked.join(known, on="word", how="left", maintain_order="left")["place"]
    return found.cast(pl.Int64).fill_null(-1).to_numpy().astype(np.int32)


class Ranges(NamedTuple):
    """A tree over the numbers from 0, numbered depth-first: node v stands over first[v] to last[v], both included."""

    parent: Int32s
    first: Int64s
    last: Int64s


def sort_items(items: pl.Series) -> pl.Series:
    """Return the distinct items as text: numbers first, in their order, then words in theirs.

    >>> sort_items(pl.Series(["10", "9", "pear", "Apple", "apple"])).to_list()
    ['9', '10', 'Apple', 'pear']
    """
    texts = items.drop_nulls().cast(pl.String)
    frame = pl.DataFrame({"text": texts.str.strip_chars(), "folded": fold_all(texts)}).filter(pl.col("text") != "")
    frame = frame.unique("folded", keep="first", maintain_order=True)
    number = pl.col("folded").cast(pl.Float64, strict=False)
    return frame.sort(number, "folded", nulls_last=True)["text"]


def split_ranges(n_items: int, *, fan_out: int) -> Ranges:
    """Split the numbers below `n_items` into `fan_out` ranges as equal as can be, and those again, down to one each.

    >>> tree = split_ranges(3, fan_out=2)
    >>> tree.parent.tolist(), tree.first.tolist(), tree.last.tolist()
    ([-1, 0, 1, 1, 0], [0, 0, 0, 1, 2], [2, 1, 0, 1, 2])
    """
    first, end = np.array([0]), np.array([n_items])
    parts = [(np.array([-1]), first, end)]
    n_nodes = 0
    while True:
        width = end - first
        n_parts = np.where(width > 1, np.minimum(width, fan_out), 0)
        if not n_parts.any():
            break
        above = np.repeat(np.arange(len(first)), n_parts)
        place = np.arange(len(above)) - np.repeat(np.cumsum(n_parts) - n_parts, n_parts)
        # The wider ranges come first: 5 into 2 is 3 and 2.
        new_first = first[above] + -(-place * width[above] // n_parts[above])
        new_end = first[above] + -(-(place + 1) * width[above] // n_parts[above])
        parts.append((n_nodes + above, new_first, new_end))
        n_nodes, first, end = n_nodes + len(first), new_first, new_end
    parent, first, end = (np.concatenate(column) for column in zip(*parts, strict=True))
    # A range stands before those inside it, and those by where they begin.
    order = np.lexsort((-end, first))
    number = np.empty(len(order) + 1, np.int64)
    number[order], number[-1] = np.arange(len(order)), -1
    return Ranges(number[parent[order]].astype(np.int32), first[order], end[order] - 1)
