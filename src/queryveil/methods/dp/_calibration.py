"""Probabilities of noise, and the delta of thresholded noise at an epsilon.

A person has a part in at most L counts, 1 in each. With them a count either appears (0 becomes 1: it leaves with the
chance q, which no world without them could show) or grows by 1 (two shifted copies of the noise). With j counts of the
first kind and L-j of the second the worst delta at epsilon is the larger of

    1 - (1-q)^j (1 - D(L-j, epsilon - j ln(1-q)))   and   D(L-j, epsilon + j ln(1-q)),

where D(m, e) is what m shifted pairs of bare noise give away at e. The largest over all j is what is spent. So neither
the threshold nor the noise has to do with a half of delta: either may take nearly all of it.
"""

from collections.abc import Callable
from math import ceil, exp, expm1, log, log1p, sqrt

import numpy as np

from queryveil.data import Floats, Int64s
from queryveil.release import Noise

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
    low, high = 0, 2 * noise.threshold + ceil(noise.scale)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if release_chance(noise, np.array([middle]))[0] >= 0.5 else (middle, high)
    below, above = release_chance(noise, np.array([low, high]))
    return float(low + (0.5 - below) / (above - below))


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
    """Return whether no number of appearing counts spends more than delta.

    Many numbers are judged at once where that is enough: more counts that grow give away more, and so do more that
    appear.
    """

    def holds(fewest: int, most: int) -> bool:
        loss_least, loss_most = fewest * log1p(-appears), most * log1p(-appears)
        seen = -expm1(loss_most) + exp(loss_most) * divergence(max_items - fewest, epsilon - loss_least)
        if max(seen, divergence(max_items - fewest, epsilon + loss_most)) <= delta:
            return True
        middle = (fewest + most) // 2
        return fewest < most and holds(fewest, middle) and holds(middle + 1, most)

    return holds(0, max_items)
