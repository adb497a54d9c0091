"""What noisy counts give away about one person, worked out from how the noise was added.

A person has a part in at most n counts. Of these, j are new: without the person there is no such count, with them it
leaves with a chance q. The others are there either way, and one higher with the person; in the worst case they are so
large that the noise is seen as it is. The delta at an epsilon is the largest over all j, and over who is the likelier.
"""

from __future__ import annotations

from functools import partial
from math import ceil, exp, expm1, log1p
from typing import Protocol

from queryveil.release import Noise
from queryveil.verify.dp_bare import Gaussian, Geometric

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
    """Say whether the values are such that a mechanism has them."""
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


def delta_of(noise: Noise, *, epsilon: float, stated: float | None = None) -> float:
    """Give the smallest delta that the noise keeps at an epsilon.

    Where one is `stated` it need only be known whether that is exceeded: what is given is then no more than the delta,
    and above the stated one if and only if the delta is.

    >>> parts = {"what": "queries", "mechanism": "laplace", "max_items": 1, "scale": 1.0, "threshold": 13}
    >>> laplace = Noise(**parts, epsilon=1.0, delta=1e-5)
    >>> f"{delta_of(laplace, epsilon=1.0):.3g}"
    '4.49e-06'
    """
    return largest_delta(bare_noise(noise), noise, epsilon=epsilon, stated=stated)


def largest_delta(bare: Gaussian | Geometric, noise: Noise, *, epsilon: float, stated: float | None = None) -> float:
    """Give `delta_of` for noise that by itself is `bare`."""
    new = bare.at_least(noise.threshold - noise.least)
    if new >= 1:
        return 1.0
    kept = log1p(-new)
    at = partial(_between, bare, noise.max_items, epsilon, kept)
    found = max(at(0, 0), at(noise.max_items, noise.max_items))
    return _largest(at, 0, noise.max_items, found=found, stated=stated)


class _Bound(Protocol):
    def __call__(self, first: int, last: int, /) -> float: ...


def _between(bare: Gaussian | Geometric, n: int, epsilon: float, kept: float, first: int, last: int) -> float:
    """Bound the delta where `first` to `last` of n counts are new, exactly if these are the same."""
    more, _ = bare.beyond(n - first, epsilon - first * kept)
    _, less = bare.beyond(n - first, epsilon + last * kept)
    return max(-expm1(last * kept) + exp(last * kept) * more, less)


def _largest(bound: _Bound, first: int, last: int, *, found: float, stated: float | None) -> float:
    """Give the largest delta for any number of new counts, without looking where it cannot be or need not be known."""
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
    """Give the largest value that the noise can be expected to have in any release: its top, or 1 in 1e12."""
    bare, low, high = bare_noise(noise), 0, ceil(_FARTHEST * noise.scale) + 1
    if noise.top is not None:
        return noise.top
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if bare.at_least(middle) >= _NEVER else (low, middle)
    return low


def bare_noise(noise: Noise) -> Gaussian | Geometric:
    """Give the noise of a part by itself."""
    if noise.mechanism == "gaussian":
        return Gaussian(scale=noise.scale)
    return Geometric(scale=noise.scale, shift=noise.shift / _SHIFTS, top=noise.top)
