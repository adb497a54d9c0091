"""Transaction anonymity judged by its definition: slow, plain, for small data."""

from __future__ import annotations

from collections import defaultdict

from queryveil.checks.verdict import Verdict, Witness
from queryveil.data import Transactions
from queryveil.guarantees import TransactionAnonymity


def verify_transactions_by_force(transactions: Transactions, promise: TransactionAnonymity) -> Verdict:
    """Judge the promise as `verify_transactions` does, by its definition.

    >>> baskets = Transactions.from_frame({"items": [["milk", "tea"], ["tea", "milk"]]})
    >>> verify_transactions_by_force(baskets, TransactionAnonymity(k=2)).holds
    True
    """
    rows_of = defaultdict[tuple[str, ...], list[int]](list)
    for row, items in enumerate(transactions.frame["items"].to_list(), start=1):
        rows_of[tuple(sorted(items))].append(row)
    rare = sorted(
        Witness(
            kind="transaction",
            size=len(bag),
            support=len(rows),
            needed=promise.k,
            rows=tuple(rows[: Verdict.N_KEPT]),
            positions=(),
        )
        for bag, rows in rows_of.items()
        if len(rows) < promise.k
    )
    return Verdict(
        promise=promise,
        holds=not rare,
        witnesses=tuple(rare[: Verdict.N_KEPT]),
        n_violations=len(rare),
        n_users=transactions.n_transactions,
        n_checked_users=sum(bool(items) for items in transactions.frame["items"].to_list()),
    )
