"""What methods do before and after: refuse transactions, leave out users who are programs, add warnings."""

import polars as pl

from queryveil import progress
from queryveil.data import ROLES, Profiles, QueryLog, Reading, Transactions
from queryveil.errors import BadInput
from queryveil.release import ColumnReport, Counts, EventCounts, Ids, TimeDetail, count_events

IDLE_MINUTES = 30


def bots(frame: pl.DataFrame, *, threshold: int) -> pl.Series:
    """Return the users with a session of more than `threshold` queries; a session ends after 30 idle minutes.

    Several clicks on the results of one query are several rows of a log, but one query here. Rows without a
    time belong to no session.
    """
    # Paper: section 5.1, step (i).
    rows = frame.lazy().select("user", "time", "query").drop_nulls("time")
    # Few users have so many rows at all.
    queries = rows.filter(pl.len().over("user") > threshold).unique().sort("user", "time")
    pause = pl.col("time") - pl.col("time").shift(1).over("user")
    sessions = queries.with_columns(
        session=(pause > pl.duration(minutes=IDLE_MINUTES)).fill_null(value=False).cum_sum().over("user")
    )
    busy = sessions.group_by("user", "session").len().filter(pl.col("len") > threshold)
    return busy.select(pl.col("user").unique().sort()).collect()["user"]


def rows_of_people(log: QueryLog, *, threshold: int | None, removed: dict[str, int]) -> pl.Series:
    """Return which rows are of people, and write into `removed` how many users and rows are of programs.

    Without a threshold nobody is a program, and without times nobody can be told to be one.
    """
    found = pl.Series("user", [], dtype=pl.String)
    if threshold is not None and "time" in log.columns:
        progress.step("looking for bots")
        found = bots(log.frame, threshold=threshold)
    of_people = ~log.frame["user"].is_in(found.implode())
    removed["bot_users"], removed["bot_rows"] = len(found), log.n_rows - int(of_people.sum())
    return of_people


def without_bots(log: QueryLog, *, threshold: int | None, removed: dict[str, int]) -> pl.DataFrame:
    """Return the rows of people, and write into `removed` how many users and rows of programs went."""
    of_people = rows_of_people(log, threshold=threshold, removed=removed)
    return log.frame.filter(of_people) if removed["bot_users"] else log.frame


def check_queries(log: QueryLog, *, method: str) -> None:
    """Raise if the log is of transactions, which have neither users nor queries that people type."""
    if log.terms_are_items:
        raise BadInput(f"{method} is for logs of queries; for transactions there are km, clump and partition")


def counts_of(log: QueryLog, out: pl.DataFrame) -> Counts:
    """Count the rows and users of a log and of what is released of it."""
    before, n_users = {"n_rows_before": log.n_rows, "n_users_before": log.n_users}, out["user"].n_unique()
    return Counts(**before, n_rows_after=out.height, n_users_after=n_users)


def caveats(
    reading: Reading,
    *,
    seed: int | None,
    columns: list[str],
    shuffled: str = "users and rows",
    bot_threshold: int | None = None,
) -> list[str]:
    """Return the warnings; `shuffled` names what was shuffled with the seed."""
    found = []
    if seed is not None:
        found.append(f"made with a seed: whoever knows it can undo the shuffling of {shuffled}")
    if bot_threshold is not None and "time" not in columns:
        found.append("the log has no times, so programs could not be told from people")
    if reading.n_latin1_rows:
        found.append(f"rows that were not UTF-8 and were read as Latin-1: {reading.n_latin1_rows}")
    if reading.n_foreign_documents:
        found.append(f"documents of indexes that are none of UBI, left out: {reading.n_foreign_documents}")
    if reading.n_fields_left_out:
        found.append(f"fields of documents for which there is no column, left out: {reading.n_fields_left_out}")
    return found


def nothing_kept(data: QueryLog | Profiles | Transactions) -> ColumnReport:
    """Return the report of a release that has none of a log's rows: no id and no time leaves, nor any other column."""
    columns = data.columns if isinstance(data, QueryLog) else []
    return ColumnReport(
        ids=Ids.FRESH,
        time=TimeDetail.DROP,
        dropped=tuple(name for name in columns if name in ROLES and name not in ("user", "query")),
        n_others_dropped=sum(name not in ROLES for name in columns),
    )


def no_events(data: QueryLog | Profiles | Transactions) -> EventCounts | None:
    """Return the counts of events where none of them leaves."""
    return count_events(data) if isinstance(data, QueryLog) else None
