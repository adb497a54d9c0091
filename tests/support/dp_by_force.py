"""What noisy counts give away about one person, by writing down every outcome; for few counts only."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations_with_replacement
from math import exp, log

from queryveil.release import Noise

Chances = dict[int, float]
Outcomes = list[tuple[float, float]]
"""How likely each outcome is without the person, and with them."""

_ABSENT = -(10**12)
_NO_MATTER = 1e-24


def delta_by_force(noise: Noise, *, epsilon: float) -> float:
    """Return the delta that `delta_of` gives, by its definition.

    The counts that a person has a part in are those where something can happen: none, just enough to get noise, just
    below the threshold and at it, and so high above that the noise is seen as it is.

    >>> parts = {"what": "queries", "mechanism": "laplace", "max_items": 1, "scale": 1.0, "threshold": 13}
    >>> laplace = Noise(**parts, epsilon=1.0, delta=1e-5)
    >>> f"{delta_by_force(laplace, epsilon=1.0 + 1e-9):.3g}"
    '4.49e-06'
    """
    chances = noise_by_force(noise)
    high = max(noise.threshold, 0) - min(chances) + noise.least
    counts = sorted({0, noise.least - 1, noise.least, max(noise.threshold - 1, 0), max(noise.threshold, 0), high})
    kinds = [_outcomes(noise, chances, count) for count in counts]
    return max(_delta(each, epsilon) for each in combinations_with_replacement(kinds, noise.max_items))


def noise_by_force(noise: Noise) -> Chances:
    """Return the chance of each value of the noise."""
    reach = int(noise.scale * (11 if noise.mechanism == "gaussian" else 48)) + 3
    if noise.mechanism == "gaussian":
        weights = {z: exp(-(z**2) / (2 * noise.scale**2)) for z in range(-reach, reach + 1)}
    else:
        weights = {z: exp(-abs(z) / noise.scale) for z in range(-reach, reach + 1)}
    if noise.top is not None:
        up, top = noise.shift / 2**32, noise.top
        weights = {
            z: (1 - up) * weights.get(z, 0.0) + up * weights.get(z - 1, 0.0) for z in range(-reach, min(top, reach) + 1)
        }
    whole = sum(sorted(weights.values()))
    return {z: weight / whole for z, weight in weights.items() if weight > 0}


def _seen(noise: Noise, chances: Chances, count: int) -> Chances:
    """Return how likely each outcome is for a count: a noisy count, or nothing."""
    if count < noise.least:
        return {_ABSENT: 1.0}
    seen = defaultdict[int, float](float)
    for z, chance in chances.items():
        seen[count + z if count + z >= noise.threshold else _ABSENT] += chance
    return seen


def _outcomes(noise: Noise, chances: Chances, count: int) -> Outcomes:
    without, present = _seen(noise, chances, count), _seen(noise, chances, count + 1)
    values = {*without, *present}
    # The lowest value of the table stands for all below it, which are there with the person, too.
    lowest = min(chances) + count
    return [(without.get(v, 0.0), present.get(v, 0.0)) for v in values if v != lowest or v in present]


def _delta(counts: Sequence[Outcomes], epsilon: float) -> float:
    """Return the delta of all counts together, of with against without or the other way round."""
    met: dict[float, tuple[float, float]] = {0.0: (1.0, 1.0)}
    only_without, only_with = 0.0, 0.0
    for outcomes in counts:
        only_without = 1 - (1 - only_without) * (1 - sum(a for a, b in outcomes if b == 0))
        only_with = 1 - (1 - only_with) * (1 - sum(b for a, b in outcomes if a == 0))
        steps = [(log(b) - log(a), a, b) for a, b in outcomes if a > 0 and b > 0]
        grown = defaultdict[float, list[float]](lambda: [0.0, 0.0])
        for loss, (x, y) in met.items():
            for step, a, b in steps:
                if max(x * a, y * b) > _NO_MATTER:
                    # Outcomes that say the same are one.
                    both = grown[round(loss + step, 9)]
                    both[0] += x * a
                    both[1] += y * b
        met = {loss: (x, y) for loss, (x, y) in grown.items()}
    more = only_with + sum(max(0.0, y - exp(epsilon) * x) for x, y in met.values())
    less = only_without + sum(max(0.0, x - exp(epsilon) * y) for x, y in met.values())
    return max(more, less)
