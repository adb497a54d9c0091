"""Releases made by hand, for tests of attackers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec
import polars as pl

from queryveil.columns import ColumnReport, Ids, TimeDetail
from queryveil.guarantees import NoPromise, TransactionAnonymity
from queryveil.log import ROLES, QueryLog
from queryveil.paired import Paired, pseudonymised
from queryveil.release import Release
from queryveil.testing.logs import log_of
from queryveil.transactions import Transactions

MONDAY = datetime(2024, 3, 4)


def released(log: QueryLog, *, ids: Ids = Ids.KEEP, time: TimeDetail | None = None, method: str = "by_hand") -> Release:
    """Give any log as a release that promises nothing."""
    release = pseudonymised(log)
    report = msgspec.structs.replace(release.manifest.columns, ids=ids)
    if time is not None:
        report = msgspec.structs.replace(report, time=time)
    return Release(data=log, manifest=msgspec.structs.replace(release.manifest, columns=report, method=method))


def paired_histories(before: dict[str, list[str]], after: dict[str, list[str]]) -> Paired:
    """Put histories beside others of the same ids."""
    return Paired.of(log_of(before), release=released(log_of(after)))


def released_bags(bags: list[list[str]]) -> Release:
    """Give bags of items as a release."""
    data = Transactions.from_frame(pl.DataFrame({"items": bags}, schema={"items": pl.List(pl.String)}))
    manifest = pseudonymised(log_of({"u1": ["a"]})).manifest
    return Release(
        data=data,
        manifest=msgspec.structs.replace(
            manifest,
            method="clump",
            promise=TransactionAnonymity(k=2) if bags else NoPromise(reason="empty"),
            columns=ColumnReport(ids=Ids.FRESH, time=TimeDetail.DROP),
        ),
    )


def timed_log(rows: Sequence[tuple[str, str, float | None]]) -> QueryLog:
    """Give a log of users, queries and hours since a Monday."""
    times = [None if hours is None else MONDAY + timedelta(hours=hours) for _, _, hours in rows]
    columns = {"user": [user for user, _, _ in rows], "query": [query for _, query, _ in rows], "time": times}
    return QueryLog(frame=pl.DataFrame(columns, schema={name: ROLES[name] for name in columns}))
