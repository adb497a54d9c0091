"""Taxonomies as the checkers see them: names, parents, and which word stands where."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt
import polars as pl

Ints = npt.NDArray[np.int64]


class Tree(Protocol):
    """A taxonomy; that of `queryveil.text` is one, but nothing of it is needed here.

    Its nodes are numbered from the root, which is 0 and has the parent -1; a parent has a smaller number than its
    children.
    """

    @property
    def names(self) -> pl.Series:
        """The distinct names of the nodes."""
        ...

    @property
    def parent(self) -> npt.NDArray[np.int32]:
        """The node above each node."""
        ...

    def find_all(self, words: pl.Series) -> npt.NDArray[np.int32]:
        """Give the node of each word, -1 where there is none."""
        ...


def nodes_named(names: pl.Series, *, tree: Tree) -> Ints:
    """Give the nodes that have exactly these names, -1 for what is no name."""
    known = pl.DataFrame({"name": tree.names}).with_row_index("node")
    asked = names.to_frame("name").join(known, on="name", how="left", maintain_order="left")
    return asked["node"].cast(pl.Int64).fill_null(-1).to_numpy().copy()


def nodes_of(words: pl.Series, *, tree: Tree) -> Ints:
    """Give the node that has the word as its name, else the one where the taxonomy finds it, else -1."""
    nodes = nodes_named(words, tree=tree)
    return np.where(nodes >= 0, nodes, tree.find_all(words))


def counts_below(counts: Ints, *, tree: Tree) -> Ints:
    """Add up what stands at each node and below it."""
    below = counts.tolist()
    parents = tree.parent.tolist()
    for node in range(len(parents) - 1, 0, -1):
        below[parents[node]] += below[node]
    return np.array(below, np.int64)
