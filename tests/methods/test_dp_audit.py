"""Releases of neighbouring logs, made over and over: can they be told apart more often than is promised?

Each log has many blocks of queries that have nothing to do with each other, so that one release is as many trials as
there are blocks. In one log every block has one person more. Bounds are such that a false alarm has a chance of 1e-6.
"""

from __future__ import annotations

from math import floor, log
from typing import Any

import msgspec
import numpy as np
import polars as pl
import pytest
from tests.support.plain_dp import plain_chances, plain_delta

from queryveil.data import QueryLog
from queryveil.methods import Dp
from queryveil.release import Noise

pytestmark = pytest.mark.slow

N_BLOCKS = 2500
FALSE_ALARM = 1e-6
CUTS = range(-1, 2)
"""Where a block is told to have one person more: at what the claim makes best, and one person beside it."""


def blocks(*, n_blocks: int, n_queries: int, n_people: int) -> QueryLog:
    """Return a log in which each block has its own people, who ask all queries of the block."""
    block, person, query = (
        axis.ravel() for axis in np.meshgrid(*map(np.arange, (n_blocks, n_people, n_queries)), indexing="ij")
    )
    numbers = pl.DataFrame({"block": block, "person": person, "query": query})
    frame = numbers.select(
        user=pl.format("persona {} {}", "block", "person"), query=pl.format("block {} kettle {}", "block", "query")
    )
    return QueryLog(frame=frame)


def sums(method: Dp, log: QueryLog, *, n_blocks: int) -> np.ndarray:
    """Return the sum of the released counts of each block."""
    frame = method.anonymize(log).tallies.frame
    block = frame["query"].str.extract(r"block (\d+)").cast(pl.Int64).to_numpy()
    return np.bincount(block, frame["count"].to_numpy(), minlength=n_blocks)


def bound(n_hits: int, n: int, *, upper: bool, n_looks: int = 1) -> float:
    """Return a bound on a chance from how often something happened (Chernoff), for half of the false alarm."""
    share, allowed = n_hits / n, log(2 * n_looks / FALSE_ALARM) / n
    inside, outside = share, 1.0 if upper else 0.0
    for _ in range(60):
        middle = (inside + outside) / 2
        parts = [(share, middle), (1 - share, 1 - middle)]
        unlikely = sum(a * log(a / b) for a, b in parts if a > 0) > allowed
        inside, outside = (inside, middle) if unlikely else (middle, outside)
    return outside


def apart(made: Dp, claimed: Noise) -> float:
    """Return how far apart the two logs can be told at least; where to cut is fixed by the claim beforehand.

    Each cut is a look, and all looks together may raise a false alarm no more often than one.
    """
    n = claimed.max_items
    n_people = claimed.threshold + 8 * int(claimed.scale) + 10
    mean = sum(z * chance for z, chance in plain_chances(claimed).items())
    middle = floor(n * (n_people + mean) + n / 2) + 1
    without, present = (
        sums(made, blocks(n_blocks=N_BLOCKS, n_queries=n, n_people=n_people + more), n_blocks=N_BLOCKS)
        for more in (0, 1)
    )
    return max(
        bound(int((present >= cut).sum()), N_BLOCKS, upper=False, n_looks=len(CUTS))
        - bound(int((without >= cut).sum()), N_BLOCKS, upper=True, n_looks=len(CUTS))
        for cut in (middle + step * n for step in CUTS)
    )


class Halved(Dp):
    """A method that draws half of the noise."""

    @property
    def noise(self) -> tuple[Noise, ...]:
        return tuple(msgspec.structs.replace(plan, scale=plan.scale / 2) for plan in super().noise)


class TwoLower(Dp):
    """A method whose thresholds are two too low."""

    @property
    def noise(self) -> tuple[Noise, ...]:
        return tuple(msgspec.structs.replace(plan, threshold=plan.threshold - 2) for plan in super().noise)


@pytest.mark.parametrize("settings", [{"max_queries": 1}, {"max_queries": 4}], ids=str)
def test_neighbouring_logs_are_told_apart_no_better_than_promised_and_half_the_noise_is_caught(
    settings: dict[str, Any],
) -> None:
    (claimed,) = Dp(delta=1e-2, **settings).noise
    # Delta at epsilon 0: at the promised epsilon even half of the noise would take millions of trials to catch.
    promised = plain_delta(claimed, without=[claimed.threshold + 500] * claimed.max_items, epsilon=0.0)
    assert apart(Dp(delta=1e-2, **settings), claimed) <= promised
    assert apart(Halved(delta=1e-2, **settings), claimed) > promised


@pytest.mark.parametrize(
    "settings",
    [
        {"max_queries": 1},
        {"max_queries": 1, "rounds": 2},
        {"max_queries": 5},
        {"max_queries": 1, "mechanism": "laplace"},
    ],
    ids=str,
)
def test_somebody_whose_queries_nobody_else_asked_is_seen_no_more_often_than_delta(settings: dict[str, Any]) -> None:
    n, delta = 10_000, 0.02
    alone = blocks(n_blocks=n, n_queries=settings["max_queries"], n_people=1)
    seen, too_often = (sums(kind(delta=delta, **settings), alone, n_blocks=n) > 0 for kind in (Dp, TwoLower))
    assert bound(int(seen.sum()), n, upper=False) <= delta
    assert bound(int(too_often.sum()), n, upper=False) > delta
