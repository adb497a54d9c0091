"""Inspect a log on a cluster: sizes, columns, and how many users are identified by their own terms."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numba
import numpy as np
import polars as pl
import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from queryveil import progress
from queryveil.methods.km.combinations import mark_alone
from queryveil.reports.inspection import Inspection, check_sizes
from queryveil.spark.executors import Batches, guarded, guarded_table, kept, speaking, suffixes
from queryveil.spark.km_histories import Vocabulary, count_terms, gather
from queryveil.spark.logs import SparkLog, schema_of

if TYPE_CHECKING:
    from pyspark import Broadcast
    from pyspark.sql import Column, DataFrame

_NUMBERED = pa.schema([("uid", pa.int64()), ("has_rare", pa.bool_()), ("items", pa.list_(pa.int32()))])
_PARTS = pa.schema([("shard", pa.int32()), ("uid", pa.int64()), ("items", pa.list_(pa.int32()))])
_ALONE = pa.schema([("uid", pa.int64()), ("size", pa.int32())])
_ITEMS_A_SHARD = 4_000_000


def inspect(log: SparkLog, *, k: int = 2, m: int = 3) -> Inspection:
    """Count what is in a log, and the users with one, two, ... m terms that fewer than k users share."""
    check_sizes(k=k, m=m)
    progress.step("reading terms")
    by_blanks = log.layout.terms_are_items
    with kept(gather(log.frame, window=None, by_blanks=by_blanks)) as histories:
        vocabulary = count_terms(histories, k=k)
        with speaking():
            users = histories.agg(F.count("*").alias("n"), F.max(F.size("terms")).alias("longest")).first()
            rows = log.frame.agg(*_facts(log.columns)).first()
        assert users is not None
        assert rows is not None
        return Inspection(
            n_rows=log.n_rows,
            n_users=int(users["n"]),
            n_distinct_queries=int(rows["distinct"]),
            n_empty_queries=int(rows["empty"] or 0),
            n_terms=vocabulary.n_terms,
            n_term_occurrences=vocabulary.n_occurrences,
            longest_history=int(users["longest"] or 0),
            first_time=rows["first"] if "time" in log.columns else None,
            last_time=rows["last"] if "time" in log.columns else None,
            columns=tuple(log.columns),
            k=k,
            alone=_alone(histories, vocabulary, k=k, m=m),
        )


def _facts(columns: list[str]) -> list[Column]:
    facts = [
        F.count_distinct("query").alias("distinct"),
        F.count_if(F.col("query") == "").alias("empty"),
    ]
    return facts + ([F.min("time").alias("first"), F.max("time").alias("last")] if "time" in columns else [])


def _alone(histories: DataFrame, vocabulary: Vocabulary, *, k: int, m: int) -> dict[int, int]:
    """Count the users with a combination of up to 1, 2, ... m terms that fewer than k users have."""
    progress.step("counting users who stand alone")
    session = histories.sparkSession
    order = np.argsort(vocabulary.support, kind="stable")
    terms = session.sparkContext.broadcast(vocabulary.terms.gather(pl.Series(order)))
    numbered = histories.select("terms", F.xxhash64("user").alias("uid"))
    numbered = numbered.mapInArrow(guarded(partial(_numbered, terms=terms)), schema_of(_NUMBERED))
    n_shards = max(2 * session.sparkContext.defaultParallelism, -(-vocabulary.n_entries // _ITEMS_A_SHARD))
    work = partial(_alone_in_shard, k=k, m=m, n_items=len(vocabulary.terms), n_shards=n_shards)
    with kept(numbered) as once, speaking():
        parts = once.mapInArrow(guarded(partial(_shared_out, n_shards=n_shards)), schema_of(_PARTS))
        found = parts.groupBy("shard").applyInArrow(guarded_table(work), schema_of(_ALONE))
        rare = once.where("has_rare").select("uid", F.lit(1).alias("size"))
        smallest = rare.union(found).groupBy("uid").agg(F.min("size").alias("size")).groupBy("size").count()
        counts = {row["size"]: int(row["count"]) for row in smallest.collect()}
    return {size: sum(n for smaller, n in counts.items() if smaller <= size) for size in range(1, m + 1)}


def _numbered(batches: Batches, *, terms: Broadcast[pl.Series]) -> Batches:
    """Return histories as numbers of the terms that k users have, ascending, and whether they have any other."""
    known = pl.DataFrame({"terms": terms.value}).with_row_index("item").with_columns(pl.col("item").cast(pl.Int32))
    for batch in batches:
        rows = pl.DataFrame(pl.from_arrow(batch))
        found = rows.explode("terms", empty_as_null=False).join(known, on="terms", how="left")
        lists = found.group_by("uid").agg(
            has_rare=pl.col("item").is_null().any(), items=pl.col("item").drop_nulls().sort()
        )
        yield from lists.select(_NUMBERED.names).to_arrow().cast(_NUMBERED).to_batches()


def _shared_out(batches: Batches, *, n_shards: int) -> Batches:
    for batch in batches:
        lists = batch["items"]
        starts = np.append(0, np.cumsum(lists.value_lengths().to_numpy())).astype(np.int64)
        items = lists.flatten().to_numpy()
        shard, row, begins, places = suffixes(starts, items, n_shards=n_shards)
        parts = pa.ListArray.from_arrays(pa.array(begins.astype(np.int32)), pa.array(items[places]))
        uid = pa.array(batch["uid"].to_numpy()[row])
        yield pa.RecordBatch.from_arrays([pa.array(shard.astype(np.int32)), uid, parts], schema=_PARTS)


def _alone_in_shard(table: pa.Table, *, k: int, m: int, n_items: int, n_shards: int) -> pa.Table:
    """Return the users who stand alone by a combination whose rarest term is this shard's, and its size."""
    lists = table["items"].combine_chunks()
    lengths = lists.value_lengths().to_numpy()
    row_ptr = np.append(0, np.cumsum(lengths)).astype(np.int64)
    items = lists.flatten().to_numpy()
    entry_row = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
    mine = np.flatnonzero(items % n_shards == table["shard"][0].as_py())
    postings = mine[np.argsort(items[mine], kind="stable")].astype(np.int64)
    posting_ptr = np.append(0, np.cumsum(np.bincount(items[mine], minlength=n_items))).astype(np.int64)
    work = np.zeros((numba.get_num_threads(), n_items), np.int32)
    smallest = np.zeros(len(lengths), np.int32)
    for size in range(2, m + 1):
        alone = (smallest > 0).astype(np.int8)
        mark_alone(row_ptr, items, entry_row, posting_ptr, postings, k, size, work, alone)
        smallest[(alone == 1) & (smallest == 0)] = size
    found = smallest > 0
    return pa.table([pa.array(table["uid"].to_numpy()[found]), pa.array(smallest[found])], schema=_ALONE)
