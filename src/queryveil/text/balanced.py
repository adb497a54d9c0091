"""Balanced trees over sorted items, for domains that have no taxonomy."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl

from queryveil.kernels.arrays import Int32s, Int64s
from queryveil.text.word_table import fold_all


class Ranges(NamedTuple):
    """A tree over the numbers from 0, numbered depth-first: node v stands over first[v] to last[v], both included."""

    parent: Int32s
    first: Int64s
    last: Int64s


def sort_items(items: pl.Series) -> pl.Series:
    """Give the distinct items as text: numbers first, in their order, then words in theirs.

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
