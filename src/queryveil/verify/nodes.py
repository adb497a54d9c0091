"""Nodes of a taxonomy that stand among the terms of a release, and what of the original is below them.

A node is written as one word between angle brackets, `<body_of_water>`; one that has nothing below it may go without.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from queryveil.verify.histories import Histories
from queryveil.verify.tree import Ints, Tree, counts_below


def is_marked() -> pl.Expr:
    """Tell which terms, in the column `term`, are written as nodes."""
    return pl.col("term").str.starts_with("<") & pl.col("term").str.ends_with(">")


def accounted_for(terms: pl.DataFrame, *, before: Histories, tree: Tree) -> pl.Series:
    """Tell which terms are nodes with at least as many users and occurrences of the original at them and below.

    `terms` has the columns `term`, `n_users` and `n_occurrences`.
    """
    places = terms.select("term", row=pl.int_range(pl.len())).join(_written(tree), on="term")
    n_users, n_occurrences = _below(before, nodes=places["node"].to_numpy(), tree=tree)
    counts = terms.select("n_users", "n_occurrences")[places["row"]]
    is_enough = (counts["n_users"].to_numpy() <= n_users) & (counts["n_occurrences"].to_numpy() <= n_occurrences)
    found = np.zeros(terms.height, np.bool_)
    found[places["row"].to_numpy()[is_enough]] = True
    return pl.Series(found)


def _written(tree: Tree) -> pl.DataFrame:
    """Give the ways to write each node: `term` and `node`."""
    is_leaf = np.ones(len(tree.parent), np.bool_)
    is_leaf[tree.parent[1:]] = False
    plain = tree.names.rename("term").to_frame().with_row_index("node")
    marked = plain.with_columns(pl.format("<{}>", pl.col("term").str.replace_all(r"\s+", "_")).alias("term"))
    return pl.concat([marked, plain.filter(pl.Series(is_leaf))])


def _below(before: Histories, *, nodes: Ints, tree: Tree) -> tuple[Ints, Ints]:
    """Count the users, and the occurrences, of terms at each of the nodes or below it."""
    n_nodes = len(tree.parent)
    node_of_word = tree.find_all(before.words).astype(np.int64)
    is_known = node_of_word >= 0
    at = np.zeros(n_nodes, np.int64)
    np.add.at(at, node_of_word[is_known], before.n_occurrences[is_known])

    is_asked = np.zeros(n_nodes, np.bool_)
    is_asked[nodes] = True
    lengths = np.diff(before.starts) - 1
    owner = np.repeat(np.arange(lengths.size), lengths)
    node = node_of_word[before.word_of_item[before.line[before.line >= 0]]]
    pairs = [np.zeros(0, np.int64)]
    while node.size:
        owner, node = owner[node >= 0], node[node >= 0]
        pairs.append(np.unique((owner * n_nodes + node)[is_asked[node]]))
        node = tree.parent[node].astype(np.int64)
    n_users = np.bincount(np.unique(np.concatenate(pairs)) % n_nodes, minlength=n_nodes)
    return n_users[nodes], counts_below(at, tree=tree)[nodes]
