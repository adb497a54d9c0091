"""Scatter charts: utility against exposure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot
from typing import Literal

from queryveil.html_tables import Html, escape, number, table
from queryveil.html_tables import percent as percent_text
from queryveil.reports.charts import svg
from queryveil.reports.charts.labels import Box, Point, around
from queryveil.reports.charts.svg import Scale, drawable, linear, rooted, tick_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """Where the axes of a chart stand."""

    width: float
    right: float
    bottom: float
    top: float = 34.0

    def left(self, y: Scale, *, percent: bool) -> float:
        """Leave room for the widest tick of the y axis."""
        return max(svg.text_width(tick_text(tick, percent=percent), size=svg.SMALL) for tick in y.ticks) + 10


def framed(
    frame: Frame, *, x: Scale, y: Scale, x_label: str, y_label: str, percent: bool = False, percent_x: bool = False
) -> svg.Drawing:
    """Draw both axes; the meaning of y stands above its ticks, that of x below its end."""
    parts = [svg.label(y_label, 0, 14, size=svg.SMALL)]
    for tick in y.ticks:
        place = y.place(tick)
        is_base = place == y.start
        parts.append(svg.line(x.start, place, x.end, place, class_="axis" if is_base else "grid"))
        text = tick_text(tick, percent=percent)
        parts.append(svg.label(text, x.start - 8, place + 4, anchor="end", size=svg.SMALL))
    parts += _x_ticks(frame, x, percent=percent_x)
    lines = svg.wrapped(x_label, width=frame.width, size=svg.SMALL)
    for i, text in enumerate(lines):
        place = max(x.end, min(frame.width, svg.text_width(text, size=svg.SMALL)))
        parts.append(svg.label(text, place, frame.bottom + 40 + i * 15, anchor="end", size=svg.SMALL))
    return frame.bottom + 48 + 15 * (len(lines) - 1), parts


def _x_ticks(frame: Frame, x: Scale, *, percent: bool) -> list[Html]:
    parts: list[Html] = []
    last_end = -1e9
    for tick in x.ticks:
        place, text = x.place(tick), tick_text(tick, percent=percent)
        width = svg.text_width(text, size=svg.SMALL)
        middle = min(max(place, width / 2), frame.width - width / 2)
        parts.append(svg.line(place, frame.bottom, place, frame.bottom + 4, class_="axis"))
        if middle - width / 2 > last_end + 6:
            parts.append(svg.label(text, middle, frame.bottom + 19, anchor="middle", size=svg.SMALL))
            last_end = middle + width / 2
    return parts


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
        """Return where a point stands."""
        return self.x.place(x), self.y.place(y)


def _is_crowded_below(shares: Sequence[float]) -> bool:
    """Return whether half of all lie so low that a plain axis would heap them up."""
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


Kind = Literal["method", "baseline", "broken", "other"]

_LOOKS: dict[Kind, tuple[str, str, str]] = {
    "method": ("circle", "after filled", "promise kept"),
    "baseline": ("square", "before hollow", "promises nothing"),
    "broken": ("cross", "bad", "promise broken"),
    "other": ("diamond", "other hollow", "other"),
}
_MOST_NAMED = {svg.WIDE: 25, svg.NARROW: 6}
"""With more dots than that they are numbered, and a list says which is which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """A labelled dot; `kind` says how it looks, and the `picked` one stands out."""

    label: str
    x: float
    y: float
    kind: Kind = "method"
    picked: bool = False


def dot_chart(
    *,
    title: str,
    description: str,
    x_label: str,
    y_label: str,
    dots: Sequence[Dot],
    path: Sequence[Point] = (),
    limit: float | None = None,
    percent_x: bool = True,
    percent_y: bool = True,
) -> Html:
    """Draw dots with their labels; `path` is a line through the best of them, and `limit` the most y may be.

    With `percent_x` and `percent_y` values are shares. Dots without a place (NaN) stand in the table only.
    """
    placed = [dot for dot in dots if drawable(dot.x) and drawable(dot.y)]
    frontier = [point for point in path if drawable(point[0]) and drawable(point[1])]
    wide, narrow = (
        _drawn(placed, width, path=frontier, limit=limit, labels=(x_label, y_label), percents=(percent_x, percent_y))
        for width in (svg.WIDE, svg.NARROW)
    )
    written_x, written_y = (percent_text if each else number for each in (percent_x, percent_y))
    rows = [
        [dot.label + (" (picked)" if dot.picked else ""), written_x(dot.x), written_y(dot.y), _LOOKS[dot.kind][2]]
        for dot in dots
    ]
    figures = table(["", x_label, y_label, "what it is"], rows=rows) if rows else None
    return svg.figure(
        title=title,
        description=description,
        wide=(wide.height, wide.parts),
        narrow=(narrow.height, narrow.parts),
        table=figures,
        above=_legend(placed),
        below=_key(placed, wide=wide.is_numbered, narrow=narrow.is_numbered),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Drawn:
    height: float
    parts: list[Html]
    is_numbered: bool


def _drawn(
    dots: Sequence[Dot],
    width: float,
    *,
    path: Sequence[Point],
    limit: float | None,
    labels: tuple[str, str],
    percents: tuple[bool, bool],
) -> _Drawn:
    if not dots:
        height, parts = svg.nothing(width)
        return _Drawn(height=height, parts=parts, is_numbered=False)
    percent_x, percent_y = percents
    if limit is not None and not drawable(limit):
        limit = None
    points = [(dot.x, dot.y) for dot in dots]
    plane = Plane.of(points, width, limit=limit, percent_x=percent_x, percent_y=percent_y)
    x_label, y_label = labels
    if plane.y.shape == "root":
        y_label += " (small shares drawn larger)"
    height, parts = framed(
        plane.frame, x=plane.x, y=plane.y, x_label=x_label, y_label=y_label, percent=percent_y, percent_x=percent_x
    )
    if len(path) > 1:
        parts.append(svg.path([plane.place(*point) for point in path], class_="after", width=1.2))
    taken: list[Box] = []
    if limit is not None:
        lines, taken = limit_line(limit, plane, points=points, percent=percent_y)
        parts += lines
    texts, boxes = _labels(dots, plane, taken=taken, way=[plane.place(*point) for point in path])
    parts += _dots(dots, plane, texts=texts, boxes=boxes)
    return _Drawn(height=height, parts=parts, is_numbered=texts != [dot.label for dot in dots])


def _labels(
    dots: Sequence[Dot], plane: Plane, *, taken: Sequence[Box], way: Sequence[Point]
) -> tuple[list[str], list[Box]]:
    points = [plane.place(dot.x, dot.y) for dot in dots]
    area = Box(plane.x.start + 2, plane.frame.top - 12, plane.frame.width, plane.frame.bottom - 1)
    names, numbers = [dot.label for dot in dots], [str(i + 1) for i in range(len(dots))]
    for texts in [names, numbers] if len(dots) <= _MOST_NAMED[plane.frame.width] else [numbers]:
        sizes = [
            (svg.text_width(text, bold=dot.picked) + 2 * _inset(dot), 22.0 if dot.picked else 16.0)
            for text, dot in zip(texts, dots, strict=True)
        ]
        found = around(points, sizes=sizes, area=area, taken=taken, way=way)
        if found is not None:
            return texts, found
    return _heaped(points, numbers, right=plane.frame.width)


def _inset(dot: Dot) -> float:
    """Return how far a label stands from the edge of its box: the picked dot has a ring to keep off."""
    return 4.0 if dot.picked else 1.0


def _heaped(points: Sequence[Point], numbers: Sequence[str], *, right: float) -> tuple[list[str], list[Box]]:
    """Put the numbers of all dots on one spot into one label, where there is no room for each."""
    spots = [(round(x), round(y)) for x, y in points]
    texts, boxes = [], []
    for i, (x, y) in enumerate(spots):
        here = [number for number, spot in zip(numbers, spots, strict=True) if spot == (x, y)]
        texts.append(svg.shortened(", ".join(here), width=70) if spots.index((x, y)) == i else "")
        width = svg.text_width(texts[-1]) + 2
        left = x + 8 if x + 8 + width <= right else x - 8 - width
        boxes.append(Box(left, y - 8, left + width, y + 8))
    return texts, boxes


def _dots(dots: Sequence[Dot], plane: Plane, *, texts: Sequence[str], boxes: Sequence[Box]) -> list[Html]:
    leaders, marks, names = [], [], []
    for dot, text, box in zip(dots, texts, boxes, strict=True):
        x, y = plane.place(dot.x, dot.y)
        near_x, near_y = box.nearest((x, y))
        if text and hypot(near_x - x, near_y - y) > 12:
            leaders.append(svg.line(x, y, near_x, near_y, class_="leader", width=0.7))
        shape, class_, _ = _LOOKS[dot.kind]
        if dot.picked:
            marks.append(svg.marker("circle", x, y, class_="chance hollow", size=8))
        marks.append(svg.marker(shape, x, y, class_=class_, size=4.5))
        look, inset = "name halo picked" if dot.picked else "name halo", _inset(dot)
        base = (box.top + box.bottom) / 2 + 4.5
        if not text:
            continue
        if box.left >= x:
            names.append(svg.label(text, box.left + inset, base, class_=look))
        elif box.right <= x:
            names.append(svg.label(text, box.right - inset, base, class_=look, anchor="end"))
        else:
            names.append(svg.label(text, (box.left + box.right) / 2, base, class_=look, anchor="middle"))
    return [*leaders, *marks, *names]


def _legend(dots: Sequence[Dot]) -> Html | None:
    kinds = [kind for kind in _LOOKS if any(dot.kind == kind for dot in dots)]
    items = [(svg.marker(_LOOKS[k][0], 13, 6, class_=_LOOKS[k][1]), _LOOKS[k][2]) for k in kinds]
    if any(dot.picked for dot in dots):
        items.append((svg.marker("circle", 13, 6, class_="chance hollow", size=5), "picked"))
    return svg.legend(items) if len(items) > 1 else None


def _key(dots: Sequence[Dot], *, wide: bool, narrow: bool) -> Html | None:
    if not wide and not narrow:
        return None
    looks = [' class="picked"' if dot.picked else "" for dot in dots]
    items = [f"<li{look}>{escape(dot.label)}</li>" for dot, look in zip(dots, looks, strict=True)]
    class_ = "key" if wide else "key narrow"
    return Html(f'<ol class="{class_}">{"".join(items)}</ol>')
