"""The attackers of swapped logs, as attackers like any other."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import polars as pl

from queryveil.attack.as_released import as_released
from queryveil.attack.exposure import Exposure
from queryveil.attack.ports import Given
from queryveil.attack.rebuilding import Rebuilding
from queryveil.attack.seen import Seen
from queryveil.attack.truth import Truth
from queryveil.guarantees import SwapAnonymity
from queryveil.paired import Paired


class Sight:
    """What is seen of a swapped release and its truth, worked out once for all who attack it."""

    def __init__(self) -> None:
        self._paired: Paired | None = None
        self._truth: Truth | None = None

    def of(self, paired: Paired) -> Truth:
        """Give the truth about a release, with what is seen of it."""
        if self._truth is None or self._paired is not paired:
            released = paired.release.log.frame
            user = paired.who.only()[paired.candidate]
            # Users whom the original lacks keep their own ids, so that their rows are nobody's.
            ids = paired.users.gather(np.maximum(0, user)).zip_with(pl.Series(user >= 0), released["user"])
            seen = Seen.of(paired.release.log.with_frame(released.with_columns(user=ids)))
            self._paired, self._truth = paired, Truth.of(paired.original, seen=seen)
        return self._truth


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class OnSwapped:
    """One of the four who rebuild the pools, or nobody who does: then rows are believed as they stand."""

    rebuilding: Rebuilding | None = None
    sight: Sight = field(default_factory=Sight)

    @property
    def name(self) -> str:
        """What it is called."""
        return "as_released" if self.rebuilding is None else self.rebuilding.name

    def misses(self, paired: Paired, *, given: Given) -> str | None:  # noqa: ARG002 - all attackers are asked alike
        """Say why it cannot attack this release; None if it can."""
        if not isinstance(paired.release.promise, SwapAnonymity):
            return "no queries changed hands"
        if self.rebuilding is not None and self.rebuilding.by_time and "time" not in paired.release.log.columns:
            return "the release has no times to sort by"
        return None

    def attack(self, paired: Paired, *, given: Given) -> Exposure:  # noqa: ARG002 - it needs nothing more
        """Attack, and count the rows that were put together as they were."""
        truth = self.sight.of(paired)
        return as_released(truth) if self.rebuilding is None else self.rebuilding.attack(truth.seen, truth=truth)

    def __repr__(self) -> str:
        return f"OnSwapped(name={self.name!r})"
