"""Is every transaction one of k identical ones? Judged fast, and by force."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import polars as pl
import pyarrow as pa

from queryveil.guarantees import TransactionAnonymity
from queryveil.transactions import Transactions
from queryveil.verify.generalised import ungrounded
from queryveil.verify.tokens import number
from queryveil.verify.tree import Tree
from queryveil.verify.verdict import Verdict, Witness


def verify_transactions(
    transactions: Transactions,
    promise: TransactionAnonymity,
    *,
    original: Transactions | None = None,
    taxonomy: Tree | None = None,
) -> Verdict:
    """Judge the promise: every bag of items, the empty one too, is held by at least k transactions.

    Violations are distinct bags with fewer. With the `original` transactions also look for what a release cannot hold
    if items have only moved up in the `taxonomy` or gone; see `verify.generalised`.

    >>> baskets = Transactions.from_frame({"items": [["milk", "tea"], ["tea", "milk"], ["tea"]]})
    >>> verify_transactions(baskets, TransactionAnonymity(k=2)).in_words()
    'The promise is broken: 1 violation, for example a bag of 1 item is held by 1 transaction, 2 are needed (row 3).'
    """
    bags = (
        _bags(transactions)
        .to_frame("bag")
        .with_row_index("row", offset=1)
        .group_by("bag")
        .agg(pl.len().alias("n"), pl.col("row").sort().head(Verdict.N_KEPT).alias("rows"))
    )
    rare = bags.filter(pl.col("n") < promise.k)
    rarest = rare.sort(pl.col("bag").list.len(), "n", pl.col("rows").list.first()).head(Verdict.N_KEPT)
    verdict = _verdict(
        transactions,
        promise,
        n_violations=rare.height,
        witnesses=[
            _witness(len(bag), n, rows, needed=promise.k)
            for bag, n, rows in rarest.select("bag", "n", "rows").iter_rows()
        ],
    )
    if original is None:
        return verdict
    found = ungrounded(transactions, original=original, taxonomy=taxonomy)
    return verdict.joined(witnesses=found.witnesses, n_violations=found.n, notes=found.notes)


def verify_transactions_by_force(transactions: Transactions, promise: TransactionAnonymity) -> Verdict:
    """Judge the promise as `verify_transactions` does, by its definition.

    >>> baskets = Transactions.from_frame({"items": [["milk", "tea"], ["tea", "milk"]]})
    >>> verify_transactions_by_force(baskets, TransactionAnonymity(k=2)).holds
    True
    """
    rows_of = defaultdict[tuple[str, ...], list[int]](list)
    for row, items in enumerate(transactions.frame["items"].to_list(), start=1):
        rows_of[tuple(sorted(items))].append(row)
    rare = [
        _witness(len(bag), len(rows), rows[: Verdict.N_KEPT], needed=promise.k)
        for bag, rows in rows_of.items()
        if len(rows) < promise.k
    ]
    return _verdict(transactions, promise, n_violations=len(rare), witnesses=sorted(rare)[: Verdict.N_KEPT])


def _bags(transactions: Transactions) -> pl.Series:
    """Give each transaction as a sorted list of numbers, one number for each distinct item."""
    items = transactions.frame["items"]
    numbered = number(items.explode(empty_as_null=False))
    n_distinct = max(1, len(numbered.distinct))
    starts = np.concatenate([[0], np.cumsum(items.list.len().to_numpy().astype(np.int64))])
    # Sorted by row and then by item at once: Polars would sort every list for itself, which takes much longer.
    keys = np.repeat(np.arange(len(items)), np.diff(starts)) * n_distinct + numbered.codes
    keys.sort()
    return pl.Series(pa.LargeListArray.from_arrays(pa.array(starts), pa.array(keys % n_distinct)))


def _witness(size: int, n: int, rows: list[int], *, needed: int) -> Witness:
    return Witness(kind="transaction", size=size, support=n, needed=needed, rows=tuple(rows), positions=())


def _verdict(
    transactions: Transactions, promise: TransactionAnonymity, *, n_violations: int, witnesses: list[Witness]
) -> Verdict:
    return Verdict(
        promise=promise,
        holds=n_violations == 0,
        witnesses=tuple(witnesses),
        n_violations=n_violations,
        n_users=transactions.n_transactions,
        n_checked_users=int((transactions.frame["items"].list.len() > 0).sum()),
    )
