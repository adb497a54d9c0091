"""The stats of a running service: counts and seconds, never a text."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """How many batches took how long: `counts[i]` took up to `bounds[i]` seconds, the last one longer than all.

    >>> slow = Histogram().with_one(0.02).with_one(60)
    >>> slow.n, slow.up_to()[4:6], slow.up_to()[-1]
    (2, (1, 1), 1)
    """

    bounds: tuple[float, ...] = BOUNDS
    counts: tuple[int, ...] = (0,) * (len(BOUNDS) + 1)
    seconds: float = 0.0

    @property
    def n(self) -> int:
        """How many there were."""
        return sum(self.counts)

    def up_to(self) -> tuple[int, ...]:
        """Count the batches up to each bound, as Prometheus wants them."""
        return tuple(sum(self.counts[: i + 1]) for i in range(len(self.bounds)))

    def with_one(self, seconds: float) -> Histogram:
        """Add one batch."""
        place = bisect_left(self.bounds, seconds)
        counts = tuple(n + (i == place) for i, n in enumerate(self.counts))
        return Histogram(bounds=self.bounds, counts=counts, seconds=self.seconds + seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """The stats of a service at one moment.

    Counts are of the whole stream, also of runs before a restart, and add up:
    n_read = n_bad + n_empty + n_emptied + n_unclassified_dropped + n_released + n_suppressed + n_waiting.
    `n_empty` queries had no text from the start, `n_emptied` none but identifiers. What lies in the outbox is released
    but not handed over. `latency` goes from taking a batch to its commit; it, the seconds and `n_batches` are of this
    run. Where `is_ready` is false, `why_not` is one line.
    """

    n_read: int = 0
    n_bad: int = 0
    n_empty: int = 0
    n_emptied: int = 0
    n_unclassified_dropped: int = 0
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
    released: Mapping[str, int] = field(default_factory=dict)
    """Released rows, by category."""
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
