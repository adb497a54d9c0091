"""What the routes know of the service behind them, and what they count themselves."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Protocol, runtime_checkable

from queryveil.guarantees import SwapAnonymity
from queryveil.service.stats import Histogram, Stats

_FRESH_SECONDS = 0.1


class Settings(Protocol):
    """The part of a service's settings that is shown."""

    @property
    def promise(self) -> SwapAnonymity:
        """What holds for everything that leaves."""

    @property
    def max_outbox_bytes(self) -> int:
        """Over so many bytes in the outbox, nothing is taken."""


class Service(Protocol):
    """A service that can say how it is."""

    @property
    def settings(self) -> Settings:
        """What it anonymizes with."""

    def stats(self) -> Stats:
        """Return how it is, from any thread."""


@runtime_checkable
class Shows(Protocol):
    """A source or sink that shows how its service is."""

    def watch(self, service: Service) -> None:
        """Show this one."""


@dataclass(slots=True, kw_only=True)
class Traffic:
    """Requests by route and status, and how long posts waited for their commit."""

    requests: Counter[tuple[str, int]] = field(default_factory=Counter)
    post_seconds: Histogram = field(default_factory=Histogram)

    def note(self, route: str, status: int) -> None:
        """Count an answer."""
        self.requests[route, status] += 1

    def note_post(self, seconds: float) -> None:
        """Count a post that was committed."""
        self.post_seconds = self.post_seconds.with_one(seconds)


@dataclass(slots=True, kw_only=True)
class Watched:
    """A service that may not be there yet; its stats are asked for ten times a second at most."""

    service: Service | None = None
    traffic: Traffic = field(default_factory=Traffic)
    clock: Callable[[], float] = time.monotonic
    _last: Stats = field(default_factory=Stats)
    _asked: float = float("-inf")
    _lock: Lock = field(default_factory=Lock)

    @property
    def promise(self) -> SwapAnonymity | None:
        """What the service promises."""
        return None if self.service is None else self.service.settings.promise

    def stats(self) -> Stats:
        """Return how the service is."""
        if self.service is None:
            return self._last
        with self._lock:
            if self.clock() - self._asked > _FRESH_SECONDS:
                self._last, self._asked = self._ask(self.service), self.clock()
            return self._last

    @staticmethod
    def _ask(service: Service) -> Stats:
        stats = service.stats()
        if stats.is_ready and stats.n_outbox_bytes > service.settings.max_outbox_bytes:
            return replace(stats, is_ready=False, why_not="the outbox is full until released rows are picked up")
        return stats
