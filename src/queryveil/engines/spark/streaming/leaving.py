"""The way out of the pools: parcels of released events to rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa

from queryveil.columns import TimeDetail
from queryveil.engines.spark.executors import Batches, guarded
from queryveil.engines.spark.streaming.parcels import unpacked
from queryveil.errors import BadParameter
from queryveil.stream.preparing import CATEGORY_NAMES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Leaving:
    """What leaves: the shard, the category, the user that a query was given to, the query, and columns to keep.

    With a `time` that is not dropped, also the time of release.
    """

    keep: tuple[str, ...]
    time: TimeDetail

    def rows(self, parcels: DataFrame, *, like: DataFrame) -> DataFrame:
        """Give the rows of parcels; columns to keep have the types that they had in the events."""
        from pyspark.sql import functions as F  # noqa: N812, PLC0415 - PySpark takes a second to load
        from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415

        schema = _schema(like, keep=self.keep)
        rows = parcels.mapInArrow(_function(to_arrow_schema(schema, timezone="UTC")), schema)
        kept = [F.col(f"`kept {name}`").alias(name) for name in self.keep]
        leaving = [F.col(name) for name in ("shard", "category", "user", "query")]
        if "time" in like.columns and self.time is not TimeDetail.DROP:
            # Spark writes down the time of a batch before it begins, so a batch that is done again has the same one.
            # Privacy: when the query itself was asked would lead back to who did.
            now = F.current_timestamp()
            leaving.append((now if self.time is TimeDetail.KEEP else F.date_trunc(self.time, now)).alias("time"))
        return rows.select(*leaving, *kept)


def check_simple(events: DataFrame, *, keep: tuple[str, ...]) -> None:
    """Raise if a column to keep cannot travel: lists and records have no place in a pool."""
    from pyspark.sql.types import AtomicType  # noqa: PLC0415

    for name in keep:
        if not isinstance(events.schema[name].dataType, AtomicType):
            raise BadParameter("keep", name, allowed="columns of texts, numbers or times; write others as text first")


def _schema(like: DataFrame, *, keep: tuple[str, ...]) -> StructType:
    from pyspark.sql.types import IntegerType, StringType, StructType  # noqa: PLC0415

    schema = StructType().add("shard", IntegerType()).add("category", StringType())
    schema = schema.add("user", StringType()).add("query", StringType())
    for name in keep:
        schema = schema.add(f"kept {name}", like.schema[name].dataType)
    return schema


def _function(schema: pa.Schema) -> Callable[[Batches], Batches]:
    names = pl.Series(CATEGORY_NAMES, dtype=pl.String)

    def work(batches: Batches) -> Batches:
        for batch in batches:
            for shard, parcel in zip(batch["shard"].to_pylist(), batch["parcel"].to_pylist(), strict=True):
                frame = unpacked(parcel)
                category = names.gather(frame["category"].cast(pl.UInt32))
                frame = frame.with_columns(category=category, shard=pl.lit(shard, dtype=pl.Int32))
                yield from frame.select(schema.names).to_arrow().cast(schema).combine_chunks().to_batches()

    return guarded(work)
