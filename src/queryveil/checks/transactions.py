"""Verify that every transaction is one of k identical ones, and that the original accounts for its items.

Transactions have new ids and cannot be matched. What can be checked: there are no more transactions and items than
before, every item is known, and no node of the taxonomy has more items at it or below it than before.
"""

import numpy as np
import polars as pl
import pyarrow as pa

from queryveil.checks.invented import Tree, counts_below, nodes_named, nodes_of
from queryveil.checks.tokens import Ints, number, starts_of
from queryveil.checks.verdict import Found, Kind, Verdict, Witness, found_in
from queryveil.data import Transactions
from queryveil.guarantees import TransactionAnonymity

_NO_TAXONOMY = "without the taxonomy only the numbers of transactions and items could be compared with the original"


def ungrounded(transactions: Transactions, *, original: Transactions, taxonomy: Tree | None) -> Found:
    """Return the number and witnesses of what the release has in excess of the original.

    It counts once per distinct item that is unknown, or outside the taxonomy and there is more of, and per node that
    has more at it and below it while none of its children has.
    """
    totals: list[tuple[Kind, int, int]] = [
        ("invented_transactions", transactions.n_transactions, original.n_transactions),
        ("invented_items", transactions.n_items, original.n_items),
    ]
    found = [Witness(kind=kind, support=now, needed=then) for kind, now, then in totals if now > then]
    if taxonomy is None:
        return len(found), found
    items = _more_items(_counted(transactions), before=_counted(original), tree=taxonomy)
    n_more, more = found_in(items, kind="invented_items")
    return len(found) + n_more, [*found, *more]


def _counted(transactions: Transactions) -> pl.DataFrame:
    """Return the distinct items (`item`), their number (`n`) and the first place of each (`row`, `position`)."""
    rows = transactions.frame.with_row_index("row", offset=1)
    lengths = rows["items"].list.len()
    places = rows.select("row", pl.int_ranges(1, lengths + 1).alias("position"), pl.col("items").alias("item"))
    flat = places.filter(lengths > 0).explode("position", "item").group_by("item", maintain_order=True)
    return flat.agg(pl.first("row", "position"), n=pl.len().cast(pl.Int64))


def _more_items(released: pl.DataFrame, *, before: pl.DataFrame, tree: Tree) -> pl.DataFrame:
    """Return the items in excess of the original: `support`, `needed`, and a place."""
    joined = released.join(before.select("item", n_before="n"), on="item", how="left", maintain_order="left")
    # A word that is no name may stay if the original has it, wherever the taxonomy puts it.
    is_from_before, words = joined["n_before"].is_not_null().to_numpy(), joined["item"]
    node = np.where(is_from_before, nodes_of(words, tree=tree), nodes_named(words, tree=tree))
    joined = joined.with_columns(node=pl.Series(node), needed=pl.col("n_before").fill_null(0))
    outside = joined.filter((pl.col("node") < 0) & (pl.col("n") > pl.col("needed"))).with_columns(support="n")

    inside = joined.filter(pl.col("node") >= 0)
    now = _below(inside["node"].to_numpy(), inside["n"].to_numpy(), tree=tree)
    then = _below(nodes_of(before["item"], tree=tree), before["n"].to_numpy(), tree=tree)
    at = inside.unique("node", keep="first", maintain_order=True)
    places = at["node"].to_numpy()
    is_over = now > then
    # Of these the lowest, without a child that is one: each has an item of the release at itself.
    above = tree.parent[np.flatnonzero(is_over)]
    is_over[above[above >= 0]] = False
    over = at.with_columns(support=pl.Series(now[places]), needed=pl.Series(then[places]))
    found = pl.concat([outside, over.filter(pl.Series(is_over[places]))], how="diagonal")
    return found.select("support", "needed", "row", "position")


def _below(nodes: Ints, n: Ints, *, tree: Tree) -> Ints:
    at = np.zeros(len(tree.parent), np.int64)
    np.add.at(at, nodes[nodes >= 0], n[nodes >= 0])
    return counts_below(at, tree=tree)


def verify_transactions(
    transactions: Transactions,
    promise: TransactionAnonymity,
    *,
    original: Transactions | None = None,
    taxonomy: Tree | None = None,
) -> Verdict:
    """Return the verdict: every bag of items, also the empty one, occurs in at least k transactions.

    Violations are distinct bags with fewer. With the `original` transactions so is what cannot result from generalising
    items in the `taxonomy` and suppressing them; see `ungrounded`.

    >>> baskets = Transactions.from_frame({"items": [["milk", "tea"], ["tea", "milk"], ["tea"]]})
    >>> verify_transactions(baskets, TransactionAnonymity(k=2)).in_words()
    'The promise is broken: 1 violation, for example a bag of 1 item is held by 1 transaction, 2 are needed (row 3).'
    """
    bags = _bags(transactions).to_frame("bag").with_row_index("row", offset=1).group_by("bag")
    counted = bags.agg(rows=pl.col("row").sort().head(Verdict.N_KEPT), support=pl.len())
    rare = counted.filter(pl.col("support") < promise.k)
    size, needed = pl.col("bag").list.len(), pl.lit(promise.k)
    found = found_in(rare.select("rows", "support", size=size, needed=needed), kind="transaction")
    n_checked = int((transactions.frame["items"].list.len() > 0).sum())
    verdict = Verdict(promise=promise, n_users=transactions.n_transactions, n_checked_users=n_checked)
    if original is None:
        return verdict.joined(found)
    more = ungrounded(transactions, original=original, taxonomy=taxonomy)
    return verdict.joined(found, more, notes=(_NO_TAXONOMY,) if taxonomy is None else ())


def _bags(transactions: Transactions) -> pl.Series:
    """Return each transaction as a sorted list of numbers, one number for each distinct item."""
    items = transactions.frame["items"]
    numbered = number(items.explode(empty_as_null=False))
    n_distinct = max(1, len(numbered.distinct))
    starts = starts_of(items.list.len().to_numpy())
    # Sorted by row and then by item at once: Polars would sort every list for itself, which takes much longer.
    keys = np.repeat(np.arange(len(items)), np.diff(starts)) * n_distinct + numbered.codes
    keys.sort()
    return pl.Series(pa.LargeListArray.from_arrays(pa.array(starts), pa.array(keys % n_distinct)))
