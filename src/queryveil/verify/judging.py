"""The verb: judge a release, whatever it promises."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import polars as pl

from queryveil.errors import BadInput, BadParameter
from queryveil.formats import read_log, read_transactions
from queryveil.guarantees import Guarantee, TransactionAnonymity
from queryveil.log import Format, QueryLog
from queryveil.release import Release, read_release
from queryveil.transactions import Transactions
from queryveil.verify.invented import invented
from queryveil.verify.km import verify_km
from queryveil.verify.tokens import terms_of
from queryveil.verify.transactions import verify_transactions
from queryveil.verify.tree import Tree
from queryveil.verify.verdict import Verdict

_NODES_NOT_JUDGED = "nodes in angle brackets were not compared with the original; give the taxonomy to do so"


def verify(
    release: Release | Path | str,
    *,
    original: QueryLog | Transactions | Path | str | None = None,
    taxonomy: Tree | None = None,
) -> Verdict:
    """Judge the promise of a release, given as a value or as its folder.

    With the `original`, or its file, also look for what the release holds and the original does not: a log where a log
    was released, transactions where transactions were. Where terms or items have moved up in a `taxonomy`, this
    needs that taxonomy.
    """
    if not isinstance(release, Release):
        release = read_release(release)
    promise, unit = release.promise, release.manifest.columns.time.unit
    if isinstance(promise, TransactionAnonymity):
        baskets = None if original is None else _as_transactions(original, unit=release.manifest.parameters.get("unit"))
        return verify_transactions(release.transactions, promise, original=baskets, taxonomy=taxonomy)
    # A format with fixed columns has an empty one for times that were dropped.
    without_times = release.manifest.columns.time.unit is None and "time" in release.log.columns
    data = release.log.with_frame(release.log.frame.drop("time")) if without_times else release.log
    verdict = judge(data, promise, time_unit=unit)
    if original is None:
        return verdict
    log = _as_log(original)
    n_invented, witnesses = invented(release.log, original=log, promise=promise, taxonomy=taxonomy)
    has_nodes = promise.items and taxonomy is None and _has_nodes(release.log)
    return verdict.joined(witnesses=witnesses, n_violations=n_invented, notes=(_NODES_NOT_JUDGED,) if has_nodes else ())


def judge(data: QueryLog | Transactions, promise: Guarantee, *, time_unit: timedelta | None = None) -> Verdict:
    """Judge any promise of released data; `time_unit` is what the times of a log were rounded to."""
    if isinstance(promise, TransactionAnonymity):
        if not isinstance(data, Transactions):
            raise BadInput("this promise is about transactions, and the data is a log")
        return verify_transactions(data, promise)
    if not isinstance(data, QueryLog):
        raise BadInput("this promise is about a log, and the data is transactions")
    return verify_km(data, promise, time_unit=time_unit)


def _as_transactions(original: QueryLog | Transactions | Path | str, *, unit: object) -> Transactions:
    if isinstance(original, Transactions):
        return original
    if not isinstance(original, QueryLog):
        return read_transactions(original)
    by_blanks = original.layout.format is Format.TRANSACTIONS
    lists = [query.split() if by_blanks else terms_of(query) for query in original.frame["query"]]
    rows = original.frame.select("user").with_columns(items=pl.Series(lists, dtype=pl.List(pl.String)))
    if unit != "query":
        rows = rows.group_by("user", maintain_order=True).agg(pl.col("items").explode(empty_as_null=False))
    return Transactions.from_frame(rows.select("items"))


def _as_log(original: QueryLog | Transactions | Path | str) -> QueryLog:
    if isinstance(original, Transactions):
        raise BadParameter("original", "transactions", allowed="a log, because the release is one")
    return original if isinstance(original, QueryLog) else read_log(original)


def _has_nodes(log: QueryLog) -> bool:
    return bool(log.frame["query"].str.contains(r"(?:^|[ \t\r\n])<[^ \t\r\n]*>(?:[ \t\r\n]|$)").any())
