"""Place labels of a chart without overlap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import cos, pi, sin

import numpy as np
from numpy.typing import NDArray

Point = tuple[float, float]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_FORBIDDEN = 1000.0
_CROSSED, _PASSED, _NEARER, _COVERED = 120.0, 80.0, 25.0, 15.0
"""What these cost, in pixels of a longer way: to cross another way, to pass another dot; a box that is nearer to
another dot, or on a line."""
_N_SWEEPS = 5


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle: its left, top, right and bottom."""

    left: float
    top: float
    right: float
    bottom: float

    def holds(self, point: Point) -> bool:
        """Return whether a point lies in this box."""
        return self.left <= point[0] <= self.right and self.top <= point[1] <= self.bottom

    def nearest(self, point: Point) -> Point:
        """Return the point of this box that is nearest to another."""
        return min(max(point[0], self.left), self.right), min(max(point[1], self.top), self.bottom)


def apart(places: Sequence[float], *, gap: float, low: float, high: float) -> list[float]:
    """Move places along one axis until they are `gap` apart, as little as possible and in their order.

    Between `low` and `high` if there is room, else they go on below.

    >>> apart([10, 12, 50], gap=10, low=0, high=100)
    [6.0, 16.0, 50.0]
    """
    order = sorted(range(len(places)), key=lambda i: places[i])
    # Blocks of neighbours that touch: each stands around the mean of what its members wish for.
    blocks: list[tuple[float, int]] = []
    for i in order:
        middle, n = min(max(places[i], low), high), 1
        while blocks and blocks[-1][0] + gap * (blocks[-1][1] + n) / 2 > middle:
            before, m = blocks.pop()
            middle, n = (before * m + middle * n) / (m + n), m + n
            middle = max(min(middle, high - gap * (n - 1) / 2), low + gap * (n - 1) / 2)
        blocks.append((middle, n))
    spread = [middle + gap * (j - (n - 1) / 2) for middle, n in blocks for j in range(n)]
    found = [0.0] * len(places)
    for i, place in zip(order, spread, strict=True):
        found[i] = place
    return found


def around(
    points: Sequence[Point],
    *,
    sizes: Sequence[tuple[float, float]],
    area: Box,
    taken: Sequence[Box] = (),
    way: Sequence[Point] = (),
    radius: float = 7.0,
) -> list[Box] | None:
    """Find a box of its own near each point, off all points, boxes and what is `taken`; None if there is no room.

    Boxes keep off the line `way` if they can. Each label in turn takes the best place that the others leave it, those
    in the thick first, and after a few turns nobody moves.
    """
    search = _Search(points, sizes, area=area, taken=taken, way=way, radius=radius)
    at = np.array(points, np.float64).reshape(-1, 2)
    crowd = [int((np.hypot(*(at - here).T) < 60).sum()) for here in at]
    order = sorted(range(len(points)), key=lambda i: (-crowd[i], points[i]))
    for _ in range(_N_SWEEPS):
        if not sum([search.move(i) for i in order]):
            break
    if any(search.cost(i) >= _FORBIDDEN for i in order):
        return None
    return [Box(*(float(side) for side in box)) for box in search.boxes]


class _Search:
    """The boxes so far, and what each would cost elsewhere; a box that is not there yet is NaN."""

    def __init__(
        self,
        points: Sequence[Point],
        sizes: Sequence[tuple[float, float]],
        *,
        area: Box,
        taken: Sequence[Box],
        way: Sequence[Point],
        radius: float,
    ) -> None:
        self.points = np.array(points, np.float64).reshape(-1, 2)
        self.dots = np.hstack([self.points - radius, self.points + radius])
        self.options = [_options(point, size, radius=radius) for point, size in zip(points, sizes, strict=True)]
        self.area, self.taken = area, _rows(taken)
        self.way = _samples(np.array(way[:-1]), np.array(way[1:]), n=80).reshape(-1, 2) if len(way) > 1 else None
        self.boxes = np.full((len(points), 4), np.nan)

    def move(self, i: int) -> bool:
        """Put a label where it costs least; True if that is not where it was."""
        options = self.options[i]
        clashes = self._clashes(i, options)
        # Where all places clash the least bad one will do for now: others may yet move.
        open_ones = np.flatnonzero(clashes == clashes.min())
        # Right, left, above and below come first, and read best.
        costs = self._costs(i, options[open_ones]) + 2.0 * (open_ones > 3)
        best = options[open_ones[int(np.argmin(costs))]]
        moved = not np.array_equal(self.boxes[i], best)
        self.boxes[i] = best
        return moved

    def cost(self, i: int) -> float:
        """Return what a label costs where it is."""
        here = self.boxes[i : i + 1]
        return float(_FORBIDDEN * self._clashes(i, here)[0] + self._costs(i, here)[0])

    def _clashes(self, i: int, options: Floats) -> Floats:
        area, others = self.area, np.delete(self.boxes, i, axis=0)
        outside = (options[:, 0] < area.left) | (options[:, 1] < area.top)
        outside |= (options[:, 2] > area.right) | (options[:, 3] > area.bottom)
        return outside + _overlaps(options, others) + _overlaps(options, self.dots) + _overlaps(options, self.taken)

    def _costs(self, i: int, options: Floats) -> Floats:
        here, others, dots = self.points[i], np.delete(self.boxes, i, axis=0), np.delete(self.points, i, axis=0)
        ends, their_ends = _nearest(options, here), _nearest(others, dots)
        ways, their_ways = _samples(np.broadcast_to(here, ends.shape), ends), _samples(dots, their_ends)
        long = np.hypot(*(ends - here).T)
        crossed = _holds(others, ways.reshape(-1, 2)).reshape(*ways.shape[:2], -1).any(axis=1).sum(axis=1)
        hit = _holds(options, their_ways.reshape(-1, 2)).any(axis=0)
        cost: Floats = long + _FORBIDDEN * (crossed + hit) + _CROSSED * _crossings(here, ends, dots, their_ends)
        apart = dots[np.hypot(*(dots - here).T) > 1]
        passed = (_far(ways[:, :, None], apart) < 6).any(axis=1).sum(axis=1)
        nearer = (_far(_nearest(options[:, None], apart), apart) < long[:, None]).any(axis=1)
        cost += _PASSED * passed + _NEARER * nearer
        if self.way is not None:
            cost += _COVERED * _holds(options, self.way).any(axis=0)
        return cost


def _options(point: Point, size: tuple[float, float], *, radius: float) -> Floats:
    """Return boxes right, left, above and below a point, then ever farther off in 16 directions."""
    (x, y), (width, height) = point, size
    near = radius + 1
    corners = [(x + near, y - height / 2), (x - near - width, y - height / 2)]
    corners += [(x - width / 2, y - near - height), (x - width / 2, y + near)]
    for ring in range(12):
        reach = near + 11 * ring
        for step in range(16):
            across, down = cos(step * pi / 8), -sin(step * pi / 8)
            left = x + reach * across - (0 if across > 0.3 else width if across < -0.3 else width / 2)
            top = y + reach * down - (0 if down > 0.3 else height if down < -0.3 else height / 2)
            corners.append((left, top))
    return np.array([(left, top, left + width, top + height) for left, top in corners])


def _rows(boxes: Sequence[Box]) -> Floats:
    return np.array([(box.left, box.top, box.right, box.bottom) for box in boxes], np.float64).reshape(-1, 4)


def _nearest(boxes: Floats, point: Floats) -> Floats:
    nearest: Floats = np.clip(point, boxes[..., :2], boxes[..., 2:])
    return nearest


def _far(points: Floats, others: Floats) -> Floats:
    distance: Floats = np.hypot(*np.moveaxis(points - others, -1, 0))
    return distance


def _samples(starts: Floats, ends: Floats, *, n: int = 10) -> Floats:
    share = (np.arange(1, n) / n)[:, None]
    samples: Floats = starts[:, None] + (ends - starts)[:, None] * share
    return samples


def _overlaps(boxes: Floats, others: Floats) -> Floats:
    """Count for each box those that it shares more than an edge with."""
    across = np.minimum(boxes[:, None, 2], others[:, 2]) - np.maximum(boxes[:, None, 0], others[:, 0])
    down = np.minimum(boxes[:, None, 3], others[:, 3]) - np.maximum(boxes[:, None, 1], others[:, 1])
    n: Floats = ((across > 0) & (down > 0)).sum(axis=1).astype(np.float64)
    return n


def _holds(boxes: Floats, points: Floats) -> Bools:
    """Say for each point and box whether one lies in the other."""
    at = points[:, None]
    held: Bools = np.all((at >= boxes[:, :2]) & (at <= boxes[:, 2:]), axis=-1)
    return held


def _crossings(start: Floats, ends: Floats, starts: Floats, others: Floats) -> Floats:
    """Count for each end the lines that the line to it crosses."""

    def side(a: Floats, b: Floats, c: Floats) -> Floats:
        turned: Floats = (b - a)[..., 0] * (c - a)[..., 1] - (b - a)[..., 1] * (c - a)[..., 0]
        return turned

    mine = ends[:, None]
    first = side(start, mine, starts) * side(start, mine, others) < 0
    second = side(starts, others, np.broadcast_to(start, starts.shape)) * side(starts, others, mine) < 0
    n: Floats = (first & second).sum(axis=1).astype(np.float64)
    return n
