"""Choose noise and threshold for (epsilon, delta) without looking at data."""

from fractions import Fraction
from functools import lru_cache
from math import ceil, exp, expm1, floor, inf, log, log1p, nextafter, sqrt
from typing import Literal

import msgspec
import numpy as np

from queryveil.errors import BadParameter
from queryveil.methods.dp._calibration import (
    SHIFTS,
    gaussian_divergence,
    half_count,
    keeps,
    laplace_tail,
    tail,
    top_chance,
)
from queryveil.methods.settings import DpSettings, Mechanism
from queryveil.release import Noise
from queryveil.settings import settings_of

LEAST_EPSILON = 1e-4
LEAST_DELTA = 1e-100
_CARE = 1 - 1e-9
"""Plans are made for a little less than delta, so that no rounding of floats can take them above it."""
_DIGITS = 10_000
_WIDEST = 2e5
"""A wider Gaussian than this takes too long to account for exactly."""

What = Literal["queries", "clicks"]


@lru_cache(maxsize=256)
def plan_for(
    *, mechanism: str = Mechanism.AUTO, epsilon: float, delta: float, max_items: int, what: What = "queries"
) -> Noise:
    """Return the noise and the threshold that spend at most (epsilon, delta) on a person with `max_items` counts.

    >>> plan = plan_for(mechanism="laplace", epsilon=1.0, delta=1e-5, max_items=1)
    >>> plan.scale, plan.threshold
    (1.0, 13)
    """
    if epsilon < LEAST_EPSILON:
        raise BadParameter("epsilon", epsilon, allowed=f"{LEAST_EPSILON} or more in each part of a release")
    if delta < LEAST_DELTA:
        raise BadParameter("delta", delta, allowed=f"{LEAST_DELTA} or more in each part of a release")
    chosen: Mechanism = settings_of(DpSettings)["mechanism"].check(mechanism)
    match chosen:
        case Mechanism.AUTO:
            return choose(epsilon=epsilon, delta=delta, max_items=max_items, what=what)
        case Mechanism.TRUNCATED_GEOMETRIC:
            return _truncated_geometric(epsilon=epsilon, delta=delta, max_items=max_items, what=what)
        case Mechanism.GAUSSIAN:
            if _is_too_wide(epsilon=epsilon, delta=delta, max_items=max_items):
                raise BadParameter("epsilon", epsilon, allowed="larger for gaussian noise on so many counts")
            return _gaussian(epsilon=epsilon, delta=delta, max_items=max_items, what=what)
        case Mechanism.LAPLACE:
            return _laplace(epsilon=epsilon, delta=delta, max_items=max_items, what=what)
        case Mechanism.ZEALOUS:
            return _zealous(epsilon=epsilon, delta=delta, max_items=max_items, what=what)


def choose(*, epsilon: float, delta: float, max_items: int, what: What = "queries") -> Noise:
    """Return the plan by which the smallest counts leave with the chance 1/2; no data is looked at.

    Laplace noise is never better than truncated geometric, and zealous never better than Laplace.

    >>> [choose(epsilon=1.0, delta=1e-5, max_items=n).mechanism for n in (1, 5)]
    ['truncated-geometric', 'gaussian']
    """
    plans = [_truncated_geometric(epsilon=epsilon, delta=delta, max_items=max_items, what=what)]
    if not _is_too_wide(epsilon=epsilon, delta=delta, max_items=max_items):
        plans.append(_gaussian(epsilon=epsilon, delta=delta, max_items=max_items, what=what))
    return min(plans, key=half_count)


def _laplace(*, epsilon: float, delta: float, max_items: int, what: What) -> Noise:
    scale = _scale(epsilon, max_items)
    return Noise(
        what=what,
        mechanism="laplace",
        max_items=max_items,
        scale=scale,
        threshold=1 + _distance(scale, _share(scale, delta, max_items)),
        epsilon=epsilon,
        delta=delta,
    )


def _zealous(*, epsilon: float, delta: float, max_items: int, what: What) -> Noise:
    """Götz et al.: counts below a first threshold never leave, the others get noise and a second threshold."""
    # Paper: noise of 2m/epsilon, and the first threshold that makes the second smallest.
    # Differs: the paper's second threshold has the number of users in it, which is itself a secret here; ours is
    # accounted for as that of the other kinds of noise.
    scale = _scale(epsilon, 2 * max_items)
    least = ceil(scale)
    return Noise(
        what=what,
        mechanism="zealous",
        max_items=max_items,
        scale=scale,
        threshold=least + _distance(scale, _share(scale, delta, max_items)),
        epsilon=epsilon,
        delta=delta,
        least=least,
    )


def _truncated_geometric(*, epsilon: float, delta: float, max_items: int, what: What) -> Noise:
    """Desfontaines et al.'s optimal selection, made by noise, so that the noisy count may leave at no extra cost.

    Laplace noise, pushed up by one with a chance that brings the chance of the top value to what delta allows.
    """
    # Paper: epsilon' = epsilon/L0, delta' = 1-(1-delta)^(1/L0).
    scale = _scale(epsilon, max_items)
    share = _share(scale, delta, max_items)
    a = exp(-1 / scale)
    top = max(1, floor(scale * log((-expm1(-1 / scale) / share + a) / (1 + a))) - 1)
    while top_chance(scale, top, 0.0) > share:
        top += 1
    low, high = 0, SHIFTS
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if top_chance(scale, top, middle / SHIFTS) <= share else (low, middle)
    return Noise(
        what=what,
        mechanism="truncated-geometric",
        max_items=max_items,
        scale=scale,
        threshold=top + 1,
        epsilon=epsilon,
        delta=delta,
        top=top,
        shift=low,
    )


def _gaussian(*, epsilon: float, delta: float, max_items: int, what: What) -> Noise:
    careful = delta * _CARE
    low, high = 0.05, 2 * _rough_scale(epsilon=epsilon, delta=delta, max_items=max_items) + 1
    while high - low > max(0.25 / _DIGITS, high * 1e-7):
        middle = (low + high) / 2
        fits = gaussian_divergence(middle, delta=delta)(max_items, epsilon) <= careful
        low, high = (low, middle) if fits else (middle, high)
    scale = ceil(high * _DIGITS) / _DIGITS
    divergence = gaussian_divergence(scale, delta=delta)
    plan = Noise(
        what=what,
        mechanism="gaussian",
        max_items=max_items,
        scale=scale,
        threshold=2,
        epsilon=epsilon,
        delta=delta,
    )
    # If all of a person's counts appear, nothing but the threshold protects; other mixtures are judged below.
    share = -expm1(log1p(-careful) / max_items)
    distances = np.arange(1, ceil(scale * sqrt(2 * (40 - log(share)))) + 3)
    chances = tail(plan, distances)
    first = int(np.argmax(chances <= share))
    distance = next(
        distance
        for distance, appears in zip(distances[first:].tolist(), chances[first:].tolist(), strict=True)
        if keeps(divergence, appears=appears, max_items=max_items, epsilon=epsilon, delta=careful)
    )
    return msgspec.structs.replace(plan, threshold=distance + 1)


def _rough_scale(*, epsilon: float, delta: float, max_items: int) -> float:
    """Return a scale that is always enough, for where to look."""
    return sqrt(max_items) * (sqrt(2 * log(2 / delta)) + sqrt(2 * epsilon)) / epsilon


def _is_too_wide(*, epsilon: float, delta: float, max_items: int) -> bool:
    return _rough_scale(epsilon=epsilon, delta=delta, max_items=max_items) * sqrt(max_items) > _WIDEST


def _scale(epsilon: float, max_items: int) -> float:
    """Return the smallest float whose noise on `max_items` counts spends no more than epsilon."""
    scale = max_items / epsilon
    while Fraction(max_items) / Fraction(scale) > Fraction(epsilon):
        scale = nextafter(scale, inf)
    return scale


def _share(scale: float, delta: float, max_items: int) -> float:
    """Return how much of delta one count may spend.

    A count that appears must not give away more by staying out than one that grows does, 1/scale; this matters only
    where delta is not far below epsilon.
    """
    return min(-expm1(log1p(-delta) / max_items), -expm1(-1 / scale)) * _CARE


def _distance(scale: float, share: float) -> int:
    """Return the smallest number, 1 or more, that Laplace noise reaches with no more than this chance."""
    distance = max(1, floor(-scale * log(share * (1 + exp(-1 / scale)))) - 1)
    while laplace_tail(np.array([distance]), scale)[0] > share:
        distance += 1
    return distance


FIRST_ROUND = 0.2
"""The part of the queries' budget that the first of two rounds spends."""


def plans_for(
    *,
    epsilon: float,
    delta: float,
    mechanism: str,
    rounds: int,
    max_queries: int,
    clicks: float,
    max_clicks: int,
) -> tuple[Noise, ...]:
    """The noise of each part of a release, the queries' first; what they spend adds up to no more than the whole.

    >>> plans = plans_for(
    ...     epsilon=1.0, delta=1e-5, mechanism="auto", rounds=2, max_queries=1, clicks=0.5, max_clicks=5
    ... )
    >>> [(plan.what, round(plan.epsilon, 6)) for plan in plans]
    [('queries', 0.1), ('queries', 0.4), ('clicks', 0.5)]
    """
    for_clicks, for_queries = _split((epsilon, delta), clicks)
    if clicks:
        _check_clicks(clicks, whole=(epsilon, delta), first=1.0 if rounds == 1 else FIRST_ROUND)
    parts = [for_queries] if rounds == 1 else list(_split(for_queries, FIRST_ROUND))
    plans = [
        plan_for(mechanism=mechanism, epsilon=part[0], delta=part[1], max_items=max_queries, what="queries")
        for part in parts
    ]
    if clicks:
        plans.append(
            plan_for(
                mechanism=mechanism, epsilon=for_clicks[0], delta=for_clicks[1], max_items=max_clicks, what="clicks"
            )
        )
    return tuple(plans)


def _check_clicks(clicks: float, *, whole: tuple[float, float], first: float) -> None:
    """Raise if it is for this part that the queries or the clicks get less than any noise can do with."""
    for name, amount, least in zip(("epsilon", "delta"), whole, (LEAST_EPSILON, LEAST_DELTA), strict=True):
        for what, share in (("queries", (1 - clicks) * first), ("clicks", clicks)):
            if amount * share < least <= amount * first:
                allowed = f"a part of the budget that leaves the {what} {name} {least:g} or more"
                raise BadParameter("clicks", clicks, allowed=allowed)


def _split(budget: tuple[float, float], share: float) -> tuple[tuple[float, float], tuple[float, float]]:
    epsilons, deltas = (_parts(whole, share) for whole in budget)
    return (epsilons[0], deltas[0]), (epsilons[1], deltas[1])


def _parts(whole: float, share: float) -> tuple[float, float]:
    """Return two floats whose exact sum is not above the whole."""
    first = whole * share
    rest = whole - first
    while Fraction(first) + Fraction(rest) > Fraction(whole):
        rest = nextafter(rest, 0.0)
    return first, rest
