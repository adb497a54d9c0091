"""The pools on Spark: one for each category and shard, with a state that Spark keeps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec
import polars as pl
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle, TimerValues

from queryveil.engines.spark.executors import guarded
from queryveil.engines.spark.streaming.counts import COUNT_NAMES, COUNTS, COUNTS_SCHEMA
from queryveil.engines.spark.streaming.memory import IssuedMemory, Recent
from queryveil.engines.spark.streaming.parcels import (
    TALLY,
    derived,
    hash_key,
    in_order_of_arrival,
    packed,
    places,
    unpacked,
)
from queryveil.stream.pools import Pools, PoolSettings

_PARCEL_ROWS = 10_000


class PoolProcessor(StatefulProcessor):
    """Swaps the events of a batch in their pool.

    Whatever it does follows from the state before the batch, the events and the secret: done again after a crash, a
    batch releases the same rows and leaves the same state. Where the random numbers stand is part of the state.

    A text always has the same category, however it is typed, and a user always the same shard. So who issued a query
    that waits in a pool is in the memory of this pool, and no other one has to be asked.
    """

    def __init__(self, settings: PoolSettings, *, secret: bytes) -> None:
        self._settings, self._secret = settings, secret

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Name the parts of the state."""
        self._pool = handle.getValueState("pool", "pool BINARY, recent BINARY")
        self._counts = handle.getValueState(COUNTS, COUNTS_SCHEMA)
        self._memory = IssuedMemory(handle)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: TimerValues) -> Iterator[Row]:  # noqa: ARG002, N802, N803 - Spark's names
        """Let the events of a pool arrive, and give what it releases."""
        category, shard = key
        # Privacy: errors quote nothing, as everywhere on executors.
        yield from guarded(lambda _: self._handled(category, shard, rows))(iter(()))

    def close(self) -> None:
        """Do nothing."""

    def _handled(self, category: int, shard: int, rows: Iterator[Row]) -> Iterator[Any]:
        if category == TALLY:
            counted: Counter[str] = Counter()
            for row in rows:
                counted.update(msgspec.msgpack.decode(row.parcel, type=dict[str, int]))
            self._count(counted)
            return
        events = in_order_of_arrival(pl.concat([unpacked(row.parcel) for row in rows]))
        released = self._swapped(events, secret=derived(self._secret, f"pool {category} {shard}"))
        for part in released.iter_slices(_PARCEL_ROWS):
            yield Row(category=category, shard=shard, parcel=packed(part))

    def _swapped(self, events: pl.DataFrame, *, secret: bytes) -> pl.DataFrame:
        before, recent = self._pool.get(), Recent()
        if before is None:
            pools = Pools(self._settings, secret=secret)
        else:
            recent = msgspec.msgpack.decode(before[1], type=Recent)
            issued = self._memory.pairs(recent)
            pools = Pools.from_bytes(bytes(before[0]), issued=issued, settings=self._settings, secret=secret)
        swapped = pools.add(events)
        recent = self._memory.with_more(recent, generation=swapped.generation, pairs=swapped.issued)
        self._pool.update((pools.to_bytes(), msgspec.msgpack.encode(recent)))
        n_waiting, released = int(pools.waiting.sum()), swapped.released.drop("arrival")
        self._count(Counter(n_released=released.height, n_suppressed=swapped.n_suppressed), n_waiting=n_waiting)
        # Privacy: in which order the rows of a batch left is not told.
        order = places(released, key=hash_key(self._secret)).arg_sort()
        return released[order]

    def _count(self, more: Counter[str], *, n_waiting: int = 0) -> None:
        before = dict(zip(COUNT_NAMES, self._counts.get() or (), strict=False))
        now = {name: before.get(name, 0) + more[name] for name in COUNT_NAMES}
        self._counts.update(tuple((now | {"n_waiting": n_waiting}).values()))
