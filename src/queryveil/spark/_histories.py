"""Histories on a cluster: the terms of each user, collected by partition, counted and labelled; bots are excluded."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from pyspark import Broadcast
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from queryveil import progress
from queryveil.data import Int32s, Int64s
from queryveil.data.rows import Rows, pointers
from queryveil.methods.bots import bots
from queryveil.methods.km.km import windows_of
from queryveil.spark._executors import SparkLog, map_frames, to_spark
from queryveil.text import Tokens, tokenize
from queryveil.text.histories import Histories, collect

HISTORIES = "user string, window bigint, n_rows_without_terms bigint, terms array<string>, counts array<int>"
LABELLED = "uid bigint, user string, window bigint, labels array<int>, counts array<int>"
_BETWEEN = "\0"
"""Separates a window from a term: the same term in another window is another one."""


def list_rows(column: pl.Series) -> Rows[Any]:
    """Return a column of lists of numbers as compressed rows."""
    values = column.explode(empty_as_null=False).rechunk().to_numpy()
    return Rows(pointers(column.list.len().to_numpy()), values)


def read_histories(
    frame: pl.DataFrame, *, window: str | None, by_blanks: bool
) -> tuple[Tokens, Int32s, pl.DataFrame, Histories]:
    """Return the tokens of rows, the history that each row belongs to, whose each history is, and the histories."""
    tokens = tokenize(frame["query"], by_blanks=by_blanks)
    windows = pl.Series(np.zeros(frame.height, np.int64)) if window is None else windows_of(frame, window)
    keys = frame.select("user").with_columns(windows.alias("window"))
    who = keys.unique(maintain_order=True)
    codes = keys.join(who.with_row_index("owner"), on=["user", "window"], how="left", maintain_order="left")["owner"]
    owners = codes.to_numpy().astype(np.int32)
    return tokens, owners, who, collect(tokens, owners, n_users=who.height)


def collect_histories(rows: DataFrame, *, window: str | None, by_blanks: bool) -> DataFrame:
    """Return the terms of each user, or of each user and window, and how often each is there."""
    names = ["user", "query"] if window is None else ["user", "query", "time"]
    by_user = rows.select(names).repartition("user")
    return map_frames(by_user, _collect, HISTORIES, by_partition=True, window=window, by_blanks=by_blanks)


def _collect(frame: pl.DataFrame, *, window: str | None, by_blanks: bool) -> pl.DataFrame:
    tokens, owners, who, histories = read_histories(frame, window=window, by_blanks=by_blanks)
    is_bare = tokens.query_terms.lengths[tokens.row_query] == 0
    texts = tokens.vocabulary.gather(histories.terms)
    if window is not None:
        number = who["window"].gather(histories.entry_user).cast(pl.String)
        texts = number + _BETWEEN + texts
    return who.with_columns(
        n_rows_without_terms=np.bincount(owners[is_bare], minlength=who.height),
        terms=histories.user_terms.to_series(texts),
        counts=histories.user_terms.to_series(histories.counts),
    )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Vocabulary:
    """The terms that at least k users have, in the order of their texts, and how many terms and users there are."""

    terms: pl.Series
    support: Int64s
    frequency: Int64s
    n_terms: int
    n_occurrences: int
    n_rows_without_terms: int
    n_entries: int


def strip_windows(terms: pl.Series, *, window: str | None) -> pl.Series:
    """Return terms as they are written, without the window before them if there are any."""
    return terms if window is None else terms.str.replace(rf"^-?\d+{_BETWEEN}", "")


def count_terms(histories: DataFrame, *, k: int, window: str | None = None) -> Vocabulary:
    """Count the users and occurrences of each term; only what k users have comes to the driver."""
    entries = histories.select(F.explode(F.arrays_zip("terms", "counts")).alias("entry"))
    counted = entries.groupBy(F.col("entry.terms").alias("term")).agg(
        F.count("*").alias("support"), F.sum("entry.counts").alias("frequency")
    )
    word = F.col("term") if window is None else F.substring_index("term", _BETWEEN, -1)
    whole = counted.agg(F.count_distinct(word).alias("n"), F.sum("frequency").alias("occurrences")).collect()[0]
    bare = histories.agg(F.sum("n_rows_without_terms").alias("n")).collect()[0]
    frequent = counted.where(F.col("support") >= k).orderBy("term").toArrow()
    support = frequent["support"].to_numpy().astype(np.int64)
    return Vocabulary(
        terms=pl.Series("term", frequent["term"]),
        support=support,
        frequency=frequent["frequency"].to_numpy().astype(np.int64),
        n_terms=int(whole["n"]),
        n_occurrences=int(whole["occurrences"] or 0),
        n_rows_without_terms=int(bare["n"] or 0),
        n_entries=int(support.sum()),
    )


def label_terms(histories: DataFrame, terms: Broadcast[pl.Series]) -> DataFrame:
    """Return each history as labels in ascending order: the places of its terms in `terms`; others are left out."""
    numbered = histories.select("user", "window", "terms", "counts").withColumn("uid", F.monotonically_increasing_id())
    return map_frames(numbered, _label, LABELLED, terms=terms)


def _label(frame: pl.DataFrame, *, terms: Broadcast[pl.Series]) -> pl.DataFrame:
    labels = pl.DataFrame({"terms": terms.value}).with_row_index("labels")
    entries = frame.select("uid", "terms", "counts").explode("terms", "counts", empty_as_null=False)
    lists = entries.join(labels, on="terms").sort("uid", "labels").group_by("uid").agg("labels", "counts")
    # Whoever has none of the terms has nothing to decide.
    return frame.select("uid", "user", "window").join(lists, on="uid")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class RowsWithoutBots:
    """The rows without those of bots, and how many bots and rows of theirs were excluded."""

    frame: DataFrame
    n_bots: int = 0
    n_bot_rows: int = 0


def exclude_bots(log: SparkLog, *, threshold: int | None) -> RowsWithoutBots:
    """Return the rows without bots; whether a user is one is told from the user's own rows."""
    if threshold is None or "time" not in log.columns:
        return RowsWithoutBots(frame=log.frame)
    progress.step("looking for bots")
    rows = log.frame.select("user", "query", "time").repartition("user")
    found = map_frames(rows, _find_bots, "user string, n bigint", by_partition=True, threshold=threshold)
    programs = pl.DataFrame(found.toArrow())
    theirs = F.broadcast(to_spark(programs.select("user"), spark=log.frame.sparkSession))
    return RowsWithoutBots(
        frame=log.frame.join(theirs, "user", "left_anti"),
        n_bots=programs.height,
        n_bot_rows=int(programs["n"].sum()),
    )


def _find_bots(frame: pl.DataFrame, *, threshold: int) -> pl.DataFrame:
    """Return the bots among the users of a partition, which holds all of their rows."""
    found = frame.filter(pl.col("user").is_in(bots(frame, threshold=threshold).implode()))
    return found.group_by("user").agg(n=pl.len())
