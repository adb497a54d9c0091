"""Ways to release items with differential privacy: ours, OpenDP's and PipelineDP's, each with its exact chances."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from queryveil.data import Int64s, QueryLog
from queryveil.methods import Dp
from queryveil.release import Noise

Chances: TypeAlias = npt.NDArray[np.float64]
OURS = ("auto", "truncated-geometric", "gaussian", "laplace", "zealous")
SHARES = (0.3, 0.4, 0.5, 0.6, 0.7)
"""Parts of delta that OpenDP's Gaussian noise may have; the threshold has the rest, and the smallest one counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A way to release items at a promise.

    `rounds` has for each round the chance that an item leaves, by its count. `stated` is the delta that a library works
    out for items which one person alone has, and `is_honest` says whether that is true.
    """

    name: str
    threshold: str
    rounds: tuple[Chances, ...]
    draw: Callable[[Int64s], int]
    stated: float | None = None
    is_ours: bool = False
    is_honest: bool = True

    def delta_of_new(self, max_queries: int) -> float:
        """Return the chance that any item leaves that could not have left without one person."""
        first = [float(chance[chance > 0][0]) for chance in self.rounds]
        return 1 - math.prod((1 - each) ** max_queries for each in first)


def chances(noise: Noise, *, n_most: int) -> Chances:
    """Return the exact chance to leave of each count from 0 to n_most."""
    width = math.ceil(noise.scale * (15 if noise.mechanism == "gaussian" else 60)) + 2
    z = np.arange(-width, width + 1)
    weight = np.exp(-(z**2) / (2 * noise.scale**2) if noise.mechanism == "gaussian" else -np.abs(z) / noise.scale)
    weight /= weight.sum()
    if noise.top is not None:
        up = noise.shift / 2**32
        weight = (1 - up) * weight + up * np.concatenate([[0.0], weight[:-1]])
        weight[z > noise.top] = 0
        weight /= weight.sum()
    at_least = np.append(np.cumsum(weight[::-1])[::-1], 0.0)
    count = np.arange(n_most + 1)
    chance = at_least[np.clip(noise.threshold - count + width, 0, len(z))].clip(0, 1)
    chance[: noise.least] = 0
    return chance


def ours(mechanism: str, rounds: int, *, log: QueryLog, n_most: int, **promise: Any) -> Way:
    """Return a way of our own; what it draws is the method itself, from the log to the release."""
    method = Dp(mechanism=mechanism, rounds=rounds, bot_threshold=None, **promise)  # type: ignore[arg-type]
    noise = method.noise
    chosen = "" if mechanism != "auto" else f" ({noise[0].mechanism})"
    name = "automatic" if mechanism == "auto" else mechanism
    return Way(
        name=f"ours, {name}{chosen}, {len(noise)} round{'s' * (len(noise) > 1)}",
        threshold=", ".join(str(each.threshold) for each in noise),
        rounds=tuple(chances(each, n_most=n_most) for each in noise),
        draw=lambda _: method.anonymize(log).tallies.n_queries,
        is_ours=True,
    )


def all_of_ours(*, log: QueryLog, n_most: int, **promise: Any) -> list[Way]:
    """Return the automatic choice, and each mechanism in one round and in two."""
    wishes = [("auto", 1), *((each, n) for each in OURS[1:] for n in (1, 2))]
    return [ours(mechanism, rounds, log=log, n_most=n_most, **promise) for mechanism, rounds in wishes]


@cache
def _opendp() -> Any:
    import opendp.prelude as dp  # noqa: PLC0415

    dp.enable_features("contrib")
    return dp


def _thresholded(name: str, *, scale: float, threshold: int) -> Any:
    """Make OpenDP's noise with a threshold on a map of counts."""
    dp = _opendp()
    space = dp.map_domain(dp.atom_domain(T=dp.u32), dp.atom_domain(T=dp.i32))
    if name == "laplace":
        distance = dp.l01inf_distance(dp.absolute_distance(T=dp.i32))
        return dp.m.make_laplace_threshold(space, distance, scale=scale, threshold=threshold)
    distance = dp.l02inf_distance(dp.absolute_distance(T="f64"))
    return dp.m.make_gaussian_threshold(space, distance, scale=scale, threshold=threshold)


def _first(is_enough: Callable[[int], bool], *, most: int = 100_000) -> int:
    low, high = 2, most
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle + 1, high)
    return low


def _laplace(epsilon: float, delta: float, max_queries: int) -> tuple[float, int, float]:
    scale, far = max_queries / epsilon, (max_queries, max_queries, 1)

    def stated(threshold: int) -> float:
        return float(_thresholded("laplace", scale=scale, threshold=threshold).map(far)[1])

    found = _first(lambda t: stated(t) <= delta)
    return scale, found, stated(found)


def _gaussian(epsilon: float, delta: float, max_queries: int) -> tuple[float, int, float]:
    """Search for the scale by zCDP and for the threshold, with the best of some parts of delta for each."""
    dp, far, tried = _opendp(), (max_queries, math.sqrt(max_queries), 1.0), []

    def stated(threshold: int, scale: float) -> float:
        return float(_thresholded("gaussian", scale=scale, threshold=threshold).map(far)[1])

    for part in SHARES:
        low, high = 0.3, 400 * math.sqrt(max_queries) / min(1.0, epsilon)
        for _ in range(40):
            middle = math.sqrt(low * high)
            made = dp.c.make_zCDP_to_approxDP(_thresholded("gaussian", scale=middle, threshold=2**30))
            is_enough = made.map(far)[0].epsilon(delta * part) <= epsilon
            low, high = (low, middle) if is_enough else (middle, high)
        found = _first(lambda t, scale=high, part=part: stated(t, scale) <= delta * (1 - part))  # type: ignore[misc]
        tried.append((high, found, stated(found, high)))
    return min(tried, key=lambda each: each[1])


def opendp(*, n_most: int, epsilon: float, delta: float, max_queries: int) -> list[Way]:
    """Return OpenDP's noise, at the threshold that its map certifies, and at the one that is right.

    It releases a count that is at least the threshold, and counts the chance of being above it: so what it states for
    one threshold holds for the next one (its issue 2922).
    """
    found = []
    for name, search in (("laplace", _laplace), ("gaussian", _gaussian)):
        scale, certified, stated = search(epsilon, delta, max_queries)
        for threshold, how in ((certified, "as certified"), (certified + 1, "mended")):
            noise = Noise(
                what="queries", mechanism=name, max_items=max_queries, scale=scale, threshold=threshold,  # type: ignore[arg-type]
                epsilon=epsilon, delta=delta,
            )  # fmt: skip
            release = _thresholded(name, scale=scale, threshold=threshold)
            way = Way(
                name=f"OpenDP {name}, {how}",
                threshold=str(threshold),
                stated=stated,
                rounds=(chances(noise, n_most=n_most),),
                draw=partial(_draw_map, release),
                is_honest=how == "mended",
            )
            found.append(way)
    return found


def _draw_map(release: Callable[[dict[int, int]], Sequence[object]], counts: Int64s) -> int:
    there = np.flatnonzero(counts)
    return len(release(dict(zip(there.tolist(), counts[there].tolist(), strict=True))))


def pipelinedp(*, n_most: int, epsilon: float, delta: float, max_queries: int) -> list[Way]:
    """Return PipelineDP's three selectors; they choose items only, counts would cost them more."""
    try:
        from pipeline_dp import PartitionSelectionStrategy as Strategy  # noqa: PLC0415
        from pipeline_dp.partition_selection import create_partition_selection_strategy  # noqa: PLC0415
    except ImportError:
        print("PipelineDP is not installed; it is there for Python 3.11 to 3.13")
        return []

    found = []
    for strategy, name in (
        (Strategy.TRUNCATED_GEOMETRIC, "truncated geometric"),
        (Strategy.LAPLACE_THRESHOLDING, "laplace"),
        (Strategy.GAUSSIAN_THRESHOLDING, "gaussian"),
    ):
        selector = create_partition_selection_strategy(strategy, epsilon, delta, max_queries)
        chance = np.array([selector.probability_of_keep(n) for n in range(n_most + 1)])
        threshold = f"{selector.threshold:.1f}" if hasattr(selector, "threshold") else "-"
        way = Way(
            name=f"PipelineDP {name}",
            threshold=threshold,
            rounds=(chance,),
            draw=lambda counts, keep=selector.should_keep: sum(keep(n) for n in counts[counts > 0].tolist()),  # type: ignore[misc]
        )
        found.append(way)
    return found
