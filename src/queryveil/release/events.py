"""Events in a release: none unless they are asked for, no search id of the log, and every event counted by kind."""

from dataclasses import replace

import msgspec
import numpy as np
import polars as pl

from queryveil.data import QueryLog, count_kinds, is_click, with_own_texts
from queryveil.errors import BadParameter
from queryveil.release.columns import EVENTS, ColumnPolicy, TimeDetail
from queryveil.release.manifest import EventCounts, Manifest
from queryveil.release.release import Release


def rows_for(
    log: QueryLog, columns: ColumnPolicy, *, needs_clicks: bool = False, refusal: str | None = None
) -> QueryLog:
    """Return a log as a method works on it: a row for each click if these are released, else one for each query.

    Its events are there only if they are to be released.

    - `needs_clicks`: whether the promise of the method is about clicks.
    - `refusal`: why the method releases no events; None if it can.
    """
    if EVENTS in columns.keep and refusal is not None:
        raise BadParameter("keep", EVENTS, allowed=f"other columns: {refusal}")
    if log.events is None or EVENTS in columns.keep:
        return log
    if needs_clicks or {"rank", "url"} & set(columns.keep):
        return log.with_clicks_as_rows()
    return replace(log, events=None)


def release_of(
    out: pl.DataFrame,
    manifest: Manifest,
    *,
    rows: QueryLog,
    log: QueryLog,
    columns: ColumnPolicy,
    rng: np.random.Generator,
) -> Release:
    """Return the release of rows that leave, with the events of these if they are kept, and all events counted.

    - `out`: the released rows, with the searches of the log where events are kept.
    - `rows`: the log as the method worked on it, of `rows_for`.
    - `log`: the log as it was given.
    """
    data = _with_events(rows, out, columns=columns, rng=rng) if rows.events is not None else rows.with_frame(out)
    warnings = manifest.warnings
    if data.events is not None and not manifest.promise.promises_nothing:
        n_searches = data.events["search"].n_unique()
        about = f"events that were kept, which the promise does not cover: {data.events.height:,}"
        warnings = (*warnings, f"{about}, of {n_searches:,} searches")
    counts = count_events(log, rows=rows, released=data)
    return Release(data=data, manifest=msgspec.structs.replace(manifest, warnings=warnings, events=counts))


def count_events(
    log: QueryLog, *, rows: QueryLog | None = None, released: QueryLog | None = None
) -> EventCounts | None:
    """Return what became of the events of a log; None if it has none.

    - `rows`: the log as the method worked on it, whose rows may be clicks.
    - `released`: the released log, where events may be.
    """
    if log.events is None:
        return None
    found, kept = count_kinds(log.events), count_kinds(None if released is None else released.events)
    as_rows = 0
    if rows is not None and rows.events is None and "url" in rows.columns and "url" not in log.columns:
        as_rows = int(log.events.select(is_click(pl.col("action")) & pl.col("search").is_not_null()).sum().item() or 0)
    left = {kind: n - kept.get(kind, 0) - (as_rows if kind == "click" else 0) for kind, n in found.items()}
    return EventCounts(kept=kept, dropped={kind: n for kind, n in left.items() if n}, clicks_as_rows=as_rows)


def as_made_from(log: QueryLog, manifest: Manifest) -> QueryLog:
    """Return an original with its clicks as rows, if those of the release were made of such rows."""
    return log.with_clicks_as_rows() if manifest.rows_are_clicks else log


def _with_events(log: QueryLog, out: pl.DataFrame, *, columns: ColumnPolicy, rng: np.random.Generator) -> QueryLog:
    """Return the released rows with their events, both under fresh numbers of searches.

    Privacy: a number is of one search of one id, so it never tells that two ids are of one person; events go with the
    first of several ids. Where a search has several texts and one of them does not leave, its events may be those of
    this one, and are dropped. Their order within a search is random, and their times are as exact as those of queries;
    where times are shared, they would tell more than these, and are dropped.
    """
    assert log.events is not None
    n_before = log.frame.group_by("search").agg(n=pl.len(), n_texts=pl.col("query").n_unique())
    n_left = out.group_by("search").agg(n_left=pl.len())
    unsure = n_before.join(n_left, on="search").filter(pl.col("n_texts") > 1, pl.col("n_left") < pl.col("n"))
    rows = out.with_row_index("row")
    first = pl.when(pl.col("search").is_null()).then("row").otherwise(pl.col("row").min().over("user", "search"))
    rows = rows.with_columns(number=first.rank("dense").cast(pl.Int64))
    numbers = rows.drop_nulls("search").unique("search", keep="first").select("search", "number")
    events = log.events.join(unsure, on="search", how="anti").join(numbers, on="search", how="inner")
    time = columns.time
    has_times = "time" in out.columns and time not in (TimeDetail.DROP, TimeDetail.SHARED)
    times = time.truncate(events["time"]) if has_times else pl.Series("time", [None] * events.height, pl.Datetime("us"))
    events = events.with_columns(times, order=pl.Series(rng.random(events.height)))
    events = events.sort("number", "order").with_columns(search=pl.col("number").cast(pl.String))
    frame = rows.with_columns(search=pl.col("number").cast(pl.String)).select(out.columns)
    return replace(log, frame=frame, events=with_own_texts(events.drop("number", "order")))
