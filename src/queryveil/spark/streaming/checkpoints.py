"""The checkpoint folder of a stream: its settings, its secret, and the state that Spark keeps.

Privacy: it holds the events that wait, hashes of who issued what, and the secret that the random numbers come from.
Whoever has it and the released rows can tell who asked what, so only its owner may enter.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.types import StringType, StructField, StructType

from queryveil.errors import BadFile, BadParameter, EngineFailed
from queryveil.service.settings import check_settings
from queryveil.spark.executors import speaking
from queryveil.spark.storage import Storage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_SETTINGS, _SECRET, _COLUMNS = "queryveil.settings", "queryveil.secret", "queryveil.release.columns"
_SINK_LOG = "_spark_metadata"
_SECRET_BYTES = 32


def swap_checkpoint(folder: str) -> str:
    """Return where Spark keeps the pools."""
    return f"{folder.rstrip('/')}/swap"


def profiles_checkpoint(folder: str) -> str:
    """Return where Spark keeps the profiles."""
    return f"{folder.rstrip('/')}/profiles"


def has_batches(spark: SparkSession, checkpoint: str) -> bool:
    """Whether a batch was finished."""
    storage = Storage(spark=spark)
    commits = f"{checkpoint}/commits"
    return storage.is_folder(commits) and any(name.isdigit() for name in storage.names(commits))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Checkpoint:
    """A checkpoint folder and the sink that belongs to it."""

    spark: SparkSession
    folder: str
    sink: str

    def begin(self, made_with: str, *, secret: bytes | None) -> bytes:
        """Begin a stream here or go on with it, and give its secret; refuse settings that it did not begin with."""
        storage = Storage(spark=self.spark)
        if storage.exists(self._settings):
            _check(made_with, before=storage.read(self._settings).decode())
            return self._found(storage, given=secret)
        if storage.exists(f"{self.sink.rstrip('/')}/{_SINK_LOG}"):
            # Spark numbers batches from 0 and a sink ignores numbers that it has, so the rows of these would be lost.
            raise BadParameter("sink", self.sink, allowed="a new folder: this one has the rows of another checkpoint")
        storage.make_private(self.folder)
        storage.close_off(self.folder)
        if not storage.exists(self._secret):
            self._write(storage, self._secret, secret or secrets.token_bytes(_SECRET_BYTES))
        self._write(storage, self._settings, made_with.encode())
        return self._found(storage, given=secret)

    def columns(self, found: Callable[[], str]) -> str:
        """Return the columns that the stream began with; at its beginning they are found, and kept."""
        storage = Storage(spark=self.spark)
        path = f"{self.folder.rstrip('/')}/{_COLUMNS}"
        if not storage.exists(path):
            self._write(storage, path, found().encode())
        return storage.read(path).decode()

    def _found(self, storage: Storage, *, given: bytes | None) -> bytes:
        if not storage.exists(self._secret):
            raise BadFile(self._secret, "it is missing, and the stream cannot go on without it; restore a copy")
        found = storage.read(self._secret)
        if given not in (None, found):
            raise BadParameter("secret", "another", allowed="the one in the checkpoint, which this stream began with")
        return found

    def _write(self, storage: Storage, path: str, data: bytes) -> None:
        # Under its name there is a whole file or none.
        partial = f"{path}.{secrets.token_hex(8)}"
        storage.write(partial, data)
        storage.close_off(partial, mode="600")
        storage.rename(partial, path)

    @property
    def _settings(self) -> str:
        return f"{self.folder.rstrip('/')}/{_SETTINGS}"

    @property
    def _secret(self) -> str:
        return f"{self.folder.rstrip('/')}/{_SECRET}"


def _check(now: str, *, before: str) -> None:
    try:
        check_settings(now, before=before)
    except BadParameter as error:
        allowed = error.allowed.replace("--store", "checkpoint")
        raise BadParameter(error.name, error.value, allowed=allowed) from None


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
        """Return the events of the source's files, the oldest files first, also of those that come later."""
        reader = spark.readStream.format(self.spark_format).schema(StructType.fromJson(json.loads(columns)))
        if files_per_batch is not None:
            reader = reader.option("maxFilesPerTrigger", files_per_batch)
        return reader.load(self.source)

    def columns(self, spark: SparkSession, *, keep: tuple[str, ...]) -> str:
        """Return the columns of the source's files, as Spark writes them in JSON.

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
