"""Windows of time: which one a row stands in, and whether that can be told."""

from __future__ import annotations

from datetime import timedelta

import polars as pl

from queryveil.errors import BadParameter
from queryveil.guarantees import KmAnonymity, parse_window
from queryveil.log import QueryLog
from queryveil.verify.verdict import Verdict, Witness


def why_windows_blur(log: QueryLog, promise: KmAnonymity, *, time_unit: timedelta | None) -> str | None:
    """Say why the windows of a promise cannot be told apart in this log, if so.

    Then the promise is judged over the whole log. A log that keeps it within its windows keeps it there too, because
    whoever shares a combination within a window shares it in the log; the reverse is not so.
    """
    if time_unit is not None and time_unit <= timedelta(0):
        raise BadParameter("time_unit", time_unit, allowed="longer than nothing")
    if promise.window is None:
        return None
    if "time" not in log.columns:
        reason = "the log has no times"
    elif time_unit is not None and parse_window(promise.window) % time_unit:
        reason = f"times are rounded to {time_unit}"
    else:
        return None
    return f"{reason}, so windows of {promise.window} cannot be told apart; judged over the whole log"


def window_column(log: QueryLog, window: str) -> pl.Series:
    """Give the number of each row's window, counted from 1970-01-01; null, a window of its own, without a time."""
    length_us = parse_window(window) // timedelta(microseconds=1)
    return (log.frame["time"].dt.epoch("us") // length_us).alias("window")


def linked_windows(log: QueryLog, windows: pl.Series) -> tuple[int, list[Witness]]:
    """Count the user ids that stand in more than one window, and point at the first of them."""
    first_rows = (
        pl.DataFrame({"user": log.frame["user"], "window": windows})
        .with_row_index("row", offset=1)
        .group_by("user", "window")
        .agg(pl.col("row").min())
    )
    linked = (
        first_rows.group_by("user")
        .agg(pl.len().alias("n_windows"), pl.col("row").bottom_k(2).sort().alias("rows"))
        .filter(pl.col("n_windows") > 1)
        .sort("n_windows", pl.col("rows").list.first())
    )
    kept = linked.head(Verdict.N_KEPT)
    return linked.height, [
        linked_witness(n_windows, first_rows=rows) for n_windows, rows in kept.select("n_windows", "rows").iter_rows()
    ]


def linked_witness(n_windows: int, *, first_rows: list[int]) -> Witness:
    """Point at a user id that stands in several windows."""
    return Witness(kind="linked_windows", size=0, support=n_windows, needed=1, rows=tuple(first_rows[:2]), positions=())
