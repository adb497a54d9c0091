"""The checkpoint of a stream: its settings and secret, the state that Spark keeps, and the counts read from it.

Privacy: it holds the events that wait, hashes of who issued what, and the secret that the random numbers come from.
Whoever has it and the released rows can tell who asked what, so only its owner may enter.
"""

import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass, fields

from pyspark.sql import DataFrame, SparkSession, types
from pyspark.sql.streaming.query import StreamingQuery

from queryveil.errors import BadFile, BadParameter, EngineFailed
from queryveil.service.settings import check_settings
from queryveil.spark._executors import translate_spark_errors
from queryveil.spark._storage import Storage

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
    """Return whether a batch was committed."""
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
        """Start or resume a stream, and return its secret; raise if the settings differ from those of its start."""
        storage = Storage(spark=self.spark)
        if storage.exists(self._path(_SETTINGS)):
            _check(made_with, before=storage.read(self._path(_SETTINGS)).decode())
        else:
            self._create(made_with, secret=secret)
        if not storage.exists(self._path(_SECRET)):
            raise BadFile(self._path(_SECRET), "it is missing, and the stream cannot go on without it; restore a copy")
        found = storage.read(self._path(_SECRET))
        if secret not in (None, found):
            raise BadParameter("secret", "another", allowed="the one in the checkpoint, which this stream began with")
        return found

    def _create(self, made_with: str, *, secret: bytes | None) -> None:
        storage = Storage(spark=self.spark)
        if storage.exists(f"{self.sink.rstrip('/')}/{_SINK_LOG}"):
            # Spark numbers batches from 0 and a sink ignores numbers that it has, so the rows of these would be lost.
            raise BadParameter("sink", self.sink, allowed="a new folder: this one has the rows of another checkpoint")
        storage.make_private(self.folder)
        storage.restrict(self.folder)
        if not storage.exists(self._path(_SECRET)):
            self._write(_SECRET, secret or secrets.token_bytes(_SECRET_BYTES))
        self._write(_SETTINGS, made_with.encode())

    def columns(self, found: Callable[[], str]) -> str:
        """Return the columns that the stream was started with; the first start finds and stores them."""
        storage, path = Storage(spark=self.spark), self._path(_COLUMNS)
        if not storage.exists(path):
            self._write(_COLUMNS, found().encode())
        return storage.read(path).decode()

    def _write(self, name: str, data: bytes) -> None:
        # Under its name there is a whole file or none.
        storage, partial = Storage(spark=self.spark), self._path(f"{name}.{secrets.token_hex(8)}")
        storage.write(partial, data)
        storage.restrict(partial, mode="600")
        storage.rename(partial, self._path(name))

    def _path(self, name: str) -> str:
        return f"{self.folder.rstrip('/')}/{name}"


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
        reader = spark.readStream.format(self.spark_format).schema(types.StructType.fromJson(json.loads(columns)))
        if files_per_batch is not None:
            reader = reader.option("maxFilesPerTrigger", files_per_batch)
        return reader.load(self.source)

    def columns(self, spark: SparkSession, *, keep: tuple[str, ...]) -> str:
        """Return the columns of the source's files, as Spark writes them in JSON.

        Those of JSON lines are user, query, time and those to keep, as text; Parquet says itself what it has.
        """
        if self.format == "jsonl":
            texts = [types.StructField(name, types.StringType()) for name in ("user", "query", "time", *keep)]
            return types.StructType(texts).json()
        try:
            with translate_spark_errors():
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
    def n_removed(self) -> int:
        """The number of events that never reached a pool, except those that were too long."""
        never_read = self.n_bad + self.n_empty + self.n_emptied + self.n_unclassified_dropped
        return never_read + self.n_repeated + self.n_rare

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
    with translate_spark_errors(so="the counts could not be read"):
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
    with translate_spark_errors(so="the profiles could not be read"):
        state = spark.read.format("statestore").load(folder)
        return state.selectExpr("key.user AS user", "key.category AS category", "value.count AS n")
