"""Releases made by hand, for tests of attackers and measures."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec
import polars as pl

from queryveil.data import CLICKS_SCHEMA, ROLES, TALLIES_SCHEMA, QueryLog, Tallies, Transactions
from queryveil.guarantees import DifferentialPrivacy, NoPromise, TransactionAnonymity
from queryveil.pairing import Pair, pseudonymised
from queryveil.release import ColumnReport, Counts, Ids, Manifest, Noise, Release, TimeDetail
from queryveil.testing.logs import log_of

MONDAY = datetime(2024, 3, 4)


def released(log: QueryLog, *, ids: Ids = Ids.KEEP, time: TimeDetail | None = None, method: str = "by_hand") -> Release:
    """Return any log as a release that promises nothing."""
    release = pseudonymised(log)
    report = msgspec.structs.replace(release.manifest.columns, ids=ids)
    if time is not None:
        report = msgspec.structs.replace(report, time=time)
    return Release(data=log, manifest=msgspec.structs.replace(release.manifest, columns=report, method=method))


def paired_histories(before: dict[str, list[str]], after: dict[str, list[str]]) -> Pair:
    """Put histories beside others of the same ids."""
    return Pair(log_of(before), release=released(log_of(after)))


def released_bags(bags: list[list[str]]) -> Release:
    """Return bags of items as a release."""
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
    """Return a log of users, queries and hours since a Monday."""
    times = [None if hours is None else MONDAY + timedelta(hours=hours) for _, _, hours in rows]
    columns = {"user": [user for user, _, _ in rows], "query": [query for _, query, _ in rows], "time": times}
    return QueryLog(frame=pl.DataFrame(columns, schema={name: ROLES[name] for name in columns}))


def released_tallies(
    counts: dict[str, int],
    *,
    clicks: dict[tuple[str, str], int] | None = None,
    threshold: int = 2,
    epsilon: float = 1.0,
    delta: float = 1e-5,
) -> Release:
    """Return queries with counts as a release of noisy counts; how they came about is up to the test."""
    frame = pl.DataFrame({"query": list(counts), "count": list(counts.values())}, schema=TALLIES_SCHEMA)
    pairs = None
    if clicks is not None:
        rows = [(query, url, n) for (query, url), n in clicks.items()]
        pairs = pl.DataFrame(rows, schema=CLICKS_SCHEMA, orient="row")
    part = Noise(
        what="queries",
        mechanism="laplace",
        max_items=1,
        scale=1 / epsilon,
        threshold=threshold,
        epsilon=epsilon,
        delta=delta,
    )
    return Release(
        data=Tallies(frame=frame, clicks=pairs),
        manifest=Manifest(
            method="dp",
            promise=DifferentialPrivacy(epsilon=epsilon, delta=delta),
            parameters={
                "epsilon": epsilon,
                "delta": delta,
                "max_queries": 1,
                "rounds": 1,
                "clicks": 0.0 if clicks is None else 0.5,
                "max_clicks": 1,
            },
            counts=Counts(n_rows_before=0, n_rows_after=len(counts), n_users_before=0, n_users_after=0),
            removed={},
            columns=ColumnReport(ids=Ids.FRESH, time=TimeDetail.DROP),
            noise=(part,) if clicks is None else (part, msgspec.structs.replace(part, what="clicks")),
        ),
    )
