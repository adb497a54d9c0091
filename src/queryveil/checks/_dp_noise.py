"""Compute the delta of noisy counts at an epsilon from the mechanism, scale and threshold of the noise.

A person has a part in at most n counts. Of these, j are new: without the person there is no such count, with them it
leaves with a chance q. The others are there either way, and one higher with the person; in the worst case they are so
large that the noise is seen as it is. The delta at an epsilon is the largest over all j, and over who is the likelier.
"""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, erfc, exp, expm1, floor, inf, log, log1p, pi, sqrt

import numpy as np
import numpy.typing as npt

from queryveil.release import Noise

Floats = npt.NDArray[np.float64]

_SMOOTH = 2.0
"""From this scale on, a sum of discrete Gaussians is one itself: they differ by less than exp(-pi² scale²)."""
_LARGE = 1e5
"""From this scale on, sums over whole numbers are integrals."""
_FAR = 12.0
"""So many scales away from 0 nothing is left that counts."""
_MOST_EXACT = 2000
_MOST_OF_THREE = 200
"""Outcomes of three kinds are as many as the square of this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaussian:
    """Whole numbers whose chance falls with exp(-z²/(2 scale²))."""

    scale: float

    def at_least(self, value: int) -> float:
        """Return the chance that the noise is at least so large."""
        if value <= 0:
            return 1.0 - self.at_least(1 - value)
        if value > 2 * _FAR * self.scale + 1:
            return 0.0
        if self.scale > _LARGE:
            return _normal_above((value - 0.5) / self.scale)
        return float(_gaussian_chances(_upwards(value, self.scale), scale=self.scale, n=1).sum())

    def beyond(self, n: int, epsilon: float) -> tuple[float, float]:
        """Return the delta of n counts at an epsilon; by symmetry it is the same either way."""
        delta = _nothing(epsilon) if n == 0 else self._beyond(n, epsilon)
        return delta, delta

    def _beyond(self, n: int, epsilon: float) -> float:
        # The logarithm of how much likelier an outcome is depends on the sum of the noise alone.
        reach = self.scale * sqrt(n)
        first = max(floor(epsilon * self.scale**2 - n / 2) + 1, -int(2 * _FAR * reach) - 1)
        if first > 2 * _FAR * reach + 1:
            return 0.0
        if n > _MOST_EXACT and self.scale < _SMOOTH:
            # Never too little; so many counts with so little noise keep no epsilon that could be promised.
            return 1.0
        if reach > _LARGE:
            apart = n / reach
            away = epsilon / apart
            return _normal_above(away - apart / 2) - exp(min(epsilon, 700.0)) * _normal_above(away + apart / 2)
        sums = _upwards(first, reach)
        loss = (2 * sums + n) / (2 * self.scale**2)
        chances = _gaussian_chances(sums, scale=self.scale, n=n)
        return float((chances * -np.expm1(np.minimum(epsilon - loss, 0))).sum())


def _normal_above(value: float) -> float:
    return erfc(value / sqrt(2)) / 2


def _upwards(first: int, reach: float) -> Floats:
    """Return whole numbers from the first on, until nothing is left that counts."""
    return np.arange(first, max(first, 0) + int(_FAR * reach) + 40, dtype=np.float64)


def _gaussian_chances(values: Floats, *, scale: float, n: int) -> Floats:
    """Return the chances that the sum of n discrete Gaussians is each of these whole numbers."""
    reach = scale * sqrt(n)
    if scale >= _SMOOTH:
        density: Floats = np.exp(-(values**2) / (2 * reach**2)) / (reach * sqrt(2 * pi))
        return density
    far = int(2 * _FAR * scale) + 40
    power = np.exp(-(np.arange(-far, far + 1, dtype=np.float64) ** 2) / (2 * scale**2))
    power /= power.sum()
    table, left = np.ones(1), n
    while left:
        if left % 2:
            table = _trimmed(np.convolve(table, power), reach=2 * _FAR * reach + 40)
        power, left = _trimmed(np.convolve(power, power), reach=2 * _FAR * reach + 40), left // 2
    places = values.astype(np.int64) + table.size // 2
    inside = (places >= 0) & (places < table.size)
    return np.where(inside, table[np.clip(places, 0, table.size - 1)], 0.0)


def _trimmed(table: Floats, *, reach: float) -> Floats:
    surplus = max(0, table.size // 2 - int(reach) - 2)
    return table[surplus : table.size - surplus]


@dataclass(frozen=True, slots=True, kw_only=True)
class Geometric:
    """Whole numbers whose chance falls with exp(-|z|/scale), plus 1 at times, drawn again while above a top.

    A top is 1 or more, and a scale so large that exp(-1/scale) is a number.
    """

    scale: float
    shift: float
    top: int | None

    def at_least(self, value: int) -> float:
        """Return the chance that the noise is at least so large."""
        if self.top is None:
            return self._drawn(value)
        if value > self.top:
            return 0.0
        up_to_top = 1 - self._drawn(self.top + 1)
        return self._drawn(value, before=self.top + 1) / up_to_top

    def _drawn(self, value: int, *, before: float = inf) -> float:
        """Return the chance that what is drawn first is at least so large, but less than `before`."""
        return (1 - self.shift) * self._plain(value, before) + self.shift * self._plain(value - 1, before - 1)

    def _plain(self, value: int, before: float) -> float:
        ratio = exp(-1 / self.scale)
        if value >= 1:
            return exp(-value / self.scale) * -expm1((value - before) / self.scale) / (1 + ratio)
        if before <= 1:
            return exp((before - 1) / self.scale) * -expm1((value - before) / self.scale) / (1 + ratio)
        return 1 - (exp((value - 1) / self.scale) + exp(-before / self.scale)) / (1 + ratio)

    def beyond(self, n: int, epsilon: float) -> tuple[float, float]:
        """Return the delta of n counts at an epsilon.

        One outcome more is exp(1/scale) times as likely if it is above 1, exp(-1/scale) if it is 0 or less; only 1 is
        in between, where noise is shifted. What is above the top was one more for certain.
        """
        certain = 0.0 if self.top is None else self.at_least(self.top)
        # What is 1 or more with the person is 0 or more without.
        high = self.at_least(1) - certain
        slope, ratio, up, stay = 1 / self.scale, exp(-1 / self.scale), 1 - self.shift, self.shift
        # By sums alone: what is left of 1 is nothing where noise is small, and there it tells most.
        at_0, at_1 = up + stay * ratio, up * ratio + stay
        whole = (1 + ratio) * (1.0 if self.top is None else 1 - self._drawn(self.top + 1))
        drop = -expm1(-slope)
        losses = (slope, log(at_0 / at_1), -slope)
        more = (high, at_0 * drop / whole, at_0 * ratio / whole)
        less = (high * ratio, at_1 * drop / whole, at_0 / whole)
        return (
            _mixed(losses, more, n=n, epsilon=epsilon, certain=certain),
            _mixed(tuple(-loss for loss in losses), less, n=n, epsilon=epsilon, certain=0.0),
        )


def _nothing(epsilon: float) -> float:
    """Return the delta of nothing at all at an epsilon that may be negative."""
    return 0.0 if epsilon >= 0 else -expm1(epsilon)


def _mixed(losses: tuple[float, ...], shares: tuple[float, ...], *, n: int, epsilon: float, certain: float) -> float:
    """Return the delta of n outcomes, each of which is one of three or gives all away."""
    if n == 0:
        return _nothing(epsilon)
    told = -expm1(n * log1p(-certain)) if certain < 1 else 1.0
    if n * max(losses) <= epsilon or told == 1:
        return told
    (first, second, third), (one, two, three) = losses, shares
    if abs(second - first) < _CLOSE or (n > _MOST_OF_THREE and first > third):
        one, two = one + two, 0.0
    elif n > _MOST_OF_THREE:
        # Of very many, the middle one counts as the most telling one: never too little.
        two, three = 0.0, two + three
    factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])
    ones = np.arange(n + 1)[None, :]
    twos = np.arange(n + 1 if two > 0 else 1)[:, None]
    threes = n - ones - twos
    possible = threes >= 0
    rest = np.maximum(threes, 0)
    logs = factorials[n] - factorials[ones] - factorials[twos] - factorials[rest]
    for number, share in ((ones, one), (twos, two), (rest, three)):
        logs = logs + np.where(number > 0, number * log(share) if share > 0 else -inf, 0.0)
    loss = ones * first + twos * second + rest * third
    chances = np.where(possible, np.exp(logs), 0.0)
    return told + float((chances * -np.expm1(np.minimum(epsilon - loss, 0))).sum())


_MOST_ITEMS = 1000
_LEAST_SCALE = 1 / 200
"""Half of what the largest epsilon needs for one count; far less has chances that no float holds."""
_MOST_SCALE = 1e9
_MOST_EPSILON = 100
_MOST_COUNT = 10**15
_SHIFTS = 2**32
_CLOSE = 1e-12
_NEVER = 1e-12
"""What is less likely than this has not happened."""
_FARTHEST = 30.0
"""So many scales away no noise is as likely."""


def is_known(noise: Noise) -> bool:
    """Return whether the values are such that a mechanism has them."""
    truncated, zealous = noise.mechanism == "truncated-geometric", noise.mechanism == "zealous"
    return (
        1 <= noise.max_items <= _MOST_ITEMS
        and _LEAST_SCALE <= noise.scale <= _MOST_SCALE
        and 0 <= noise.epsilon <= _MOST_EPSILON
        and 0 <= noise.delta <= 1
        and (noise.least >= 1 if zealous else noise.least == 1)
        and ((noise.top is not None and noise.top >= 1) if truncated else noise.top is None)
        and (0 <= noise.shift < _SHIFTS if truncated else noise.shift == 0)
        and all(abs(value) <= _MOST_COUNT for value in (noise.threshold, noise.top or 0, noise.least))
    )


def delta_of(
    noise: Noise, *, epsilon: float, stated: float | None = None, bare: Gaussian | Geometric | None = None
) -> float:
    """Return the smallest delta that the noise keeps at an epsilon; `bare` is the noise by itself, if it is known.

    Where one is `stated`, what is given may be less than the delta, but is above the stated one just if the delta is.

    >>> parts = {"what": "queries", "mechanism": "laplace", "max_items": 1, "scale": 1.0, "threshold": 13}
    >>> laplace = Noise(**parts, epsilon=1.0, delta=1e-5)
    >>> f"{delta_of(laplace, epsilon=1.0):.3g}"
    '4.49e-06'
    """
    bare, n = bare or bare_noise(noise), noise.max_items
    new = bare.at_least(noise.threshold - noise.least)
    if new >= 1:
        return 1.0
    kept = log1p(-new)

    def bound(first: int, last: int) -> float:
        """Bound the delta where `first` to `last` of n counts are new, exactly if these are the same."""
        more, _ = bare.beyond(n - first, epsilon - first * kept)
        _, less = bare.beyond(n - first, epsilon + last * kept)
        return max(-expm1(last * kept) + exp(last * kept) * more, less)

    return _largest(bound, 0, n, found=max(bound(0, 0), bound(n, n)), stated=stated)


def _largest(bound: Callable[[int, int], float], first: int, last: int, *, found: float, stated: float | None) -> float:
    """Return the largest delta for any number of new counts, skipping where it cannot be or need not be known."""
    if stated is not None and found > stated:
        return found
    highest = bound(first, last)
    if highest <= max(found * (1 + _CLOSE), stated or 0.0):
        return found
    if first == last:
        return highest
    middle = (first + last) // 2
    found = _largest(bound, middle + 1, last, found=found, stated=stated)
    return _largest(bound, first, middle, found=found, stated=stated)


def most_of(noise: Noise) -> int:
    """Return the largest value that the noise can be expected to have in any release: its top, or 1 in 1e12."""
    if noise.top is not None:
        return noise.top
    bare, values = bare_noise(noise), range(ceil(_FARTHEST * noise.scale) + 1)
    return bisect_left(values, True, key=lambda value: bare.at_least(value) < _NEVER) - 1


def bare_noise(noise: Noise) -> Gaussian | Geometric:
    """Return the noise of a part by itself."""
    if noise.mechanism == "gaussian":
        return Gaussian(scale=noise.scale)
    return Geometric(scale=noise.scale, shift=noise.shift / _SHIFTS, top=noise.top)
