"""The profiler: how many released queries each user has in each category, counted over what the sink has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from queryveil.engines.spark.executors import speaking
from queryveil.engines.spark.streaming.checkpoints import has_batches, profiles_checkpoint
from queryveil.engines.spark.streaming.folders import Folders

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

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
