"""The stages of a stream before and after the pools: events in, packed by pool, and released rows out."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec
import polars as pl
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import AtomicType, DataType, IntegerType, StringType, StructType, TimestampNTZType

from queryveil.data import UInt64s
from queryveil.errors import BadParameter
from queryveil.methods.swap.preparing import CATEGORY_NAMES, prepare
from queryveil.release import ColumnPolicy, Ids
from queryveil.service.lines import MAX_EVENT_BYTES
from queryveil.spark._executors import Batches, map_batches
from queryveil.spark.streaming._pools import PACKED, TALLY, hash_key, pack, places, unpack
from queryveil.text.classifier import Classifier, Kind

_SCHEMA = pa.schema([("category", pa.int32()), ("shard", pa.int32()), ("events", pa.binary())])
_HEX_DIGITS = 8
_OF_POOLS = ("shard", "category")
"""Columns that every row has besides those of its event."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class EventsToPools:
    """Remove identifiers from events, classify them, rename their users and pack those of each pool.

    Privacy: key and secret stay inside Python functions. As literals they would stand in Spark's plans and logs.
    """

    key: bytes
    secret: bytes
    shards: int
    unclassified: str
    classifier: Classifier | Kind
    keep: tuple[str, ...] = field(default=())

    def pack(self, events: DataFrame) -> DataFrame:
        """Return the packed events of a streaming frame with columns user and query, and time if there is one."""
        return map_batches(events.select(*_columns(events, keep=self.keep)), self._pack_batches, PACKED)

    def _pack_batches(self, batches: Batches) -> Batches:
        chosen = self.classifier
        classifier = chosen if isinstance(chosen, Classifier) else Classifier(kind=chosen)
        names = ColumnPolicy(ids=Ids.KEYED, key=self.key)
        tally: Counter[str] = Counter()
        for batch in batches:
            events = self._prepared(_frame(batch), classifier, tally)
            if events.height:
                yield _batch(_by_pool(events, names=names, key=hash_key(self.secret), shards=self.shards))
        if tally:
            yield _batch(iter([(TALLY, 0, msgspec.msgpack.encode(dict(tally)))]))

    def _prepared(self, events: pl.DataFrame, classifier: Classifier, tally: Counter[str]) -> pl.DataFrame:
        """Return the events that may wait in a pool, and count the others."""
        named = events.filter(pl.col("user").str.strip_chars() != "")
        prepared = prepare(named, classifier=classifier, unclassified=self.unclassified)
        n_bytes = pl.col("user").str.len_bytes() + pl.col("query").str.len_bytes()
        ready = prepared.frame.filter(n_bytes <= MAX_EVENT_BYTES)
        tally.update(
            n_read=events.height,
            n_bad=events.height - named.height,
            n_empty=prepared.n_empty,
            n_emptied=prepared.n_emptied,
            n_unclassified_dropped=prepared.n_unclassified_dropped,
            n_suppressed=prepared.frame.height - ready.height,
            n_identifiers=sum(prepared.identifiers.values()),
        )
        return ready


def _columns(events: DataFrame, *, keep: tuple[str, ...]) -> list[Column]:
    """Return the columns that are needed, under names of their own, texts in sound UTF-8."""
    texts = [F.make_valid_utf8(F.col(name).cast("string")).alias(name) for name in ("user", "query")]
    time = F.unix_micros(F.col("time").try_cast("timestamp")) if "time" in events.columns else F.lit(None).cast("long")
    return [*texts, time.alias("time"), *(F.col(f"`{name}`").alias(f"kept {name}") for name in keep)]


def _frame(batch: pa.RecordBatch) -> pl.DataFrame:
    frame = pl.from_arrow(batch)
    assert isinstance(frame, pl.DataFrame)
    return frame


def _by_pool(
    events: pl.DataFrame, *, names: ColumnPolicy, key: UInt64s, shards: int
) -> Iterator[tuple[int, int, bytes]]:
    """Return category, shard and packed events of each pool.

    From here on users have the names that they leave with: no state holds another.
    """
    events = events.with_columns(names.released_ids(events["user"]))
    shard = pl.col("user").str.head(_HEX_DIGITS).str.to_integer(base=16) % shards
    events = events.with_columns(places(events, key=key), shard=shard.cast(pl.Int32))
    for (category, number), own in events.partition_by("category", "shard", as_dict=True, include_key=True).items():
        yield int(category), int(number), pack(own.drop("shard"))


def _batch(rows: Iterator[tuple[int, int, bytes]]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    return pa.RecordBatch.from_arrays(
        [pa.array(column, type=kind.type) for column, kind in zip(columns, _SCHEMA, strict=True)], schema=_SCHEMA
    )


def shard_of(user: str, *, shards: int) -> int:
    """Return the shard of a user by the name that a release has for it.

    >>> shard_of("00000005aaaaaaaaaaaaaaaaaaaaaaaa", shards=4)
    1
    """
    return int(user[:_HEX_DIGITS], 16) % shards


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class PoolsToRows:
    """Unpack what pools release: shard, category, the user that a query was given to, and what `columns` releases.

    Times are those of the release.
    """

    columns: ColumnPolicy

    def unpack(self, packed: DataFrame, *, like: DataFrame) -> DataFrame:
        """Return released rows; columns to keep have the types that they had in the events."""
        schema = self._schema(like)
        # Spark writes down the time of a batch before it begins, so a batch that is done again has the same one.
        # Privacy: when the query itself was asked would lead back to who did.
        timed = packed.withColumn("time", F.localtimestamp()) if "time" in like.columns else packed
        arrow = to_arrow_schema(schema, timezone="UTC")
        rows = map_batches(timed, _unpack_batches, schema, columns=self.columns, schema=arrow)
        return rows.withColumn("time", F.col("time").cast("timestamp")) if "time" in schema.names else rows

    def _schema(self, like: DataFrame) -> StructType:
        types: dict[str, DataType] = {
            "shard": IntegerType(),
            "category": StringType(),
            "user": StringType(),
            "query": StringType(),
        }
        types |= {"time": TimestampNTZType()} if "time" in like.columns else {}
        types |= {name: like.schema[name].dataType for name in self.columns.keep}
        schema = StructType()
        for name in self.columns.released_names(types, protected=_OF_POOLS):
            schema = schema.add(name, types[name])
        return schema


def _unpack_batches(batches: Batches, *, columns: ColumnPolicy, schema: pa.Schema) -> Batches:
    names = pl.Series(CATEGORY_NAMES, dtype=pl.String)
    for batch in batches:
        for row in batch.to_pylist():
            frame = unpack(row["events"])
            frame = frame.rename({f"kept {name}": name for name in columns.keep}).with_columns(
                category=names.gather(frame["category"].cast(pl.UInt32)), shard=pl.lit(row["shard"], pl.Int32)
            )
            if "time" in row:
                frame = frame.with_columns(time=pl.lit(row["time"], pl.Datetime("us")))
            released = columns.released_columns(frame, protected=_OF_POOLS)
            yield from released.select(schema.names).to_arrow().cast(schema).combine_chunks().to_batches()


def check_simple(events: DataFrame, *, keep: tuple[str, ...]) -> None:
    """Raise if a column to keep is not of a simple type: lists and records cannot be stored in a pool."""
    for name in keep:
        if not isinstance(events.schema[name].dataType, AtomicType):
            raise BadParameter("keep", name, allowed="columns of texts, numbers or times; write others as text first")
