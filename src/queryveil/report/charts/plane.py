"""The plane that dots stand in: its axes, and the most that y may be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from queryveil.html_tables import Html
from queryveil.report.charts import svg
from queryveil.report.charts.axes import Frame
from queryveil.report.charts.labels import Box, Point
from queryveil.report.charts.scales import Scale, linear, rooted, tick_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Plane:
    """Both axes, and where they stand."""

    frame: Frame
    x: Scale
    y: Scale

    @classmethod
    def of(
        cls, points: Sequence[Point], width: float, *, limit: float | None, percent_x: bool, percent_y: bool
    ) -> Plane:
        """Make room for all points, and for the limit."""
        frame = Frame(
            width=width, right=width - 14, bottom=(400 if width == svg.WIDE else 320) + 5 * max(0, len(points) - 12)
        )
        ys = [*(y for _, y in points), *([limit] if limit is not None else [])]
        if percent_y and _is_crowded_below(ys):
            y = rooted(ys, start=frame.bottom, end=frame.top)
        else:
            y = linear(ys, start=frame.bottom, end=frame.top, most=1.0 if percent_y else None)
        left = frame.left(y, percent=percent_y)
        n_ticks = 5 if width == svg.WIDE else 4
        xs = [x for x, _ in points]
        x = linear(xs, start=left, end=frame.right, n_ticks=n_ticks, most=1.0 if percent_x else None)
        return cls(frame=frame, x=x, y=y)

    def place(self, x: float, y: float) -> Point:
        """Say where a point stands."""
        return self.x.place(x), self.y.place(y)


def _is_crowded_below(shares: Sequence[float]) -> bool:
    """Say whether half of all lie so low that a plain axis would heap them up."""
    ordered = sorted(shares)
    return ordered[0] >= 0 and ordered[(len(ordered) - 1) // 2] < 0.15 * ordered[-1]


def limit_line(limit: float, plane: Plane, *, points: Sequence[Point], percent: bool) -> tuple[list[Html], list[Box]]:
    """Draw the limit with its words, and say which boxes that takes."""
    place = plane.y.place(limit)
    text = f"limit {tick_text(limit, percent=percent)}"
    width = svg.text_width(text, size=svg.SMALL) + 4
    left, right = (Box(x, place - 18, x + width, place) for x in (plane.x.start, plane.x.end - width))
    places = [plane.place(*point) for point in points]
    box = left if sum(left.holds(point) for point in places) <= sum(right.holds(point) for point in places) else right
    lines = [
        svg.line(plane.x.start, place, plane.x.end, place, class_="limit", width=1.4, dash="6 4"),
        svg.label(text, box.left + 2, place - 5, class_="limit", size=svg.SMALL),
    ]
    return lines, [box, Box(plane.x.start, place - 1, plane.x.end, place + 1)]
