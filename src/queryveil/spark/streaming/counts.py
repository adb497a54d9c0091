"""What became of all events of a stream, as its last finished batch left it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from queryveil.spark.executors import speaking
from queryveil.spark.streaming.checkpoints import Folders, has_batches, profiles_checkpoint, swap_checkpoint

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

COUNTS = "counts"
"""The part of the state of each pool that holds its counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamCounts:
    """How many events came and what became of them, from the beginning of a stream.

    n_read = n_bad + n_empty + n_emptied + n_unclassified_dropped + n_suppressed + n_released + n_waiting. `n_bad` had
    no user, `n_empty` no query, `n_emptied` held nothing but identifiers, and `n_suppressed` were too long for a pool
    or the oldest in a full one. `n_identifiers` were removed from queries.

    >>> StreamCounts(n_read=3, n_empty=1, n_waiting=2).adds_up
    True
    """

    n_read: int = 0
    n_bad: int = 0
    n_empty: int = 0
    n_emptied: int = 0
    n_unclassified_dropped: int = 0
    n_suppressed: int = 0
    n_released: int = 0
    n_waiting: int = 0
    n_identifiers: int = 0

    @property
    def n_removed(self) -> int:
        """How many never came into a pool, but for those that were too long."""
        return self.n_bad + self.n_empty + self.n_emptied + self.n_unclassified_dropped

    @property
    def adds_up(self) -> bool:
        """Whether every event is accounted for."""
        return self.n_read == self.n_removed + self.n_suppressed + self.n_released + self.n_waiting


COUNT_NAMES = tuple(field.name for field in fields(StreamCounts))
COUNTS_SCHEMA = ", ".join(f"{name} LONG" for name in COUNT_NAMES)
"""The counts of one pool, as Spark declares them."""


def read_counts(spark: SparkSession, *, checkpoint: str) -> StreamCounts:
    """Read the counts of a stream from its checkpoint, also while it runs."""
    if not has_batches(spark, swap_checkpoint(checkpoint)):
        return StreamCounts()
    with speaking(so="the counts could not be read"):
        state = spark.read.format("statestore").option("stateVarName", COUNTS).load(swap_checkpoint(checkpoint))
        row = state.selectExpr(*(f"coalesce(sum(value.{name}), 0) AS {name}" for name in COUNT_NAMES)).collect()[0]
    return StreamCounts(**row.asDict())


_PROFILES = "user STRING, category STRING, n LONG"
# The shard is the name of a folder. Not told of it, Spark would find it only when the first row is there, and stumble.
_RELEASED = "user STRING, category STRING, shard INT"


def count_profiles(spark: SparkSession, *, folders: Folders, checkpoint: str, available_now: bool) -> StreamingQuery:
    """Start to count the rows of a sink.

    The sink says which files are whole, and each is read once; the counts are the state itself, so nothing is written
    that could come twice.
    """
    rows = spark.readStream.schema(_RELEASED).format(folders.spark_format).load(folders.sink)
    counts = rows.groupBy("user", "category").count()
    writer = counts.writeStream.queryName("queryveil profiles").outputMode("update").format("noop")
    writer = writer.option("checkpointLocation", profiles_checkpoint(checkpoint))
    return (writer.trigger(availableNow=True) if available_now else writer).start()


def read_profiles(spark: SparkSession, *, checkpoint: str) -> DataFrame:
    """Read the profiles of a stream from its checkpoint: user, category and how many released queries (n)."""
    folder = profiles_checkpoint(checkpoint)
    if not has_batches(spark, folder):
        return spark.createDataFrame([], _PROFILES)
    with speaking(so="the profiles could not be read"):
        return (
            spark.read.format("statestore")
            .load(folder)
            .selectExpr("key.user AS user", "key.category AS category", "value.count AS n")
        )
