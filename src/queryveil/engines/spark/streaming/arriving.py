"""The way into the pools: events without identifiers, classified and renamed, in parcels by category and shard."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec
import polars as pl
import pyarrow as pa

from queryveil.columns import ColumnPolicy, Ids
from queryveil.engines.spark.executors import Batches, guarded
from queryveil.engines.spark.streaming.parcels import PARCELS, TALLY, hash_key, packed, places
from queryveil.kernels.arrays import UInt64s
from queryveil.stream.preparing import prepare
from queryveil.stream.workers import MAX_EVENT_BYTES
from queryveil.stream.writing import Pseudonyms
from queryveil.text.classifier import Classifier, Kind

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_SCHEMA = pa.schema([("category", pa.int32()), ("shard", pa.int32()), ("parcel", pa.binary())])
_HEX_DIGITS = 8


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Arriving:
    """How events are made ready; it goes to the executors as it is.

    Privacy: key and secret stay inside Python functions. As literals they would stand in Spark's plans and logs.
    """

    key: bytes
    secret: bytes
    shards: int
    unclassified: str
    classifier: Classifier | Kind
    keep: tuple[str, ...] = field(default=())

    def parcels(self, events: DataFrame) -> DataFrame:
        """Give the parcels of a streaming frame with the columns user and query, and time if there is one."""
        return events.select(*_columns(events, keep=self.keep)).mapInArrow(self._function(), PARCELS)

    def _function(self) -> Callable[[Batches], Batches]:
        return guarded(self._ready)

    def _ready(self, batches: Batches) -> Batches:
        chosen = self.classifier
        classifier = chosen if isinstance(chosen, Classifier) else Classifier(kind=chosen)
        names = Pseudonyms(ColumnPolicy(ids=Ids.KEYED, key=self.key))
        tally: Counter[str] = Counter()
        for batch in batches:
            events = self._prepared(_frame(batch), classifier, tally)
            if events.height:
                yield _rows(_apart(events, names=names, key=hash_key(self.secret), shards=self.shards))
        if tally:
            yield _rows(iter([(TALLY, 0, msgspec.msgpack.encode(dict(tally)))]))

    def _prepared(self, events: pl.DataFrame, classifier: Classifier, tally: Counter[str]) -> pl.DataFrame:
        """Leave out what cannot wait in a pool, and count it."""
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
    """Give the columns that are needed, under names of their own, texts in sound UTF-8."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - PySpark takes a second to load

    texts = [F.make_valid_utf8(F.col(name).cast("string")).alias(name) for name in ("user", "query")]
    time = F.unix_micros(F.col("time").try_cast("timestamp")) if "time" in events.columns else F.lit(None).cast("long")
    return [*texts, time.alias("time"), *(F.col(f"`{name}`").alias(f"kept {name}") for name in keep)]


def _frame(batch: pa.RecordBatch) -> pl.DataFrame:
    frame = pl.from_arrow(batch)
    assert isinstance(frame, pl.DataFrame)
    return frame


def _apart(events: pl.DataFrame, *, names: Pseudonyms, key: UInt64s, shards: int) -> Iterator[tuple[int, int, bytes]]:
    """Give the events of each pool.

    From here on users have the names that they leave with: no state holds another.
    """
    events = events.with_columns(names.of(events["user"]))
    shard = pl.col("user").str.head(_HEX_DIGITS).str.to_integer(base=16) % shards
    events = events.with_columns(places(events, key=key), shard=shard.cast(pl.Int32))
    for (category, number), own in events.partition_by("category", "shard", as_dict=True, include_key=True).items():
        yield int(category), int(number), packed(own.drop("shard"))


def _rows(rows: Iterator[tuple[int, int, bytes]]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    return pa.RecordBatch.from_arrays(
        [pa.array(column, type=kind.type) for column, kind in zip(columns, _SCHEMA, strict=True)], schema=_SCHEMA
    )


def shard_of(user: str, *, shards: int) -> int:
    """Give the shard of a user by the name that a release has for it.

    >>> shard_of("00000005aaaaaaaaaaaaaaaaaaaaaaaa", shards=4)
    1
    """
    return int(user[:_HEX_DIGITS], 16) % shards
