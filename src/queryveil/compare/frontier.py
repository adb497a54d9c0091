"""Which runs no other run beats, and which one is best under a limit."""

from __future__ import annotations

from collections.abc import Sequence


def frontier(points: Sequence[tuple[float, float]]) -> list[int]:
    """Give the places of the points that no other has less exposure and more utility than, by exposure.

    A point is an exposure (less is better) and a utility (more is better). One that is as good in one and better in the
    other beats it; of equal ones all stay.

    >>> frontier([(0.5, 0.9), (0.1, 0.4), (0.6, 0.8), (0.1, 0.3)])
    [1, 0]
    """
    order = sorted(range(len(points)), key=lambda i: (points[i][0], -points[i][1]))
    kept: list[int] = []
    best = float("-inf")
    for i in order:
        if points[i][1] > best or (kept and points[i] == points[kept[-1]]):
            kept.append(i)
            best = points[i][1]
    return kept
