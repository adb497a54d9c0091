"""Groups of profiles with what shards must know of each other's, and the joining of those that are too small."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa

from queryveil.engines.spark.executors import guarded_table, speaking
from queryveil.engines.spark.logs import as_frame, schema_of
from queryveil.engines.spark.shards import SHARD
from queryveil.methods.plink import Grouping

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

COUNTED = pa.schema(
    [
        ("group", pa.int64()),
        ("members", pa.int64()),
        ("size", pa.int64()),
        ("whole", pa.int64()),
        ("terms", pa.list_(pa.string())),
        ("weights", pa.list_(pa.float64())),
        ("holders", pa.list_(pa.int64())),
    ]
)
"""Groups with the holders of each released term, and their size before terms were dropped (`whole`)."""

_DIGITS = 6


def with_counts(grouping: Grouping) -> pl.DataFrame:
    """Give the groups of a shard with holders, also where these are not released, and their whole size."""
    groups = grouping.release.groups.frame
    of_user = grouping.profiles.frame.select("user", "terms").join(grouping.membership, on="user")
    whole = of_user.group_by("group").agg(whole=pl.col("terms").list.len().cast(pl.Int64).sum())
    held = of_user.explode("terms").group_by("group", "terms").agg(holders=pl.len().cast(pl.Int64))
    entries = groups.select("group", "terms", "weights").filter(pl.col("terms").list.len() > 0)
    entries = entries.explode("terms", "weights").join(held, on=["group", "terms"], maintain_order="left")
    lists = entries.group_by("group", maintain_order=True).agg("terms", "weights", "holders")
    out = groups.select("group", "members", "size").join(whole, on="group", maintain_order="left")
    out = out.join(lists, on="group", how="left", maintain_order="left")
    # A group may have no terms left.
    return out.with_columns(pl.col("terms", "weights", "holders").fill_null([])).select(COUNTED.names)


def join_small(groups: DataFrame, *, needed: int, union: bool, scratch: str) -> DataFrame:
    """Join groups of fewer than the needed terms, all of the log counted, with others of their shard."""
    schema = COUNTED.append(pa.field(SHARD, pa.int32()))
    work = guarded_table(partial(_joined, needed=needed, union=union, schema=schema))
    with speaking(so="nothing was released"):
        groups.groupBy(SHARD).applyInArrow(work, schema_of(schema)).write.parquet(f"{scratch}/joined")
        return groups.sparkSession.read.parquet(f"{scratch}/joined")


def _joined(table: pa.Table, *, needed: int, union: bool, schema: pa.Schema) -> pa.Table:
    frame = as_frame(table).sort("group")
    into = pl.DataFrame({"group": frame["group"], "into": places(frame["whole"].to_list(), needed=needed)})
    frame = frame.join(into, on="group")
    sums = frame.group_by("into").agg(pl.col("members", "size", "whole").sum(), pl.col(SHARD).first())
    entries = frame.filter(pl.col("terms").list.len() > 0).explode("terms", "weights", "holders")
    weight = pl.col("weights").max() if union else (pl.col("weights") * pl.col("members")).sum()
    each = entries.group_by("into", "terms").agg(weight.alias("weights"), pl.col("holders").sum())
    each = each.join(sums.select("into", "members"), on="into")
    if not union:
        # The centroid of both is that of all their members.
        mean = (pl.col("weights") / pl.col("members")).round(_DIGITS).clip(lower_bound=10.0**-_DIGITS)
        each = each.with_columns(weights=mean)
    lists = each.sort("into", "terms").group_by("into", maintain_order=True).agg("terms", "weights", "holders")
    out = sums.join(lists, on="into", how="left").with_columns(pl.col("terms", "weights", "holders").fill_null([]))
    return out.rename({"into": "group"}).select(schema.names).to_arrow().cast(schema)


def places(sizes: list[int], *, needed: int) -> list[int]:
    """Say for each group in which it ends up: small ones are joined from the smallest on, until each has enough.

    >>> places([9, 2, 5, 3], needed=6), places([9, 2], needed=6), places([5, 5, 5], needed=10)
    ([0, 1, 1, 1], [1, 1], [0, 0, 0])
    """
    into = list(range(len(sizes)))
    first, size = -1, needed
    for group in sorted(into, key=sizes.__getitem__):
        if size >= needed and sizes[group] >= needed:
            return into
        if size >= needed:
            last, first, size = first, group, 0
        into[group] = first
        size += sizes[group]
    # What is left over is not enough by itself.
    return [last if size < needed and last >= 0 and place == first else place for place in into]
