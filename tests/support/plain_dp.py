"""Differential privacy by its definition: all that could come out, with a person and without, one by one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from math import exp, log

from queryveil.release import Noise

_NOTHING = 1e-24


def plain_chances(noise: Noise) -> dict[int, float]:
    """Return the chance of each value of the noise as its description says, where it is not next to nothing."""
    most = int(noise.scale * (11 if noise.mechanism == "gaussian" else 55)) + 2
    values = range(-most, most + 1)
    if noise.mechanism == "gaussian":
        weights = {z: exp(-z * z / (2 * noise.scale**2)) for z in values}
    else:
        weights = {z: exp(-abs(z) / noise.scale) for z in values}
    if noise.top is not None:
        up = noise.shift / 2**32
        shifted: dict[int, float] = defaultdict(float)
        for z, weight in weights.items():
            shifted[z] += (1 - up) * weight
            shifted[z + 1] += up * weight
        weights = {z: weight for z, weight in shifted.items() if z <= noise.top}
    total = sum(sorted(weights.values()))
    return {z: weight / total for z, weight in weights.items() if weight / total > _NOTHING}


def plain_outcomes(noise: Noise, count: int) -> dict[int | None, float]:
    """Return the chance of each noisy count that can leave, and of none, for one true count."""
    if count < noise.least:
        return {None: 1.0}
    outcomes: dict[int | None, float] = defaultdict(float)
    for z, chance in plain_chances(noise).items():
        outcomes[count + z if count + z >= noise.threshold else None] += chance
    return outcomes


def plain_delta(noise: Noise, *, without: Iterable[int], epsilon: float) -> float:
    """Return the delta at epsilon of one person with one part in each of these counts, which are those without them.

    >>> noise = Noise(what="queries", mechanism="laplace", max_items=1, scale=1.0, threshold=13, epsilon=1, delta=1e-5)
    >>> f"{plain_delta(noise, without=[0], epsilon=1.0):.3g}"
    '4.49e-06'
    """
    # By how much likelier outcomes are with the person, as a logarithm: their chances with and without.
    joint: dict[float, tuple[float, float]] = {0.0: (1.0, 1.0)}
    seen_with = seen_without = 0.0
    for count in without:
        absent, present = plain_outcomes(noise, count), plain_outcomes(noise, count + 1)
        pairs = [(present.get(each, 0.0), absent.get(each, 0.0)) for each in {*absent, *present}]
        seen_with = 1 - (1 - seen_with) * (1 - sum(a for a, b in pairs if not b))
        seen_without = 1 - (1 - seen_without) * (1 - sum(b for a, b in pairs if not a))
        wider: dict[float, tuple[float, float]] = {}
        for ratio, (p, q) in joint.items():
            for a, b in pairs:
                if a and b and (p * a > _NOTHING or q * b > _NOTHING):
                    key = round(ratio + log(a) - log(b), 8)
                    old = wider.get(key, (0.0, 0.0))
                    wider[key] = (old[0] + p * a, old[1] + q * b)
        joint = wider
    factor = exp(epsilon)
    more = seen_with + sum(max(0.0, p - factor * q) for p, q in joint.values())
    return max(more, seen_without + sum(max(0.0, q - factor * p) for p, q in joint.values()))
