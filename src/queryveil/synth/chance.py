"""Draws from heavy-tailed tables, many at a time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def mandelbrot(n: int, *, power: float, offset: float) -> Floats:
    """Give the cumulative Zipf-Mandelbrot chances of ranks 0 to n-1: (rank + 1 + offset) ** -power.

    >>> [round(float(x), 2) for x in mandelbrot(3, power=1.0, offset=0.0)]
    [0.55, 0.82, 1.0]
    """
    weights = (np.arange(1, n + 1) + offset) ** -power
    cumulative: Floats = np.cumsum(weights) / weights.sum()
    cumulative[-1] = 1.0
    return cumulative


def ranks(cumulative: Floats, uniform: Floats) -> Ints:
    """Turn uniform numbers below 1 into ranks with the given cumulative chances."""
    return np.searchsorted(cumulative, uniform, side="right").astype(np.int64)


def history_lengths(rng: np.random.Generator, *, users: int, mean: float, most: int, power: float) -> Ints:
    """Draw how many rows each user has: heavy-tailed, with the given mean and largest value.

    The uniform numbers are spread evenly, so the sum hardly depends on the seed.
    """
    low, high = 0.0, 200.0
    for _ in range(60):
        offset = (low + high) / 2
        cumulative = mandelbrot(most, power=power, offset=offset)
        expected = most - cumulative[:-1].sum()
        low, high = (offset, high) if expected < mean else (low, offset)
    even = (rng.permutation(users) + 0.5) / users
    return ranks(cumulative, even) + 1


def within(values: Ints, starts: Ints, group: Ints) -> Ints:
    """Give the running sum of values within each group; `starts` are the groups' first rows.

    >>> within(np.array([1, 1, 1, 1]), np.array([0, 2]), np.array([0, 0, 1, 1])).tolist()
    [1, 2, 1, 2]
    """
    total = np.cumsum(values)
    return total - (total[starts] - values[starts])[group]
