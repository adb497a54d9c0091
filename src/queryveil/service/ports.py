"""The ports of the service: bases of sources, sinks and stores, the values that pass through them, and the stats.

An event is one line in one format, whatever carries it: a line of a file, an entry of a Redis stream, a message of a
Kafka topic, a line of a POST. The order of things, so that nothing is lost and nothing is released twice:

1. `Source.take` gives lines and where the source stands after them.
2. `Store.commit` writes position, pools, profiles and what is to be handed over, in one transaction.
3. `Source.acknowledge` tells the source that it may forget the lines.
4. `Sink.deliver` hands over what was committed; a later commit says so and removes it.

After a crash the store gives back the last commit: the source goes on behind its position, and the sink is offered
again what may not have arrived. A sink knows by the number what it already has.
"""
# ruff: noqa: B027 - a method that a source, sink or store need not have does nothing

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Protocol, Self

import polars as pl

from queryveil.data import Layout
from queryveil.service.settings import StreamSettings

N_KEYS = 100_000
"""How many idempotency keys of committed posts are kept, in stores and by the server."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Batch:
    """Whole lines of a source, and its position after them.

    - `data`: the lines, each with its line end.
    - `position`: the source's own text, such as offsets, committed with the lines and given to `Source.open` later.
    - `keys`: hashes of the idempotency keys in the batch: what was committed under one is never taken again.
    """

    data: bytes
    position: str
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Outgoing:
    """Released lines on their way to the sink.

    - `number`: counts from 1 without gaps.
    - `offset`: how many bytes were released before these.
    - `data`: the lines.
    - `n_rows`: how many events they are.
    """

    number: int
    offset: int
    data: bytes
    n_rows: int


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Commit:
    """Everything that one batch changed, to be written in one transaction.

    - `number`: counts commits from 1 without gaps, so that a store can tell after a lost connection whether it has one.
    - `position`: the position of the source after the batch.
    - `pools`: the pools, which hold raw queries; replaces those before.
    - `keys`: hashes of idempotency keys to remember.
    - `generation`: the generation of the memory of who asked what; hashes of generations before the last are deleted.
    - `issued`: hashes to add to that memory.
    - `profiles`: columns user (the released pseudonym), category (its name) and n, to be added to what is there.
    - `outgoing`: to be kept until a later commit confirms it.
    - `delivered`: the last batch that has arrived at the sink.
    - `counts`: replaces the counts before.
    """

    number: int
    position: str | None
    pools: bytes
    keys: tuple[str, ...] = ()
    generation: int = 0
    issued: bytes = b""
    profiles: pl.DataFrame | None = None
    outgoing: Outgoing | None = None
    delivered: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Saved:
    """What a store has of earlier runs; `number` 0 says that there were none."""

    number: int = 0
    position: str | None = None
    pools: bytes = b""
    keys: tuple[str, ...] = ()
    issued: Iterable[tuple[int, bytes]] = ()
    outgoing: tuple[Outgoing, ...] = ()
    delivered: int = 0
    n_bytes_out: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)


BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """How many batches took how long: `counts[i]` took up to `bounds[i]` seconds, the last one longer than all.

    >>> slow = Histogram().with_one(0.02).with_one(60)
    >>> slow.up_to()[4:6], slow.up_to()[-1]
    ((1, 1), 2)
    """

    bounds: tuple[float, ...] = BOUNDS
    counts: tuple[int, ...] = (0,) * (len(BOUNDS) + 1)
    seconds: float = 0.0

    def up_to(self) -> tuple[int, ...]:
        """Count the batches up to each bound, as Prometheus wants them, and all at the end."""
        return tuple(accumulate(self.counts))

    def with_one(self, seconds: float) -> Self:
        place = bisect_left(self.bounds, seconds)
        counts = tuple(n + (i == place) for i, n in enumerate(self.counts))
        return replace(self, counts=counts, seconds=self.seconds + seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """The stats of a service at one moment.

    Counts are of the whole stream, also of runs before a restart, and add up:
    n_read = n_bad + n_empty + n_emptied + n_unclassified_dropped + n_repeated + n_rare + n_suppressed + n_released +
    n_waiting. `n_empty` queries had no text from the start, `n_emptied` none but identifiers, the users of `n_repeated`
    had asked them before, and of `n_rare` too few people. Rows in the outbox are released but not delivered yet.
    `latency` goes from taking a batch to its commit; it, the seconds and `n_batches` are of this run. Where `is_ready`
    is false, `why_not` is one line.
    """

    n_read: int = 0
    n_bad: int = 0
    n_empty: int = 0
    n_emptied: int = 0
    n_unclassified_dropped: int = 0
    n_repeated: int = 0
    n_rare: int = 0
    n_released: int = 0
    n_suppressed: int = 0
    n_waiting: int = 0
    n_delivered: int = 0
    identifiers: Mapping[str, int] = field(default_factory=dict)
    """Identifiers removed, by kind."""
    waiting: Mapping[str, int] = field(default_factory=dict)
    """Events in each pool, by category."""
    k_now: Mapping[str, int] = field(default_factory=dict)
    """How many each pool must hold, by category."""
    waiting_since: int | None = None
    """When the oldest event that waits arrived, in seconds since 1970."""
    oldest_wait_seconds: float = 0.0
    released: Mapping[str, int] = field(default_factory=dict)
    """Released rows, by category."""
    first_window: int = 0
    """The first window that ids were released in, counted from 1970, and the last; 0 if ids do not change."""
    last_window: int = 0
    n_outbox_rows: int = 0
    n_outbox_bytes: int = 0
    n_batches: int = 0
    n_commits: int = 0
    uptime_seconds: float = 0.0
    last_commit_seconds: float = 0.0
    total_commit_seconds: float = 0.0
    latency: Histogram = Histogram()
    is_ready: bool = False
    why_not: str = "starting"
    is_finished: bool = False


class Monitored(Protocol):
    """A service whose state can be shown."""

    @property
    def settings(self) -> StreamSettings:
        """The settings it anonymizes with."""

    def stats(self) -> Stats:
        """Return the current stats, from any thread."""


class Source(ABC):
    """Where events come from; what a source need not do is already here."""

    @abstractmethod
    def open(self, *, position: str | None, keys: Sequence[str]) -> None:
        """Resume after a position; None is a first start. `keys` are those of batches that were committed."""

    @abstractmethod
    def take(self, *, timeout: float) -> Batch | None:
        """Return the next lines as soon as there are some, or None after `timeout` seconds without any."""

    @property
    def is_finished(self) -> bool:
        """Whether no line will come any more; as it is here, more may always come."""
        return False

    def watch(self, service: Monitored) -> None:
        """Show the stats of this service."""

    def acknowledge(self, batch: Batch, *, bad_lines: Sequence[int]) -> None:
        """Record that a batch is committed; the lines named, counted from 1, could not be read and were left out."""

    def close(self) -> None:
        """Close the source. May be called from another thread, to end a `take`."""


class Sink(ABC):
    """Where released events go; what a sink need not do is already here."""

    def watch(self, service: Monitored) -> None:
        """Show the stats of this service."""

    def check_new(self) -> None:
        """Raise if a stream may not begin here: called before `open` at the first start of a stream."""

    @abstractmethod
    def open(self, *, delivered: int, n_bytes: int) -> None:
        """Start; up to batch `delivered` everything has arrived, `n_bytes` bytes were released by then."""

    def begin(self, layout: Layout) -> None:
        """Set the format of the lines, before the first ones are delivered."""

    def offer(self, outgoing: Outgoing) -> None:
        """Let the receiver read a committed batch ahead; `deliver` still waits until it has arrived."""

    @abstractmethod
    def deliver(self, outgoing: Outgoing) -> None:
        """Deliver lines, and return when the receiver has them durably.

        The same number may come again after a crash or a failure; the receiver still has its lines only once.
        """

    def finish(self, *, settings: StreamSettings, layout: Layout | None, stats: Stats, n_users: int) -> None:
        """Write the manifest, after the last delivery. `n_users` is an estimate."""

    def close(self) -> None:
        """Close the sink. May be called from another thread, to end a `deliver`."""


class Store(ABC):
    """Where the state of a stream is kept; as it is here, nothing is."""

    def has_begun(self) -> bool:
        """Return whether a stream has committed something here; nothing is made or changed."""
        return False

    @abstractmethod
    def open(self, *, settings: str) -> Saved:
        """Lock the store for this process, and return what it has.

        Other `settings` than those the state was made with raise `BadParameter`, a store in use raises `StoreBusy`.
        """

    def commit(self, commit: Commit) -> None:
        """Write everything or nothing, to disk. After a failure the same commit may be given again."""

    def maintain(self) -> None:
        """Do the maintenance that is due; called repeatedly while there is nothing to commit."""

    def close(self) -> None:
        """Unlock the store."""
