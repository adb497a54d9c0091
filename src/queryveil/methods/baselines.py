"""What the baselines share: releases that promise nothing, to compare with what the methods do."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from queryveil.columns import ColumnPolicy
from queryveil.errors import BadInput
from queryveil.guarantees import NoPromise
from queryveil.log import Format, QueryLog
from queryveil.methods.caveats import caveats
from queryveil.release import Counts, Manifest


def check_queries(log: QueryLog, *, method: str) -> None:
    """Raise if the log is of transactions, which have neither users nor queries that people type."""
    if log.layout.format is Format.TRANSACTIONS:
        raise BadInput(f"{method} is for logs of queries; for transactions there are km, clump and partition")


def baseline_manifest(
    log: QueryLog,
    out: pl.DataFrame,
    *,
    method: str,
    promise: NoPromise,
    columns: ColumnPolicy,
    seeded: bool,
    parameters: Mapping[str, int] | None = None,
    removed: Mapping[str, int] | None = None,
    changed: Mapping[str, int] | None = None,
    warnings: tuple[str, ...] = (),
) -> Manifest:
    """Give the manifest of a release that promises nothing, and says so first."""
    report = columns.report(log.columns)
    n_users = out["user"].n_unique()
    return Manifest(
        method=method,
        promise=promise,
        parameters=dict(parameters or {}),
        counts=Counts(
            n_rows_before=log.n_rows, n_rows_after=out.height, n_users_before=log.n_users, n_users_after=n_users
        ),
        removed={"bad_rows_skipped": log.reading.n_bad_rows_skipped}
        | dict(removed or {})
        | {"users_left_empty": log.n_users - n_users},
        changed=dict(changed or {}),
        columns=report,
        warnings=(
            f"promises nothing: {promise.reason}; it is there to compare with, not to be handed out",
            # No promise covers any column, so none is named as not covered.
            *columns.warnings(log.columns, protected=report.kept),
            *warnings,
            *caveats(log.reading, seeded=seeded, shuffled="users and rows", cannot_tell_bots=False),
        ),
    )
