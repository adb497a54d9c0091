"""The numbers, position and counts of the last commit, and the stats made of them."""

import math
import time
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from queryveil.data import Bytes
from queryveil.methods.swap.pools import Pools, Swapped
from queryveil.methods.swap.preparing import CATEGORY_NAMES
from queryveil.service.pipeline._workers import IDENTIFIERS, PreparedBatch
from queryveil.service.ports import Commit, Saved, Stats

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
