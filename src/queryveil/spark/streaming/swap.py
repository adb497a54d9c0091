"""`SwapStream`: swap on Spark Structured Streaming."""

import hashlib
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from typing import cast

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import AtomicType

from queryveil.errors import BadParameter, MissingColumn, MissingExtra
from queryveil.guarantees import SwapAnonymity
from queryveil.methods.settings import PoolRules, PoolSettings
from queryveil.methods.swap.preparing import check_classifier, check_unclassified
from queryveil.release import ColumnPolicy, Ids, TimeDetail, check_key
from queryveil.spark._executors import retry_py4j, spark_settings, translate_spark_errors
from queryveil.spark.streaming._checkpoints import Folders, StreamCounts, read_counts
from queryveil.spark.streaming._pools import PACKED, EventsToPools, PoolProcessor, unpack_rows, with_window
from queryveil.text.classifier import Classifier, Kind

STATE_SETTINGS = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    # What changed is written with a batch, not all that is there.
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # Privacy: old states hold queries that have left since. One to go back to is enough.
    "spark.sql.streaming.minBatchesToRetain": "2",
}
"""The Spark settings that a stream needs: RocksDB state, and few old states."""


def check_streaming_extra() -> None:
    """Raise if a package is missing that Spark needs for state in Python."""
    if not all(find_spec(name) for name in ("google", "pandas")) or not find_spec("google.protobuf"):
        raise MissingExtra("a stream on Spark", extra="spark")


_MOST_SHARDS = 4096
_LOOK_SECONDS = 2
_N_STARTS = 3
# Spark gives a Python process of the driver ten seconds, and no setting changes that.
_SLOW_START = re.compile("connect back|InitializationTimeout")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SwapStream(PoolRules):
    """Give each query of a stream to another user who asked for the same kind of thing, on a Spark cluster.

    Promise: every row left a pool of its category and of its user's shard that held at least k events of at least l
    distinct users, and no row pairs a user with a query that this user had issued among the last `remembered` events of
    that pool. Nobody has more rows in a category than queries. What a user asks again, as far as that memory goes back,
    is left out. Each event is released at most once, whatever crashes.
    Not promised: that a query's text does not tell who asked it, that a user does not ask a query later that was given
    to them, or anything against whoever has the checkpoint.

    `l` is k if None. Users are dealt out to `shards` by a hash, and swap within their shard only: each is a release of
    its own, with pools of its own, so that more executors can work. `key` names the users (HMAC-SHA256). `secret` is
    what the random numbers come from; `run` draws one and keeps it in the checkpoint. The other settings are those of
    `Swap` and `ColumnPolicy`.

    Examples
    --------
    >>> SwapStream(k=5, shards=4, key=b"sixteen bytes or more").promise
    SwapAnonymity(k=5, l=5, remembered=1000000, once=True, window='1d')
    """

    remembered: int = 1_000_000
    shards: int = 1
    unclassified: str = "pool"
    classifier: Classifier | Kind | str | None = field(default=None, repr=False)
    key: bytes = field(repr=False)
    secret: bytes | None = field(default=None, repr=False)
    time: TimeDetail | str = TimeDetail.DROP
    keep: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _ = self._pools
        self._columns.check_not_shared()
        check_unclassified(self.unclassified)
        if self.remembered is None:
            raise BadParameter("remembered", "none", allowed="1 or more events")
        if not isinstance(self.shards, int) or not 1 <= self.shards <= _MOST_SHARDS:
            raise BadParameter("shards", self.shards, allowed=f"between 1 and {_MOST_SHARDS}")
        check_classifier(self.classifier)
        for name in self._columns.keep:
            if name in ("shard", "category"):
                raise BadParameter("keep", name, allowed="other columns: each row has one of that name")
        check_key(self.secret, name="secret")

    @property
    def promise(self) -> SwapAnonymity:
        """What holds for the rows of each shard."""
        return self._pools.promise

    def release(self, events: DataFrame) -> DataFrame:
        """Return the released events of a streaming frame with columns user and query, and time if there are times.

        Columns are shard, category, user, query, time of release and those to keep. Start the query with the settings
        in `STATE_SETTINGS`, in append mode; `secret` must be the same whenever it goes on from its checkpoint.
        """
        check_streaming_extra()
        if self.secret is None:
            raise BadParameter("secret", "none", allowed="at least 16 secret bytes kept beside the checkpoint")
        for name in ("user", "query"):
            if name not in events.columns:
                raise MissingColumn("the events", name, found=events.columns)
        columns = self._columns
        columns.check(events.columns)
        for name in columns.keep:
            # Lists and records cannot be stored in a pool.
            if not isinstance(events.schema[name].dataType, AtomicType):
                simple = "columns of texts, numbers or times; write others as text first"
                raise BadParameter("keep", name, allowed=simple)
        stage = EventsToPools(
            key=self.key,
            secret=self.secret,
            shards=self.shards,
            unclassified=self.unclassified,
            classifier=self.classifier,
            keep=columns.keep,
        )
        released = (
            with_window(stage.pack(events), window=self.window)
            .groupBy("category", "shard")
            .transformWithState(
                PoolProcessor(self._pools, secret=self.secret), PACKED, outputMode="Append", timeMode="None"
            )
        )
        if self.window is None:
            # Users are renamed already, and the key need not travel twice.
            columns = replace(columns, ids=Ids.KEEP, key=None)
        return unpack_rows(released, columns, like=events, window=self.window)

    def start(
        self,
        spark: SparkSession,
        *,
        source: str,
        sink: str,
        checkpoint: str,
        format: str = "jsonl",  # noqa: A002
        files_per_batch: int | None = None,
        available_now: bool = False,
    ) -> StreamingQuery:
        """Start to release what comes into the folder `source` to the folder `sink`, or go on from the checkpoint.

        With `available_now` the query ends when it has read the files that are there.
        """
        folders = Folders(spark=spark, source=source, sink=sink, checkpoint=checkpoint, format=format)
        return self._start(folders, files_per_batch=files_per_batch, available_now=available_now)

    def _start(self, folders: Folders, *, files_per_batch: int | None, available_now: bool) -> StreamingQuery:
        check_streaming_extra()
        with translate_spark_errors(so="nothing was released"), spark_settings(folders.spark, STATE_SETTINGS):
            secret = folders.begin(self._made_with(folders), secret=self.secret)
            events = folders.events(keep=self._columns.keep, files_per_batch=files_per_batch)
            return folders.write(replace(self, secret=secret).release(events), available_now=available_now)

    def run(
        self,
        spark: SparkSession,
        *,
        source: str,
        sink: str,
        checkpoint: str,
        format: str = "jsonl",  # noqa: A002
        files_per_batch: int | None = None,
        available_now: bool = True,
    ) -> StreamCounts:
        """Release what is in the source, count profiles, and return what became of all events so far.

        With `available_now` it ends when the files that are there have been read, else when somebody stops the query.
        The same call goes on where the last one ended, however it ended.
        """
        folders = Folders(spark=spark, source=source, sink=sink, checkpoint=checkpoint, format=format)
        start = partial(self._start, folders, files_per_batch=files_per_batch, available_now=available_now)
        query = start()
        with translate_spark_errors(so="the same call goes on from the checkpoint"):
            if available_now:
                _finish(query, start=start)
            with _stop_after(query):
                with spark_settings(spark, STATE_SETTINGS):
                    profiles = folders.count_profiles(available_now=available_now)
                with _stop_after(profiles):
                    _wait(profiles if available_now else query, profiles=profiles)
        return read_counts(spark, checkpoint=checkpoint)

    @property
    def _pools(self) -> PoolSettings:
        return self.pool_settings(remembered=self.remembered)

    @property
    def _columns(self) -> ColumnPolicy:
        return ColumnPolicy(ids=Ids.KEYED, key=self.key, time=cast(TimeDetail, self.time), keep=self.keep)

    def _made_with(self, folders: Folders) -> str:
        """Return the settings that the state of this stream depends on, one a line."""
        as_given = ("k", "growth", "max_pool", "shrink", "remembered", "repeats", "min_query_users", "shards")
        made_with = {name: getattr(self, name) for name in as_given} | {
            "unclassified": self.unclassified,
            "source": folders.source,
            "sink": folders.sink,
            "format": folders.format,
            # Earlier checkpoints count neither repeats nor rare texts.
            "state": 2,
            "l": self.promise.l,
            "window": self.window or "none",
            "classifier": "own tables" if isinstance(self.classifier, Classifier) else self.classifier or Kind.EVIDENCE,
            "key": hashlib.sha256(b"queryveil key\0" + self.key).hexdigest()[:16],
            "time": self._columns.time,
            "keep": ",".join(self._columns.keep),
        }
        return "\n".join(f"{name}={' '.join(str(value).split())}" for name, value in made_with.items())


@contextmanager
def _stop_after(query: StreamingQuery) -> Iterator[None]:
    """Stop a query at the end of the block: Ctrl-C does not stop Spark, which runs in another process."""
    try:
        yield
    finally:
        retry_py4j(query.stop)


def _finish(query: StreamingQuery, *, start: Callable[[], StreamingQuery]) -> None:
    """Wait for the end of a query; one whose Python process was too slow to start goes on from its checkpoint."""
    for n_left in reversed(range(_N_STARTS)):
        with _stop_after(query):
            try:
                query.awaitTermination()
            except StreamingQueryException as error:
                if not n_left or not _SLOW_START.search(str(error)):
                    raise
            else:
                return
        query = start()


def _wait(query: StreamingQuery, *, profiles: StreamingQuery) -> None:
    """Wait for the end of a query, or for profiles that fail."""
    while not query.awaitTermination(_LOOK_SECONDS):
        if not profiles.isActive:
            profiles.awaitTermination()
