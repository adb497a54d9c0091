"""Could this release have come from its original by moving items up and leaving items out?

Transactions have new ids, so they cannot be matched. What can be seen: there are no more transactions and no more items
than before, every item is known, and for every node of the taxonomy no more items stand at it or below it than before,
because an item that moves up leaves the nodes below and never enters one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from queryveil.transactions import Transactions
from queryveil.verify.tree import Ints, Tree, counts_below, nodes_named, nodes_of
from queryveil.verify.verdict import Kind, Verdict, Witness

Bools = npt.NDArray[np.bool_]

_NO_TAXONOMY = "without the taxonomy only the numbers of transactions and items could be compared with the original"


class Ungrounded(NamedTuple):
    """What a release has and its original cannot account for."""

    n: int
    witnesses: list[Witness]
    notes: tuple[str, ...]


def ungrounded(transactions: Transactions, *, original: Transactions, taxonomy: Tree | None) -> Ungrounded:
    """Count what the release has more of than the original, and point at it.

    Items count once per distinct item that is neither a node nor an item of the original, per distinct item outside the
    taxonomy that there is more of, and per node that has more at it and below it while none of its children has.
    """
    totals: list[tuple[Kind, int, int]] = [
        ("invented_transactions", transactions.n_transactions, original.n_transactions),
        ("invented_items", transactions.n_items, original.n_items),
    ]
    found = [
        Witness(kind=kind, size=0, support=now, needed=then, rows=(), positions=())
        for kind, now, then in totals
        if now > then
    ]
    if taxonomy is None:
        return Ungrounded(len(found), found, (_NO_TAXONOMY,))
    more = _more_items(_counted(transactions), before=_counted(original), tree=taxonomy)
    kept = more.sort("support", "row").head(Verdict.N_KEPT)
    found += [
        Witness(kind="invented_items", size=1, support=now, needed=then, rows=(row,), positions=(position,))
        for now, then, row, position in kept.select("support", "needed", "row", "position").iter_rows()
    ]
    return Ungrounded(len(found) - kept.height + more.height, found, ())


def _counted(transactions: Transactions) -> pl.DataFrame:
    """Give the distinct items (`item`), how often each stands there (`n`) and where first (`row`, `position`)."""
    rows = transactions.frame.with_row_index("row", offset=1)
    lengths = rows["items"].list.len()
    places = rows.select("row", pl.int_ranges(1, lengths + 1).alias("position"), pl.col("items").alias("item"))
    flat = places.filter(lengths > 0).explode("position", "item")
    return flat.group_by("item", maintain_order=True).agg(
        pl.len().cast(pl.Int64).alias("n"), pl.first("row", "position")
    )


def _more_items(released: pl.DataFrame, *, before: pl.DataFrame, tree: Tree) -> pl.DataFrame:
    """Give the items that there is too much of: `support`, `needed`, and a place."""
    joined = released.join(before.select("item", n_before="n"), on="item", how="left", maintain_order="left")
    # A word that is no name may stay if the original has it, wherever the taxonomy puts it.
    is_from_before = joined["n_before"].is_not_null().to_numpy()
    words = joined["item"]
    node = np.where(is_from_before, nodes_of(words, tree=tree), nodes_named(words, tree=tree))
    joined = joined.with_columns(node=pl.Series(node), needed=pl.col("n_before").fill_null(0))
    outside = joined.filter((pl.col("node") < 0) & (pl.col("n") > pl.col("needed"))).with_columns(support="n")

    inside = joined.filter(pl.col("node") >= 0)
    now = _below(inside["node"].to_numpy(), inside["n"].to_numpy(), tree=tree)
    then = _below(nodes_of(before["item"], tree=tree), before["n"].to_numpy(), tree=tree)
    at = inside.unique("node", keep="first", maintain_order=True)
    places = at["node"].to_numpy()
    over = at.with_columns(support=pl.Series(now[places]), needed=pl.Series(then[places])).filter(
        pl.Series(_lowest(now > then, tree=tree)[places])
    )
    columns = ["support", "needed", "row", "position"]
    return pl.concat([outside.select(columns), over.select(columns)])


def _below(nodes: Ints, n: Ints, *, tree: Tree) -> Ints:
    at = np.zeros(len(tree.parent), np.int64)
    np.add.at(at, nodes[nodes >= 0], n[nodes >= 0])
    return counts_below(at, tree=tree)


def _lowest(is_over: Bools, *, tree: Tree) -> Bools:
    """Keep the marked nodes without a marked child; each of them has an item of the release at itself."""
    lowest = is_over.copy()
    children = np.flatnonzero(is_over)
    lowest[tree.parent[children[children > 0]]] = False
    return lowest
