"""Folders at both ends of a stream: new files of events in, files of released events out."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.types import StringType, StructField, StructType

from queryveil.engines.spark.executors import speaking
from queryveil.engines.spark.storage import Storage
from queryveil.engines.spark.streaming.checkpoints import swap_checkpoint
from queryveil.errors import BadFile, BadParameter, EngineFailed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_FORMATS = {"jsonl": "json", "parquet": "parquet"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Folders:
    """Where events come from and where released ones go, as `jsonl` or `parquet` both."""

    source: str
    sink: str
    format: str = "jsonl"

    def __post_init__(self) -> None:
        if self.format not in _FORMATS:
            raise BadParameter("format", self.format, allowed=" or ".join(_FORMATS))
        if self.source.rstrip("/") == self.sink.rstrip("/"):
            raise BadParameter("sink", self.sink, allowed="a place that the source does not read")

    @property
    def spark_format(self) -> str:
        """The format by Spark's name."""
        return _FORMATS[self.format]

    def events(self, spark: SparkSession, *, columns: str, files_per_batch: int | None) -> DataFrame:
        """Give the events of the source's files, the oldest files first, also of those that come later."""
        reader = spark.readStream.format(self.spark_format).schema(StructType.fromJson(json.loads(columns)))
        if files_per_batch is not None:
            reader = reader.option("maxFilesPerTrigger", files_per_batch)
        return reader.load(self.source)

    def columns(self, spark: SparkSession, *, keep: tuple[str, ...]) -> str:
        """Give the columns of the source's files, as Spark writes them in JSON.

        Those of JSON lines are user, query, time and those to keep, as text; Parquet says itself what it has.
        """
        if self.format == "jsonl":
            return StructType([StructField(name, StringType()) for name in ("user", "query", "time", *keep)]).json()
        try:
            with speaking():
                return spark.read.parquet(self.source).schema.json()
        except EngineFailed:
            why = "it has no whole Parquet file yet that would tell the columns; put one there, then begin"
            raise BadFile(self.source, why) from None

    def write(self, released: DataFrame, *, checkpoint: str, available_now: bool) -> StreamingQuery:
        """Start to write released events to the sink, a folder for each shard."""
        writer = released.writeStream.queryName("queryveil swap").outputMode("append").format(self.spark_format)
        writer = writer.partitionBy("shard").option("timestampFormat", "yyyy-MM-dd HH:mm:ss")
        writer = writer.option("checkpointLocation", swap_checkpoint(checkpoint)).option("path", self.sink)
        return (writer.trigger(availableNow=True) if available_now else writer).start()

    def check(self, spark: SparkSession) -> None:
        """Raise if there is no folder to read."""
        if not Storage(spark=spark).is_folder(self.source):
            raise BadFile(self.source, "it is no folder; name the one that new files of events come into")
