"""The pools on Spark, one for each category and shard, with a state that Spark keeps, and the stages around them.

Before the pools events are prepared and packed, behind them released rows are unpacked: thousands travel in one row.
"""

import hashlib
import hmac
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import msgspec
import numpy as np
import polars as pl
import pyarrow as pa
from pyspark.sql import Column, DataFrame, Row, types
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.stateful_processor import MapState, StatefulProcessor, StatefulProcessorHandle, TimerValues

from queryveil.data import UInt64s
from queryveil.guarantees import parse_window
from queryveil.methods.settings import PoolSettings
from queryveil.methods.swap import _issued, _pool_state, preparing
from queryveil.methods.swap.pools import Pools
from queryveil.release import ColumnPolicy, Ids, ids_per_window
from queryveil.service.lines import MAX_EVENT_BYTES
from queryveil.spark._executors import Batches, map_batches, mask_errors
from queryveil.spark.streaming._checkpoints import COUNT_NAMES, COUNTS, COUNTS_SCHEMA
from queryveil.text.classifier import Classifier, Kind

_PIECE_BYTES = 1 << 14


class Recent(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """The newest pairs, fewer than make a piece, of a generation that has `n_pieces` of them."""

    generation: int = 0
    n_pieces: int = 0
    pairs: bytes = b""


class IssuedMemory:
    """Hashes of pairs in pieces, those of even and of odd generations apart; a pool knows two generations.

    Only what is newer than the last piece is written with every batch, beside the pool itself.
    """

    def __init__(self, handle: StatefulProcessorHandle) -> None:
        self._pieces: tuple[MapState, ...] = tuple(
            handle.getMapState(name, "piece INT", "pairs BINARY") for name in ("issuedEven", "issuedOdd")
        )

    def pairs(self, recent: Recent) -> Iterator[tuple[int, bytes]]:
        """Return generations and what was issued in them."""
        for generation in (recent.generation - 1, recent.generation):
            for (pairs,) in self._pieces[generation % 2].values():
                yield generation, _checked_pairs(bytes(pairs))
        yield recent.generation, recent.pairs

    def with_more(self, recent: Recent, *, generation: int, pairs: bytes) -> Recent:
        """Remember further pairs, of this generation or the next one."""
        if generation != recent.generation:
            self._put(recent)
            self._pieces[generation % 2].clear()
            recent = Recent(generation=generation)
        longer = msgspec.structs.replace(recent, pairs=recent.pairs + pairs)
        return longer if len(longer.pairs) < _PIECE_BYTES else self._put(longer)

    def _put(self, recent: Recent) -> Recent:
        if recent.pairs:
            self._pieces[recent.generation % 2].updateValue((recent.n_pieces,), (_pool_state.seal(recent.pairs),))
        return Recent(generation=recent.generation, n_pieces=recent.n_pieces + 1)


def _checked_pairs(piece: bytes) -> bytes:
    """Return the hashes of a piece; pieces of earlier releases have no checksum, and so a length of whole hashes."""
    pairs = piece if len(piece) % 8 == 0 else _pool_state.unseal(piece)
    if len(pairs) % 8:
        raise _pool_state.damaged()
    return pairs


def _recent(data: bytes) -> Recent:
    """Read the newest pairs; those of earlier releases are an array of MessagePack without a checksum."""
    try:
        recent = msgspec.msgpack.decode(data if data[:1] == b"\x93" else _pool_state.unseal(data), type=Recent)
    except msgspec.MsgspecError:
        raise _pool_state.damaged() from None
    if len(recent.pairs) % 8:
        raise _pool_state.damaged()
    return recent


PACKED = "category INT, shard INT, events BINARY"
"""The Spark schema of events on their way into a pool and out of it: many rows in one value, an Arrow IPC stream."""
TALLY = -1
"""In place of a category: what was counted before the pools."""


def derived(secret: bytes, purpose: str) -> bytes:
    """Return a secret of 32 bytes for one purpose, which tells nothing of those for others."""
    return hmac.digest(secret, purpose.encode(), hashlib.sha256)


def hash_key(secret: bytes) -> UInt64s:
    """Return the two numbers, the second one odd, that texts are hashed with."""
    return np.frombuffer(derived(secret, "places")[:16], "<u8").astype(np.uint64) | np.array([0, 1], np.uint64)


def places(events: pl.DataFrame, *, key: UInt64s) -> pl.Series:
    """Return a hash of each pair of user and query: a repeatable order that carries no meaning."""
    users, queries = _issued.hash_users(events["user"], key=key), _issued.hash_users(events["query"], key=key)
    return pl.Series("place", _issued.pair_hashes(users, queries))


def in_order_of_arrival(events: pl.DataFrame) -> pl.DataFrame:
    """Sort events by time, those of the same time or without one by their place; then drop both.

    Spark hands over a batch in another order each time, and one done again after a crash must release the same rows.
    """
    rest = [name for name in sorted(events.columns) if name not in ("time", "place")]
    return events.sort("time", "place", *rest, nulls_last=True).drop("time", "place")


_PACKED_ROWS = 10_000


class PoolProcessor(StatefulProcessor):
    """Swaps the events of a batch in their pool.

    Whatever it does follows from the state before the batch, the events and the secret: done again after a crash, a
    batch releases the same rows and leaves the same state. A text always has the same category, and a user the same
    shard, so who issued a query that waits in a pool is in the memory of this pool.
    """

    def __init__(self, settings: PoolSettings, *, secret: bytes) -> None:
        self._settings, self._secret = settings, secret

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state variables."""
        self._pool = handle.getValueState("pool", "pool BINARY, recent BINARY")
        self._counts = handle.getValueState(COUNTS, COUNTS_SCHEMA)
        self._memory = IssuedMemory(handle)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: TimerValues) -> Iterator[Row]:  # noqa: ARG002, N802, N803 - Spark's names
        """Add events to a pool, and return what it releases."""
        category, shard = key
        # Privacy: errors quote nothing, as everywhere on executors.
        yield from mask_errors(lambda _: self._handled(category, shard, rows))(iter(()))

    def close(self) -> None:
        """Do nothing."""

    def _handled(self, category: int, shard: int, rows: Iterator[Row]) -> Iterator[Any]:
        if category == TALLY:
            counted: Counter[str] = Counter()
            for row in rows:
                counted.update(msgspec.msgpack.decode(row.events, type=dict[str, int]))
            self._count(counted)
            return
        packed = list(rows)
        events = in_order_of_arrival(pl.concat([pl.read_ipc_stream(row.events) for row in packed]))
        window = packed[0].window if "window" in packed[0] else None
        released = self._swapped(events, window=window, secret=derived(self._secret, f"pool {category} {shard}"))
        for part in released.iter_slices(_PACKED_ROWS):
            yield Row(category=category, shard=shard, events=part.write_ipc_stream(None).getvalue())

    def _swapped(self, events: pl.DataFrame, *, window: int | None, secret: bytes) -> pl.DataFrame:
        before, recent = self._pool.get(), Recent()
        if before is None:
            pools = Pools(self._settings, secret=secret)
        else:
            recent = _recent(bytes(before[1]))
            issued = self._memory.pairs(recent)
            pools = Pools.from_bytes(bytes(before[0]), issued=issued, settings=self._settings, secret=secret)
        swapped = pools.add(events, window=window)
        recent = self._memory.with_more(recent, generation=swapped.generation, pairs=swapped.issued)
        self._pool.update((pools.to_bytes(), _pool_state.seal(msgspec.msgpack.encode(recent))))
        n_waiting, released = int(pools.waiting.sum()), swapped.released.drop("arrival")
        counted = Counter(
            n_released=released.height,
            n_repeated=swapped.n_repeated,
            n_rare=swapped.n_rare,
            n_suppressed=swapped.n_suppressed,
        )
        self._count(counted, n_waiting=n_waiting)
        # Privacy: in which order the rows of a batch left is not told.
        order = places(released, key=hash_key(self._secret)).arg_sort()
        return released[order]

    def _count(self, more: Counter[str], *, n_waiting: int = 0) -> None:
        before = dict(zip(COUNT_NAMES, self._counts.get() or (), strict=False))
        now = {name: before.get(name, 0) + more[name] for name in COUNT_NAMES}
        self._counts.update(tuple((now | {"n_waiting": n_waiting}).values()))


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
    classifier: Classifier | Kind | str | None
    keep: tuple[str, ...] = field(default=())

    def pack(self, events: DataFrame) -> DataFrame:
        """Return the packed events of a streaming frame with columns user and query, and time if there is one."""
        return map_batches(events.select(*_columns(events, keep=self.keep)), self._pack_batches, PACKED)

    def _pack_batches(self, batches: Batches) -> Batches:
        classifier = preparing.classifier_of(self.classifier)
        names = ColumnPolicy(ids=Ids.KEYED, key=self.key)
        tally: Counter[str] = Counter()
        for batch in batches:
            events = self._prepared(pl.DataFrame(batch), classifier, tally)
            if events.height:
                packed = _by_pool(events, names=names, key=hash_key(self.secret), shards=self.shards)
                yield pa.RecordBatch.from_pylist(packed, _SCHEMA)
        if tally:
            counts = msgspec.msgpack.encode(dict(tally))
            yield pa.RecordBatch.from_pylist([{"category": TALLY, "shard": 0, "events": counts}], _SCHEMA)

    def _prepared(self, events: pl.DataFrame, classifier: Classifier, tally: Counter[str]) -> pl.DataFrame:
        """Return the events that may wait in a pool, and count the others."""
        named = events.filter(pl.col("user").str.strip_chars() != "")
        prepared = preparing.prepare(named, classifier=classifier, unclassified=self.unclassified)
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


def _by_pool(events: pl.DataFrame, *, names: ColumnPolicy, key: UInt64s, shards: int) -> list[dict[str, Any]]:
    """Return category, shard and packed events of each pool; users have the names that they leave with in any state."""
    events = events.with_columns(names.released_ids(events["user"]))
    shard = pl.col("user").str.head(_HEX_DIGITS).str.to_integer(base=16) % shards
    events = events.with_columns(places(events, key=key), shard=shard.cast(pl.Int32))
    pools = events.partition_by("category", "shard", as_dict=True).items()
    return [
        {"category": category, "shard": n, "events": own.drop("shard").write_ipc_stream(None).getvalue()}
        for (category, n), own in pools
    ]


def shard_of(user: str, *, shards: int) -> int:
    """Return the shard of a user by the name that a release has for it.

    >>> shard_of("00000005aaaaaaaaaaaaaaaaaaaaaaaa", shards=4)
    1
    """
    return int(user[:_HEX_DIGITS], 16) % shards


def with_window(packed: DataFrame, *, window: str | None) -> DataFrame:
    """Add the number of the window that a batch is of, if there are windows."""
    if window is None:
        return packed
    length = parse_window(window) // timedelta(seconds=1)
    return packed.withColumn("window", F.floor(F.unix_timestamp() / length).cast("long"))


def unpack_rows(packed: DataFrame, columns: ColumnPolicy, *, like: DataFrame, window: str | None) -> DataFrame:
    """Return what pools release: shard, category, the user that a query was given to, and what `columns` releases.

    Columns to keep have the types that they had in the events `like` these. Users have the pseudonyms that pools know,
    or with a `window` another id in each window of release.
    """
    text, has_times = types.StringType(), "time" in like.columns
    kinds: dict[str, types.DataType] = {"shard": types.IntegerType(), "category": text, "user": text, "query": text}
    kinds |= {"time": types.TimestampNTZType()} if has_times else {}
    kinds |= {name: like.schema[name].dataType for name in columns.keep}
    names = columns.released_names(kinds, protected=_OF_POOLS)
    schema = types.StructType([types.StructField(name, kinds[name]) for name in names])
    # Spark writes down the time of a batch before it begins, so a batch that is done again has the same one.
    # Privacy: when the query itself was asked would lead back to who did.
    timed = with_window(packed.withColumn("time", F.localtimestamp()) if has_times else packed, window=window)
    arrow = to_arrow_schema(schema, timezone="UTC")
    rows = map_batches(timed, _unpack_batches, schema, columns=columns, schema=arrow)
    return rows.withColumn("time", F.col("time").cast("timestamp")) if "time" in names else rows


def _unpack_batches(batches: Batches, *, columns: ColumnPolicy, schema: pa.Schema) -> Batches:
    names = pl.Series(preparing.CATEGORY_NAMES, dtype=pl.String)
    for batch in batches:
        for row in batch.to_pylist():
            frame = pl.read_ipc_stream(row["events"])
            frame = frame.rename({f"kept {name}": name for name in columns.keep}).with_columns(
                category=names.gather(frame["category"].cast(pl.UInt32)), shard=pl.lit(row["shard"], pl.Int32)
            )
            if "time" in row:
                frame = frame.with_columns(time=pl.lit(row["time"], pl.Datetime("us")))
            if "window" in row:
                windows = pl.Series([row["window"]]).new_from_index(0, frame.height)
                frame = frame.with_columns(columns.released_ids(ids_per_window(frame["user"], windows)))
            released = columns.released_columns(frame, protected=_OF_POOLS)
            yield from released.select(schema.names).to_arrow().cast(schema).combine_chunks().to_batches()
