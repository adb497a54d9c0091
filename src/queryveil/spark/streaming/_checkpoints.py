"""The checkpoint of a stream: its settings and secret, the state that Spark keeps, and the counts read from it.

Privacy: it holds the events that wait, hashes of who issued what, and the secret that the random numbers come from.
Whoever has it and the released rows can tell who asked what, so only its owner may enter.
"""

import json
import secrets
from dataclasses import dataclass, fields
from pathlib import PurePosixPath

from pyspark.sql import DataFrame, SparkSession, types
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from queryveil.errors import BadFile, BadParameter, EngineFailed
from queryveil.release import new_key
from queryveil.service.settings import check_settings
from queryveil.spark._executors import translate_spark_errors
from queryveil.spark._storage import Storage

_SETTINGS, _SECRET, _COLUMNS = "queryveil.settings", "queryveil.secret", "queryveil.release.columns"
POOLS, PROFILES = "swap", "profiles"
"""Where in a checkpoint Spark keeps the pools and the profiles."""
_SINK_LOG = "_spark_metadata"


def inside(folder: str, name: str) -> str:
    """Return the path of something in a folder."""
    return f"{folder.rstrip('/')}/{name}"


def has_batches(spark: SparkSession, checkpoint: str) -> bool:
    """Return whether a batch was committed."""
    storage = Storage(spark=spark)
    commits = f"{checkpoint}/commits"
    return storage.is_folder(commits) and any(name.isdigit() for name in storage.names(commits))


# The shard is the name of a folder. Not told of it, Spark would find it only when the first row is there, and stumble.
_RELEASED = "user STRING, category STRING, shard INT"
_FORMATS = {"jsonl": "json", "parquet": "parquet"}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Folders:
    """Where events come from and where released ones go, as `jsonl` or `parquet` both, and the checkpoint."""

    spark: SparkSession
    source: str
    sink: str
    checkpoint: str
    format: str

    def __post_init__(self) -> None:
        if self.format not in _FORMATS:
            raise BadParameter("format", self.format, allowed=" or ".join(_FORMATS))
        if self.source.rstrip("/") == self.sink.rstrip("/"):
            raise BadParameter("sink", self.sink, allowed="a place that the source does not read")

    @property
    def spark_format(self) -> str:
        """The format by Spark's name."""
        return _FORMATS[self.format]

    def begin(self, made_with: str, *, secret: bytes | None) -> bytes:
        """Start or resume a stream, and return its secret; raise if the settings differ from those of its start."""
        storage = Storage(spark=self.spark)
        if not storage.is_folder(self.source):
            raise BadFile(self.source, "it is no folder; name the one that new files of events come into")
        kept_settings, kept_secret = inside(self.checkpoint, _SETTINGS), inside(self.checkpoint, _SECRET)
        if storage.exists(kept_settings):
            _check(made_with, before=storage.read(kept_settings).decode())
        else:
            if storage.exists(inside(self.sink, _SINK_LOG)):
                # Spark numbers batches from 0 and a sink ignores numbers that it has: the rows of these would be lost.
                allowed = "a new folder: this one has the rows of another checkpoint"
                raise BadParameter("sink", self.sink, allowed=allowed)
            storage.make_private(self.checkpoint, shown_name=PurePosixPath(self.checkpoint).name)
            if not storage.exists(kept_secret):
                self._write(kept_secret, secret or new_key())
            self._write(kept_settings, made_with.encode())
        if not storage.exists(kept_secret):
            raise BadFile(kept_secret, "it is missing, and the stream cannot go on without it; restore a copy")
        found = storage.read(kept_secret)
        if secret not in (None, found):
            raise BadParameter("secret", "another", allowed="the one in the checkpoint, which this stream began with")
        return found

    def _write(self, path: str, data: bytes) -> None:
        # Under its name there is a whole file or none.
        storage, partial = Storage(spark=self.spark), f"{path}.{secrets.token_hex(8)}"
        storage.write(partial, data, is_private=True)
        storage.rename(partial, path)

    def events(self, *, keep: tuple[str, ...], files_per_batch: int | None) -> DataFrame:
        """Return the events of the source's files, the oldest first, with the columns that the first start found."""
        storage, kept_columns = Storage(spark=self.spark), inside(self.checkpoint, _COLUMNS)
        if not storage.exists(kept_columns):
            self._write(kept_columns, self._columns(keep).encode())
        columns = types.StructType.fromJson(json.loads(storage.read(kept_columns)))
        reader = self.spark.readStream.format(self.spark_format).schema(columns)
        if files_per_batch is not None:
            reader = reader.option("maxFilesPerTrigger", files_per_batch)
        return reader.load(self.source)

    def _columns(self, keep: tuple[str, ...]) -> str:
        """Return the columns of the source's files, as Spark writes them in JSON."""
        if self.format == "jsonl":
            texts = [types.StructField(name, types.StringType()) for name in ("user", "query", "time", *keep)]
            return types.StructType(texts).json()
        try:
            with translate_spark_errors():
                return self.spark.read.parquet(self.source).schema.json()
        except EngineFailed:
            why = "it has no whole Parquet file yet that would tell the columns; put one there, then begin"
            raise BadFile(self.source, why) from None

    def write(self, released: DataFrame, *, available_now: bool) -> StreamingQuery:
        """Start to write released events to the sink, a folder for each shard."""
        writer = released.writeStream.queryName("queryveil swap").outputMode("append").format(self.spark_format)
        writer = writer.partitionBy("shard").option("timestampFormat", "yyyy-MM-dd HH:mm:ss").option("path", self.sink)
        return _started(writer, inside(self.checkpoint, POOLS), available_now=available_now)

    def count_profiles(self, *, available_now: bool) -> StreamingQuery:
        """Start to count the rows of the sink, which says what files are whole; the counts are the state itself."""
        rows = self.spark.readStream.schema(_RELEASED).format(self.spark_format).load(self.sink)
        counts = rows.groupBy("user", "category").count()
        writer = counts.writeStream.queryName("queryveil profiles").outputMode("update").format("noop")
        return _started(writer, inside(self.checkpoint, PROFILES), available_now=available_now)


def _started(writer: DataStreamWriter, checkpoint: str, *, available_now: bool) -> StreamingQuery:
    writer = writer.option("checkpointLocation", checkpoint)
    return (writer.trigger(availableNow=True) if available_now else writer).start()


def _check(now: str, *, before: str) -> None:
    try:
        check_settings(now, before=before)
    except BadParameter as error:
        allowed = error.allowed.replace("--store", "checkpoint")
        raise BadParameter(error.name, error.value, allowed=allowed) from None


COUNTS = "counts"
"""The part of the state of each pool that holds its counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamCounts:
    """How many events came and what became of them, from the beginning of a stream.

    n_read = n_bad + n_empty + n_emptied + n_unclassified_dropped + n_repeated + n_rare + n_suppressed + n_released +
    n_waiting. `n_bad` had no user, `n_empty` no query, `n_emptied` held nothing but identifiers, the users of
    `n_repeated` had asked them before, too few people those of `n_rare`, and `n_suppressed` were too long for a pool or
    the oldest in a full one. `n_identifiers` were removed from queries.

    >>> StreamCounts(n_read=3, n_empty=1, n_waiting=2).adds_up
    True
    """

    n_read: int = 0
    n_bad: int = 0
    n_empty: int = 0
    n_emptied: int = 0
    n_unclassified_dropped: int = 0
    n_repeated: int = 0
    n_rare: int = 0
    n_suppressed: int = 0
    n_released: int = 0
    n_waiting: int = 0
    n_identifiers: int = 0

    @property
    def adds_up(self) -> bool:
        """Whether every event is accounted for."""
        never_read = self.n_bad + self.n_empty + self.n_emptied + self.n_unclassified_dropped
        removed = never_read + self.n_repeated + self.n_rare + self.n_suppressed
        return self.n_read == removed + self.n_released + self.n_waiting


COUNT_NAMES = tuple(field.name for field in fields(StreamCounts))
COUNTS_SCHEMA = ", ".join(f"{name} LONG" for name in COUNT_NAMES)
"""The counts of one pool, as Spark declares them."""


def read_counts(spark: SparkSession, *, checkpoint: str) -> StreamCounts:
    """Read the counts of a stream from its checkpoint, also while it runs."""
    folder = inside(checkpoint, POOLS)
    if not has_batches(spark, folder):
        return StreamCounts()
    with translate_spark_errors(so="the counts could not be read"):
        state = spark.read.format("statestore").option("stateVarName", COUNTS).load(folder)
        row = state.selectExpr(*(f"coalesce(sum(value.{name}), 0) AS {name}" for name in COUNT_NAMES)).collect()[0]
    return StreamCounts(**row.asDict())


def read_profiles(spark: SparkSession, *, checkpoint: str) -> DataFrame:
    """Read the profiles of a stream from its checkpoint: user, category and how many released queries (n)."""
    folder = inside(checkpoint, PROFILES)
    if not has_batches(spark, folder):
        return spark.createDataFrame([], "user STRING, category STRING, n LONG")
    with translate_spark_errors(so="the profiles could not be read"):
        state = spark.read.format("statestore").load(folder)
        return state.selectExpr("key.user AS user", "key.category AS category", "value.count AS n")
