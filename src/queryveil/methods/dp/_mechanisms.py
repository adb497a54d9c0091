"""Choose noise and threshold for (epsilon, delta) without looking at data, and say what noise spends.

A person has a part in at most L counts, 1 in each. With them a count either appears (0 becomes 1: it leaves with the
chance q, which no world without them could show) or grows by 1 (two shifted copies of the noise). With j counts of the
first kind and L-j of the second the worst delta at epsilon is the larger of

    1 - (1-q)^j (1 - D(L-j, epsilon - j ln(1-q)))   and   D(L-j, epsilon + j ln(1-q)),

where D(m, e) is what m shifted pairs of bare noise give away at e. The largest over all j is what is spent. So neither
the threshold nor the noise has to do with a half of delta: either may take nearly all of it.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from math import ceil, exp, expm1, floor, inf, log, log1p, nextafter, sqrt
from typing import Literal

import numpy as np
from msgspec.structs import replace

from queryveil.data import Floats, Int64s
from queryveil.errors import BadParameter
from queryveil.methods.settings import DpSettings, Mechanism
from queryveil.release import Noise
from queryveil.settings import settings_of

SHIFTS = 1 << 32
"""A chance of shifting is a whole number of parts of this."""
_SUMS_ARE_ONE_GAUSSIAN = 4.0
"""From this scale on the sum of m discrete Gaussians is one of scale √m as large, but for less than e^-150."""
_NEGLIGIBLE = 30.0
"""What lies beyond the window of a Gaussian is e^-30 of the delta that is asked about; it is added to what is spent."""

Divergence = Callable[[int, float], float]


def laplace_tail(least: Int64s, scale: float) -> Floats:
    """Return the chance that discrete Laplace noise is at least so much.

    >>> laplace_tail(np.array([0, 1]), 1.0).round(4).tolist()
    [0.7311, 0.2689]
    """
    both = 1 + exp(-1 / scale)
    above = np.exp(-np.maximum(least, 1) / scale) / both
    below = 1 - np.exp((np.minimum(least, 0) - 1) / scale) / both
    return np.where(least >= 1, above, below)


def tail(noise: Noise, least: Int64s) -> Floats:
    """Return the chance that the noise is at least so much."""
    least = np.asarray(least, np.int64)
    if noise.mechanism == "gaussian":
        lowest, chances = gaussian(noise.scale, reach=_reach(noise.delta / noise.max_items))
        from_here = np.append(np.cumsum(chances[::-1])[::-1], 0.0)
        return from_here[np.clip(least - lowest, 0, len(chances))]
    if noise.top is None:
        return laplace_tail(least, noise.scale)
    shift = noise.shift / SHIFTS

    def untruncated(z: Int64s) -> Floats:
        return (1 - shift) * laplace_tail(z, noise.scale) + shift * laplace_tail(z - 1, noise.scale)

    above = untruncated(np.array([noise.top + 1]))
    near = np.where(least > noise.top, 0.0, untruncated(least) - above)
    return np.maximum(near, 0.0) / (1 - above)


def release_chance(noise: Noise, counts: Int64s) -> Floats:
    """Return the chance with which a query of each count leaves."""
    counts = np.asarray(counts, np.int64)
    return np.where(counts >= noise.least, tail(noise, noise.threshold - counts), 0.0)


def half_count(noise: Noise) -> float:
    """The count that leaves with the chance 1/2, with a fraction from its neighbours: the smaller, the better."""
    counts = range(2 * noise.threshold + ceil(noise.scale))
    first = bisect_left(counts, 0.5, lo=1, key=lambda count: release_chance(noise, np.array([count]))[0])
    below, above = release_chance(noise, np.array([first - 1, first]))
    return float(first - 1 + (0.5 - below) / (above - below))


def top_chance(scale: float, top: int, shift: float) -> float:
    """Return the chance that truncated noise is at its top, which is what one count gives away."""
    a, one_less = exp(-1 / scale), -expm1(-1 / scale)
    up = (1 - shift) * a + shift
    return one_less * exp(-(top - 1) / scale) * up / (1 + a - exp(-top / scale) * up)


def gaussian(scale: float, *, n_terms: int = 1, reach: float) -> tuple[int, Floats]:
    """Return the smallest value and the chances of a sum of discrete Gaussians, out to `reach` standard deviations."""
    if n_terms == 1 or scale >= _SUMS_ARE_ONE_GAUSSIAN:
        spread = scale * sqrt(n_terms)
        most = ceil(reach * spread) + 1
        values = np.arange(-most, most + 1)
        chances = np.exp(-(values.astype(np.float64) ** 2) / (2 * spread * spread))
        return -most, chances / chances.sum()
    halves = gaussian(scale, n_terms=n_terms // 2, reach=reach)[1]
    chances = np.convolve(halves, halves)
    if n_terms % 2:
        chances = np.convolve(chances, gaussian(scale, reach=reach)[1])
    most = min(ceil(reach * scale * sqrt(n_terms)) + 1, len(chances) // 2)
    middle = len(chances) // 2
    return -most, chances[middle - most : middle + most + 1]


def gaussian_divergence(scale: float, *, delta: float) -> Divergence:
    """Return D of the discrete Gaussian: exact, for a sum's loss rises evenly with the sum; `delta` sets the care."""

    def divergence(n_pairs: int, epsilon: float) -> float:
        if n_pairs == 0:
            return max(0.0, -expm1(epsilon))
        reach = _reach(delta / n_pairs)
        lowest, chances = gaussian(scale, n_terms=n_pairs, reach=reach)
        first = ceil(epsilon * scale * scale - n_pairs / 2)
        start = max(0, first - lowest)
        sums = np.arange(lowest + start, lowest + len(chances))
        loss = (2.0 * sums + n_pairs) / (2 * scale * scale)
        beyond = 4 * n_pairs * exp(-reach * reach / 2)
        return float(np.sum(chances[start:] * np.maximum(0.0, -np.expm1(epsilon - loss)))) + beyond

    return divergence


def _reach(delta: float) -> float:
    return sqrt(2 * (_NEGLIGIBLE - log(delta)))


def keeps(divergence: Divergence, *, appears: float, max_items: int, epsilon: float, delta: float) -> bool:
    """Return whether no number of appearing counts spends more than delta; many are judged at once where possible."""

    def holds(fewest: int, most: int) -> bool:
        # More counts that grow give away more, and so do more that appear.
        loss_least, loss_most = fewest * log1p(-appears), most * log1p(-appears)
        seen = -expm1(loss_most) + exp(loss_most) * divergence(max_items - fewest, epsilon - loss_least)
        if max(seen, divergence(max_items - fewest, epsilon + loss_most)) <= delta:
            return True
        middle = (fewest + most) // 2
        return fewest < most and holds(fewest, middle) and holds(middle + 1, most)

    return holds(0, max_items)


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

    The mechanism `auto` is the one by which the smallest counts leave with the chance 1/2; no data is looked at.

    >>> plan = plan_for(mechanism="laplace", epsilon=1.0, delta=1e-5, max_items=1)
    >>> plan.scale, plan.threshold
    (1.0, 13)
    >>> [plan_for(epsilon=1.0, delta=1e-5, max_items=n).mechanism for n in (1, 5)]
    ['truncated-geometric', 'gaussian']
    """
    if epsilon < LEAST_EPSILON:
        raise BadParameter("epsilon", epsilon, allowed=f"{LEAST_EPSILON} or more in each part of a release")
    if delta < LEAST_DELTA:
        raise BadParameter("delta", delta, allowed=f"{LEAST_DELTA} or more in each part of a release")
    chosen: Mechanism = settings_of(DpSettings)["mechanism"].check(mechanism)
    scale = _scale(epsilon, max_items)
    laplace = Noise(
        what=what, mechanism="laplace", max_items=max_items, scale=scale, threshold=1, epsilon=epsilon, delta=delta
    )
    is_too_wide = _rough_scale(laplace) * sqrt(max_items) > _WIDEST
    match chosen:
        case Mechanism.AUTO:
            # Laplace noise is never better than truncated geometric, and zealous never better than Laplace.
            truncated = _truncated_geometric(laplace)
            return truncated if is_too_wide else min(truncated, _gaussian(laplace), key=half_count)
        case Mechanism.TRUNCATED_GEOMETRIC:
            return _truncated_geometric(laplace)
        case Mechanism.GAUSSIAN:
            if is_too_wide:
                raise BadParameter("epsilon", epsilon, allowed="larger for gaussian noise on so many counts")
            return _gaussian(laplace)
        case Mechanism.LAPLACE:
            return replace(laplace, threshold=1 + _distance(laplace))
        case Mechanism.ZEALOUS:
            return _zealous(laplace)


def _zealous(laplace: Noise) -> Noise:
    """Götz et al.: counts below a first threshold never leave, the others get noise and a second threshold."""
    # Paper: noise of 2m/epsilon, and the first threshold that makes the second smallest.
    # Differs: the paper's second threshold has the number of users in it, which is itself a secret here; ours is
    # accounted for as that of the other kinds of noise.
    scale = _scale(laplace.epsilon, 2 * laplace.max_items)
    plan = replace(laplace, mechanism="zealous", scale=scale, least=ceil(scale))
    return replace(plan, threshold=plan.least + _distance(plan))


def _truncated_geometric(laplace: Noise) -> Noise:
    """Desfontaines et al.'s optimal selection, made by noise, so that the noisy count may leave at no extra cost.

    Laplace noise, pushed up by one with a chance that brings the chance of the top value to what delta allows.
    """
    # Paper: epsilon' = epsilon/L0, delta' = 1-(1-delta)^(1/L0).
    scale, share = laplace.scale, _share(laplace)
    a = exp(-1 / scale)
    top = max(1, floor(scale * log((-expm1(-1 / scale) / share + a) / (1 + a))) - 1)
    while top_chance(scale, top, 0.0) > share:
        top += 1
    shift = bisect_right(range(SHIFTS), share, lo=1, key=lambda parts: top_chance(scale, top, parts / SHIFTS)) - 1
    return replace(laplace, mechanism="truncated-geometric", threshold=top + 1, top=top, shift=shift)


def _gaussian(laplace: Noise) -> Noise:
    epsilon, delta, max_items = laplace.epsilon, laplace.delta, laplace.max_items
    careful = delta * _CARE
    low, high = 0.05, 2 * _rough_scale(laplace) + 1
    while high - low > max(0.25 / _DIGITS, high * 1e-7):
        middle = (low + high) / 2
        fits = gaussian_divergence(middle, delta=delta)(max_items, epsilon) <= careful
        low, high = (low, middle) if fits else (middle, high)
    scale = ceil(high * _DIGITS) / _DIGITS
    divergence = gaussian_divergence(scale, delta=delta)
    plan = replace(laplace, mechanism="gaussian", scale=scale)
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
    return replace(plan, threshold=distance + 1)


def _rough_scale(noise: Noise) -> float:
    """Return a scale that is always enough for Gaussian noise, for where to look."""
    return sqrt(noise.max_items) * (sqrt(2 * log(2 / noise.delta)) + sqrt(2 * noise.epsilon)) / noise.epsilon


def _scale(epsilon: float, max_items: int) -> float:
    """Return the smallest float whose noise on `max_items` counts spends no more than epsilon."""
    scale = max_items / epsilon
    while Fraction(max_items) / Fraction(scale) > Fraction(epsilon):
        scale = nextafter(scale, inf)
    return scale


def _share(noise: Noise) -> float:
    """Return how much of delta one count may spend."""
    # A count that appears must not give away more by staying out than one that grows does, 1/scale; this matters only
    # where delta is not far below epsilon.
    return min(-expm1(log1p(-noise.delta) / noise.max_items), -expm1(-1 / noise.scale)) * _CARE


def _distance(noise: Noise) -> int:
    """Return the smallest number, 1 or more, that Laplace noise reaches with no more than its share of delta."""
    scale, share = noise.scale, _share(noise)
    distance = max(1, floor(-scale * log(share * (1 + exp(-1 / scale)))) - 1)
    while laplace_tail(np.array([distance]), scale)[0] > share:
        distance += 1
    return distance


FIRST_ROUND = 0.2
"""The part of the queries' budget that the first of two rounds spends."""


def plans_for(settings: DpSettings) -> tuple[Noise, ...]:
    """Return the noise of each part of a release, the queries' first; together they spend no more than the whole.

    >>> plans = plans_for(DpSettings(rounds=2, max_queries=1, clicks=0.5))
    >>> [(plan.what, round(plan.epsilon, 6)) for plan in plans]
    [('queries', 0.1), ('queries', 0.4), ('clicks', 0.5)]
    """
    whole, clicks = (settings.epsilon, settings.delta), settings.clicks
    for_clicks, for_queries = _split(whole, clicks)
    if clicks:
        _check_clicks(clicks, whole=whole, first=1.0 if settings.rounds == 1 else FIRST_ROUND)
    rounds = [for_queries] if settings.rounds == 1 else list(_split(for_queries, FIRST_ROUND))
    parts = [(part, settings.max_queries, "queries") for part in rounds]
    if clicks:
        parts.append((for_clicks, settings.max_clicks, "clicks"))
    return tuple(
        plan_for(mechanism=settings.mechanism, epsilon=epsilon, delta=delta, max_items=most, what=what)
        for (epsilon, delta), most, what in parts
    )


def _check_clicks(clicks: float, *, whole: tuple[float, float], first: float) -> None:
    """Raise if it is for this part that the queries or the clicks get less than any noise can do with."""
    for name, amount, least in zip(("epsilon", "delta"), whole, (LEAST_EPSILON, LEAST_DELTA), strict=True):
        for what, share in (("queries", (1 - clicks) * first), ("clicks", clicks)):
            if amount * share < least <= amount * first:
                allowed = f"a part of the budget that leaves the {what} {name} {least:g} or more"
                raise BadParameter("clicks", clicks, allowed=allowed)


def _split(budget: tuple[float, float], share: float) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return two parts of a budget whose exact sum is not above it."""
    first = budget[0] * share, budget[1] * share
    return first, (_rest(budget[0], first[0]), _rest(budget[1], first[1]))


def _rest(whole: float, first: float) -> float:
    rest = whole - first
    while Fraction(first) + Fraction(rest) > Fraction(whole):
        rest = nextafter(rest, 0.0)
    return rest
