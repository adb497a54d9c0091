"""The numbers, position and counts of the last commit, the stats made of them, and the delivery of what it has."""

import math
import os
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from threading import Condition, Event, Thread
from typing import Any, TypeVar

import numpy as np
import polars as pl

from queryveil.data import Bytes
from queryveil.errors import Unreachable
from queryveil.methods.swap.pools import Pools, Swapped
from queryveil.methods.swap.preparing import CATEGORY_NAMES
from queryveil.service.pipeline._workers import IDENTIFIERS, PreparedBatch
from queryveil.service.ports import Commit, Outgoing, Saved, Sink, Stats

_TOTALS = (
    *("n_read", "n_bad", "n_empty", "n_emptied", "n_unclassified_dropped", "n_repeated", "n_rare", "n_suppressed"),
    *("n_released", "first_window", "last_window"),
)
_RELEASED = "released."


class CommitState:
    """The state of a stream as of its last commit, and the stats made of it.

    `confirmed` is the last batch that the store knows to have arrived at the sink.
    """

    def __init__(self, saved: Saved) -> None:
        self.number, self.position = saved.number, saved.position
        self.out_number = saved.outgoing[-1].number if saved.outgoing else saved.delivered
        self.out_bytes, self.confirmed = saved.n_bytes_out, saved.delivered
        self.counts = Counter(saved.counts)
        self.started, self.stats = time.monotonic(), Stats()

    def counts_with(self, prepared: PreparedBatch | None, swapped: Swapped, *, window: int) -> dict[str, int]:
        """Return the counts as they are once this is committed; `window` is that of the ids that are released now."""
        counts = Counter(self.counts)
        if window:
            counts["first_window"], counts["last_window"] = counts["first_window"] or window, window
        if prepared is not None:
            counts.update(prepared.counts)
        counts.update(n_released=swapped.released.height, n_suppressed=swapped.n_suppressed)
        counts.update(n_repeated=swapped.n_repeated, n_rare=swapped.n_rare)
        by_category = np.bincount(swapped.released["category"].to_numpy(), minlength=len(CATEGORY_NAMES))
        counts.update({_RELEASED + name: int(n) for name, n in zip(CATEGORY_NAMES, by_category, strict=True)})
        return {name: n for name, n in counts.items() if n}

    def note_commit(self, commit: Commit, *, seconds: float) -> None:
        self.number, self.position = commit.number, commit.position
        self.confirmed, self.counts = commit.delivered, Counter(commit.counts)
        if commit.outgoing is not None:
            self.out_number = commit.outgoing.number
            self.out_bytes += len(commit.outgoing.data)
        self._update(
            n_commits=self.stats.n_commits + 1,
            last_commit_seconds=seconds,
            total_commit_seconds=self.stats.total_commit_seconds + seconds,
        )

    def note_batch(self, seconds: float) -> None:
        self._update(n_batches=self.stats.n_batches + 1, latency=self.stats.latency.with_one(seconds))

    def note(self, pools: Pools) -> None:
        self._update(
            n_waiting=int(pools.waiting.sum()),
            waiting=dict(zip(CATEGORY_NAMES, pools.waiting.tolist(), strict=True)),
            k_now=dict(zip(CATEGORY_NAMES, pools.k_now.tolist(), strict=True)),
            waiting_since=pools.waiting_since,
        )

    def _update(self, **changed: Any) -> None:
        for kind in (IDENTIFIERS, _RELEASED):
            found = sorted(name for name in self.counts if name.startswith(kind))
            changed[kind.removesuffix(".")] = {name.removeprefix(kind): self.counts[name] for name in found}
        changed |= {name: self.counts[name] for name in _TOTALS}
        self.stats = replace(self.stats, **changed)


_BITS = 12
_N = 1 << _BITS


class UserCount:
    """Estimates the number of distinct users within about 2 per cent (HyperLogLog).

    >>> count = UserCount()
    >>> count.add(pl.Series([f"user{i % 50}" for i in range(1000)]))
    >>> 48 <= count.estimate() <= 52
    True
    """

    def __init__(self, data: bytes = b"") -> None:
        self._longest: Bytes = np.frombuffer(data, np.uint8).copy() if data else np.zeros(_N, np.uint8)

    @staticmethod
    def can_be(data: bytes) -> bool:
        """Return whether `to_bytes` may have given these bytes, or none."""
        return not data or (len(data) == _N and max(data) <= 64 - _BITS + 1)

    def add(self, users: pl.Series) -> None:
        hashes = users.unique().hash(seed=0x5EED).to_numpy()
        rest = hashes >> np.uint64(_BITS)
        # The place of the highest bit, by way of floats, which are exact enough up to 2 ** 52.
        n_zeros = (64 - _BITS) - np.frexp(rest.astype(np.float64))[1]
        np.maximum.at(self._longest, (hashes & np.uint64(_N - 1)).astype(np.int64), (n_zeros + 1).astype(np.uint8))

    def estimate(self) -> int:
        raw = 0.7213 / (1 + 1.079 / _N) * _N * _N / float(np.sum(np.exp2(-self._longest.astype(np.float64))))
        n_unused = int((self._longest == 0).sum())
        return round(_N * math.log(_N / n_unused) if raw <= 2.5 * _N and n_unused else raw)

    def to_bytes(self) -> bytes:
        return self._longest.tobytes()


_T = TypeVar("_T")
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0
GRACE_SECONDS = 5.0
"""Seconds for which a step that was begun is still tried after the service was told to stop."""


class Retry:
    """Repeats an action with growing pauses until it succeeds, for `patience` seconds (None: for ever).

    Once `stopping` is set, only for five more. `trouble` is what is wrong now, and told when that changes.
    """

    def __init__(self, *, stopping: Event, patience: float | None, tell: Callable[[str], None]) -> None:
        self._stopping, self._patience, self._tell = stopping, patience, tell
        self.trouble: str | None = None

    def run(self, action: Callable[[], _T], *, what: str) -> _T:
        """Run an action until it succeeds; failures other than of a server or disk are raised at once."""
        pause, has_failed = _FIRST_PAUSE, False
        gives_up_at = float("inf") if self._patience is None else time.monotonic() + self._patience
        while True:
            try:
                result = action()
            except BrokenPipeError:
                # Whoever read has gone for good.
                raise
            except Unreachable as error:
                line = str(error)
            except OSError as error:
                # Privacy: the message of an OSError may quote what was written; its number does not.
                reason = os.strerror(error.errno).lower() if error.errno else type(error).__name__
                line = f"{what}: {reason}"
            else:
                if has_failed:
                    self.trouble = None
                return result
            has_failed = True
            if line != self.trouble:
                self._tell(f"{line}; trying again")
            self.trouble, now = line, time.monotonic()
            if now >= gives_up_at:
                raise Unreachable("gave up", f"{line}; run the same command again to go on") from None
            if self._stopping.is_set():
                gives_up_at = min(gives_up_at, now + GRACE_SECONDS)
            if self._stopping.wait(pause):
                time.sleep(_FIRST_PAUSE)
            pause = min(2 * pause, _LONGEST_PAUSE)


class Delivery:
    """Delivers committed batches to the sink one after the other, in a thread."""

    def __init__(self, sink: Sink, *, patience: float | None, tell: Callable[[str], None] = lambda _: None) -> None:
        self._sink = sink
        self._waiting: deque[Outgoing] = deque()
        self._changed, self._stopping, self._is_closed = Condition(), Event(), False
        self.retry = Retry(stopping=self._stopping, patience=patience, tell=tell)
        self._thread = Thread(target=self._run, name="queryveil-delivery", daemon=True)
        self.delivered, self.n_bytes, self.n_rows = 0, 0, 0
        self._failure: BaseException | None = None

    def start(self, *, delivered: int, waiting: Sequence[Outgoing]) -> None:
        self.delivered = delivered
        for outgoing in waiting:
            self.put(outgoing)
        self._thread.start()

    def put(self, outgoing: Outgoing) -> None:
        self._sink.offer(outgoing)
        with self._changed:
            self._waiting.append(outgoing)
            self.n_bytes += len(outgoing.data)
            self.n_rows += outgoing.n_rows
            self._changed.notify_all()

    def wait(self, *, n_bytes: int, seconds: float) -> bool:
        """Wait until at most so many bytes are waiting; return whether that is so. Raises what ended the delivery."""
        with self._changed:
            self._changed.wait_for(lambda: self._failure is not None or self.n_bytes <= n_bytes, timeout=seconds)
            if self._failure is not None:
                raise self._failure
            return self.n_bytes <= n_bytes

    def stop(self) -> None:
        """Stop when everything is handed over, or after a while if the sink does not take it."""
        if self._is_closed:
            return
        self._stopping.set()
        with self._changed:
            if self._thread.is_alive():
                self._changed.wait_for(lambda: not self.n_bytes or self._failure is not None, timeout=GRACE_SECONDS)
            self._is_closed = True
            self._changed.notify_all()
        self._sink.close()
        if self._thread.is_alive():
            self._thread.join(timeout=1)

    def _run(self) -> None:
        try:
            while True:
                with self._changed:
                    self._changed.wait_for(lambda: bool(self._waiting) or self._is_closed)
                    if self._is_closed:
                        return
                    outgoing = self._waiting[0]
                self._deliver(outgoing)
        except BaseException as error:
            with self._changed:
                if not self._is_closed:
                    self._failure = error
                self._changed.notify_all()

    def _deliver(self, outgoing: Outgoing) -> None:
        self.retry.run(lambda: self._sink.deliver(outgoing), what="the sink")
        with self._changed:
            self._waiting.popleft()
            self.delivered = outgoing.number
            self.n_bytes -= len(outgoing.data)
            self.n_rows -= outgoing.n_rows
            self._changed.notify_all()
