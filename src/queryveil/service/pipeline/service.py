"""The service: takes batches, anonymizes and commits them, and resumes after a crash from its last commit."""

import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from threading import Event

import msgspec
import polars as pl

from queryveil.data import Format, Layout
from queryveil.errors import BadInput
from queryveil.guarantees import parse_window
from queryveil.methods.settings import PoolSettings
from queryveil.methods.swap.pools import Pools, Swapped
from queryveil.methods.swap.preparing import increments
from queryveil.release import ids_per_window, window_numbers
from queryveil.service import lines, ports
from queryveil.service.pipeline._committed import CommitState, Delivery, Retry, UserCount
from queryveil.service.pipeline._workers import InProcess, PreparedBatch, Workers
from queryveil.service.settings import StreamSettings

_VERSION = 1
_DAMAGED = "the state of this stream is damaged; restore a copy, or name another --store"


class _Packed(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """What a store keeps as the pools: these, how lines are written and how many users were seen."""

    version: int
    layout: Layout | None
    users: bytes
    pools: bytes


def unpack(
    data: bytes, *, issued: Iterable[tuple[int, bytes]], settings: PoolSettings
) -> tuple[Pools, Layout | None, bytes]:
    """Return the pools, the layout and the count of users that a store has kept."""
    try:
        packed = msgspec.msgpack.decode(data, type=_Packed)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise BadInput(_DAMAGED) from None
    if packed.version != _VERSION:
        raise BadInput("the state of this stream was written by a newer queryveil; update queryveil")
    if not UserCount.can_be(packed.users):
        raise BadInput(_DAMAGED)
    return Pools.from_bytes(packed.pools, issued=issued, settings=settings), packed.layout, packed.users


_TAKE_SECONDS = 0.25
_N_BAD_REPORTED = 10
_NO_EVENTS = pl.DataFrame(schema={"user": pl.String(), "query": pl.String(), "category": pl.Int8()})


class Service:
    """Anonymizes one stream from a source to a sink.

    - `settings`: how to anonymize.
    - `source`, `sink`, `store`: where events come from, where released events go, and where the state is kept.
    - `source_name`, `sink_name`: say in the store which source and sink its state belongs to.
    - `tell`: called with lines for people: what does not work for now, and which lines cannot be read.
    """

    def __init__(
        self,
        settings: StreamSettings,
        *,
        source: ports.Source,
        sink: ports.Sink,
        store: ports.Store,
        source_name: str = "source",
        sink_name: str = "sink",
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.settings = settings
        self._source, self._sink, self._store = source, sink, store
        self._made_with = settings.fingerprint(source=source_name, sink=sink_name)
        self._source_name, self._tell = source_name, tell
        self._stopping = Event()
        self._retry = Retry(stopping=self._stopping, patience=settings.patience, tell=tell)
        self._retry.trouble = "starting"
        self._delivery = Delivery(sink, patience=settings.patience, tell=tell)
        self._is_finished = False
        self._n_lines, self._n_bad_reported = 0, 0
        self._state = CommitState(ports.Saved())
        self._pools = Pools(settings.pool_settings(remembered=settings.remembered))
        self._layout: Layout | None = None
        self._users = UserCount()
        self._preparer: InProcess | Workers | None = None
        self._when_begun: Callable[[], None] = lambda: None
        source.watch(self)
        sink.watch(self)

    def run(self, *, when_begun: Callable[[], None] = lambda: None) -> ports.Stats:
        """Work until the source is finished or `stop` is called; return the stats.

        The pools are drained only when the source is finished; after a stop they wait in the store for the next run.
        `when_begun` is called once the layout of lines is known.
        """
        self._when_begun = when_begun
        try:
            self._open()
            self._loop()
            self._deliver_rest()
        finally:
            self._close()
        return self.stats()

    def stop(self) -> None:
        """Finish the current batch, and deliver what is released as far as the sink takes it."""
        self._stopping.set()

    def stats(self) -> ports.Stats:
        delivery, trouble = self._delivery, self._retry.trouble or self._delivery.retry.trouble
        if trouble is None and self._stopping.is_set():
            trouble = "stopping"
        known = self._state.stats
        return replace(
            known,
            n_delivered=known.n_released - delivery.n_rows,
            n_outbox_rows=delivery.n_rows,
            n_outbox_bytes=delivery.n_bytes,
            oldest_wait_seconds=0 if known.waiting_since is None else max(0, time.time() - known.waiting_since),
            uptime_seconds=time.monotonic() - self._state.started,
            is_ready=trouble is None,
            why_not=trouble or "",
            is_finished=self._is_finished,
        )

    def _open(self) -> None:
        before = self._retry.run(self._load, what="the store")
        self._state = CommitState(before)
        self._state.note(self._pools)
        if not before.number:
            self._sink.check_new()
        n_bytes = before.outgoing[0].offset if before.outgoing else before.n_bytes_out
        self._retry.run(lambda: self._sink.open(delivered=before.delivered, n_bytes=n_bytes), what="the sink")
        self._retry.run(lambda: self._source.open(position=before.position, keys=before.keys), what="the source")
        if self._layout is not None:
            self._begin(self._layout)
        self._preparer = (InProcess if self.settings.workers == 1 else Workers)(self.settings)
        self._delivery.start(delivered=before.delivered, waiting=before.outgoing)
        self._retry.trouble = None

    def _load(self) -> ports.Saved:
        before = self._store.open(settings=self._made_with)
        if before.pools:
            try:
                # The memory of who asked what is only now read from the store, which may be away by then.
                self._pools, self._layout, users = unpack(
                    before.pools, issued=before.issued, settings=self._pools.settings
                )
            except BaseException:
                self._store.close()
                raise
            self._users = UserCount(users)
        return before

    def _begin(self, layout: Layout) -> None:
        if layout.format is not Format.JSONL:
            self.settings.columns.check(list(lines.inside_names(layout)))
        self._sink.begin(layout)
        self._layout = layout
        self._when_begun()

    def _loop(self) -> None:
        while not self._stopping.is_set():
            if not self._delivery.wait(n_bytes=self.settings.max_outbox_bytes, seconds=_TAKE_SECONDS):
                self._idle()
                continue
            batch = self._retry.run(lambda: self._source.take(timeout=_TAKE_SECONDS), what="the source")
            if batch is not None:
                self._process(batch)
            elif self._source.is_finished:
                self._drain()
                return
            else:
                self._idle()

    def _idle(self) -> None:
        """Commit what has arrived while there is nothing else to do; no raw query stays longer than it must."""
        swapped = self._add(_NO_EVENTS)
        if swapped.n_suppressed or self._delivery.delivered > self._state.confirmed:
            self._commit(swapped)
        else:
            self._store.maintain()

    def _add(self, events: pl.DataFrame) -> Swapped:
        now, length = int(time.time()), self.settings.promise.window
        window = None if length is None else now // (parse_window(length) // timedelta(seconds=1))
        return self._pools.add(events, window=window, now=now, max_wait=self.settings.max_wait_seconds)

    def _process(self, batch: ports.Batch) -> None:
        began = time.monotonic()
        assert self._preparer is not None
        if self._layout is None:
            settings = self.settings
            found = lines.find_layout(
                batch.data,
                format=settings.format,
                names=settings.names,
                source=self._source_name,
                is_certain=settings.is_finite,
            )
            if found is not None:
                self._begin(found)
        prepared = self._preparer.run(batch.data, layout=self._layout)
        if self._layout is not None:
            # Times tell their format only once there is one.
            time_format = self._layout.time_format or prepared.time_format
            self._layout = replace(self._layout, time_format=time_format)
        self._users.add(prepared.events["user"])
        self._commit(self._add(prepared.events), batch=batch, prepared=prepared)
        bad_lines = prepared.bad_lines.tolist()
        self._report_bad_lines(bad_lines, n_lines=batch.data.count(b"\n"))
        self._retry.run(lambda: self._source.acknowledge(batch, bad_lines=bad_lines), what="the source")
        self._state.note_batch(time.monotonic() - began)

    def _report_bad_lines(self, bad_lines: list[int], *, n_lines: int) -> None:
        """Name the first lines that cannot be read, counted from the start of this run."""
        for line in bad_lines[: max(0, _N_BAD_REPORTED - self._n_bad_reported)]:
            self._tell(f"line {self._n_lines + line:,} of this run cannot be read and is left out")
        if self._n_bad_reported < _N_BAD_REPORTED <= self._n_bad_reported + len(bad_lines):
            self._tell("further lines that cannot be read are only counted")
        self._n_bad_reported += len(bad_lines)
        self._n_lines += n_lines

    def _drain(self) -> None:
        """Release or suppress what waits, now that nothing more can come."""
        self._is_finished = True
        if self._pools.waiting.any() and self.settings.drain == "release":
            self._commit(self._pools.drain())
        if n_suppressed := self._pools.clear():
            self._commit(replace(self._pools.add(_NO_EVENTS), n_suppressed=n_suppressed))

    def _commit(
        self, swapped: Swapped | None = None, *, batch: ports.Batch | None = None, prepared: PreparedBatch | None = None
    ) -> None:
        """Commit everything in one transaction, with retries; then deliver what was released."""
        state, profiles, outgoing, window = self._state, None, None, 0
        swapped = swapped or self._pools.add(_NO_EVENTS)
        if swapped.released.height and self._layout is not None:
            columns, now = self.settings.columns, datetime.now(UTC).replace(tzinfo=None)
            released = swapped.released.with_columns(columns.released_ids(swapped.released["user"]))
            profiles = increments(released)
            if (length := self.settings.promise.window) is not None:
                windows = window_numbers(pl.Series([now]), window=length)
                window = int(windows[0])
                # The profiles stay those of people: nobody but who has the key finds them.
                ids = columns.released_ids(ids_per_window(released["user"], windows.new_from_index(0, released.height)))
                released = released.with_columns(ids)
            kept = released.select("user", "query", *(pl.col(lines.KEPT + name).alias(name) for name in columns.keep))
            number = state.out_number + 1
            data = lines.write_lines(kept, layout=self._layout, columns=columns, now=now, has_header=number == 1)
            outgoing = ports.Outgoing(number=number, offset=state.out_bytes, data=data, n_rows=released.height)
        packed = _Packed(
            version=_VERSION, layout=self._layout, users=self._users.to_bytes(), pools=self._pools.to_bytes()
        )
        commit = ports.Commit(
            number=state.number + 1,
            position=batch.position if batch else state.position,
            pools=msgspec.msgpack.encode(packed),
            keys=batch.keys if batch else (),
            generation=swapped.generation,
            issued=swapped.issued,
            profiles=profiles,
            outgoing=outgoing,
            delivered=self._delivery.delivered,
            counts=state.counts_with(prepared, swapped, window=window),
        )
        began = time.monotonic()
        self._retry.run(partial(self._store.commit, commit), what="the store")
        state.note_commit(commit, seconds=time.monotonic() - began)
        state.note(self._pools)
        if outgoing is not None:
            self._delivery.put(outgoing)

    def _deliver_rest(self) -> None:
        while not self._stopping.is_set() and not self._delivery.wait(n_bytes=0, seconds=_TAKE_SECONDS):
            pass
        self._delivery.stop()
        if self._delivery.delivered > self._state.confirmed:
            self._commit()
        settings, layout, n_users = self.settings, self._layout, self._users.estimate()
        finish = partial(self._sink.finish, settings=settings, layout=layout, stats=self.stats(), n_users=n_users)
        self._retry.run(finish, what="the sink")

    def _close(self) -> None:
        self._stopping.set()
        self._delivery.stop()
        if isinstance(self._preparer, Workers):
            self._preparer.close()
        self._source.close()
        self._store.close()
