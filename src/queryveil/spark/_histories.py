"""Histories on a cluster: the terms of each user, collected by partition, counted and labelled; bots are excluded.

Of these counts `inspect` tells what is in a log, and `measure` what a release is still good for.
"""

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import polars as pl
from pyspark import Broadcast
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from queryveil import errors, progress
from queryveil.data import Int32s, Int64s
from queryveil.data.rows import Rows, group, pointers
from queryveil.methods.bots import bots
from queryveil.methods.km.combinations import Index, mark_alone
from queryveil.methods.km.km import windows_of
from queryveil.release import Manifest
from queryveil.reports.inspection import Inspection, check_sizes
from queryveil.spark import _executors
from queryveil.spark._executors import SparkLog, cached, map_frames, map_groups, to_spark
from queryveil.text import Tokens, join_terms, tokenize
from queryveil.text.histories import Histories, collect
from queryveil.utility import frequencies, score
from queryveil.utility.kept import kept_score

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


_NUMBERED = "uid bigint, has_other boolean, items array<int>"
_PARTS = "shard int, uid bigint, items array<int>"
_ALL_STEPS = 1 << 62
_ALONE = "uid bigint, size int"


def inspect(log: SparkLog, *, k: int = 2, m: int = 3) -> Inspection:
    """Count what is in a log, and the users with one, two, ... m terms that fewer than k users share."""
    check_sizes(k=k, m=m)
    progress.step("reading terms")
    by_blanks = log.layout.terms_are_items
    with cached(collect_histories(log.frame, window=None, by_blanks=by_blanks)) as histories:
        vocabulary = count_terms(histories, k=k)
        users = histories.agg(F.count("*").alias("n"), F.max(F.size("terms")).alias("longest")).collect()[0]
        facts = [F.count_distinct("query").alias("distinct"), F.count_if(F.col("query") == "").alias("empty")]
        times = [F.min("time").alias("first"), F.max("time").alias("last")] if "time" in log.columns else []
        rows = log.frame.agg(*facts, *times).collect()[0]
        return Inspection(
            n_rows=log.n_rows,
            n_users=int(users["n"]),
            n_distinct_queries=int(rows["distinct"]),
            n_empty_queries=int(rows["empty"] or 0),
            n_terms=vocabulary.n_terms,
            n_term_occurrences=vocabulary.n_occurrences,
            longest_history=int(users["longest"] or 0),
            first_time=rows["first"] if times else None,
            last_time=rows["last"] if times else None,
            columns=tuple(log.columns),
            k=k,
            alone=_alone(histories, vocabulary, k=k, m=m),
            n_bad_rows_skipped=log.reading.n_bad_rows_skipped,
        )


def _alone(histories: DataFrame, vocabulary: Vocabulary, *, k: int, m: int) -> dict[int, int]:
    """Count the users with a combination of up to 1, 2, ... m terms that fewer than k users have."""
    progress.step("counting users who stand alone")
    order = np.argsort(vocabulary.support, kind="stable")
    terms = histories.sparkSession.sparkContext.broadcast(vocabulary.terms.gather(pl.Series(order)))
    numbered = histories.select(F.xxhash64("user").alias("uid"), F.col("terms").alias("items"))
    numbered = map_frames(numbered, _executors.number_items, _NUMBERED, items=terms)
    n_shards = _executors.n_shards_for(histories, vocabulary.n_entries)
    with cached(numbered) as once:
        parts = map_frames(once, _executors.split_by_shard, _PARTS, n_shards=n_shards)
        n_items = len(vocabulary.terms)
        found = map_groups(parts, "shard", _alone_in_shard, _ALONE, k=k, m=m, n_items=n_items, n_shards=n_shards)
        rare = once.where("has_other").select("uid", F.lit(1).alias("size"))
        smallest = rare.union(found).groupBy("uid").agg(F.min("size").alias("size")).groupBy("size").count()
        counts = {row["size"]: int(row["count"]) for row in smallest.collect()}
    return {size: sum(n for smaller, n in counts.items() if smaller <= size) for size in range(1, m + 1)}


def _alone_in_shard(parts: pl.DataFrame, *, k: int, m: int, n_items: int, n_shards: int) -> pl.DataFrame:
    """Return the users with a rare combination whose rarest term is this shard's, and its size."""
    rows = list_rows(parts["items"])
    mine = np.flatnonzero(rows.values % n_shards == parts["shard"][0])
    posting_ptr, places = group(rows.values[mine], n_items)
    index = Index(*rows, rows.row_of_entry.astype(np.int32), posting_ptr, mine[places])
    work = np.zeros((numba.get_num_threads(), n_items), np.int32)
    smallest = np.zeros(rows.n_rows, np.int32)
    for size in range(2, m + 1):
        alone = (smallest > 0).astype(np.int8)
        mark_alone(index, k, size, work, alone, _ALL_STEPS)
        smallest[(alone == 1) & (smallest == 0)] = size
    return parts.select("uid", size=smallest).filter(pl.col("size") > 0)


_LEFT_OUT = "suggestions, profiles and advertising are left out: they are measured on one machine"


def measure(original: SparkLog, released: SparkLog, *, manifest: Manifest) -> score.Measures:
    """Measure a released log beside the one it was made from."""
    has_items = manifest.promise.items
    by_blanks = original.layout.terms_are_items
    if has_items and not by_blanks:
        raise errors.NotYet(
            "terms that moved up on Spark", "what they lost is told by a taxonomy", instead="leave out --engine"
        )
    progress.step("measuring what is kept")
    before, after = (
        map_frames(log.frame.select("query"), _normal, by_blanks=by_blanks) for log in (original, released)
    )
    queries_before, queries_after = _side_by_side(before.where("query != ''"), after.where("query != ''"))
    terms_before, terms_after = _side_by_side(_terms(before), _terms(after))
    n_real = max(0, released.n_rows - manifest.changed.get("rows_added", 0))
    kept = np.minimum(terms_before, terms_after * (n_real / max(1, released.n_rows)))
    asked = queries_before > 0
    scores = [
        kept_score("rows_kept", score.share(min(n_real, original.n_rows), original.n_rows)),
        kept_score("terms_kept", score.share(int((kept > 0).sum()), int((terms_before > 0).sum()))),
        kept_score("queries_kept", score.share(int((asked & (queries_after > 0)).sum()), int(asked.sum()))),
        kept_score("log_size_kept", score.share(float(kept.sum()), float(terms_before.sum()))),
    ]
    notes = [_LEFT_OUT]
    if manifest.promise.window is None:
        n_users = original.n_users
        scores.insert(1, kept_score("users_kept", score.share(min(released.n_users, n_users), n_users)))
    else:
        notes.append("users kept is left out: users have a new id in each window, and nobody can tell who is who")
    found = score.Measures(scores=tuple(scores), notes=tuple(notes))
    if original.n_rows != manifest.counts.n_rows_before:
        found = score.note("the release says that it was made from another number of rows: give that log") + found
    return found + frequencies.frequencies_of_counts(queries_before, queries_after)


def _side_by_side(before: DataFrame, after: DataFrame) -> tuple[Int64s, Int64s]:
    """Return how often each text is there before and after; the texts themselves stay on the cluster."""
    (name,) = before.columns
    mine = before.groupBy(name).agg(F.count("*").alias("before"))
    theirs = after.groupBy(name).agg(F.count("*").alias("after"))
    both = mine.join(theirs, name, "full").na.fill(0, ["before", "after"])
    counts = both.groupBy("before", "after").agg(F.count("*").alias("n")).toArrow()
    n = counts["n"].to_numpy()
    return np.repeat(counts["before"].to_numpy(), n), np.repeat(counts["after"].to_numpy(), n)


def _normal(rows: pl.DataFrame, *, by_blanks: bool) -> pl.DataFrame:
    """Return queries as their terms with one blank between them."""
    return pl.DataFrame({"query": join_terms(rows["query"], by_blanks=by_blanks)})


def _terms(texts: DataFrame) -> DataFrame:
    return texts.select(F.explode(F.split("query", " ")).alias("term")).where("term != ''")
