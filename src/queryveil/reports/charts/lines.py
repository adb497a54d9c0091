"""Line charts."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isnan
from typing import Literal

from queryveil.html_tables import Html, number, percent, table
from queryveil.reports.charts import _svg as svg

Kind = Literal["before", "after", "chance", "other"]

_BOTTOM = 270.0
_DASHES: dict[Kind, str | None] = {"before": None, "after": None, "chance": "2 4", "other": "8 4"}
_MARKERS: dict[Kind, str] = {"before": "square", "after": "circle", "chance": "", "other": "diamond"}
_MOST_MARKED = 12
_MOST_ROWS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A named line through points (x, y), from left to right; `kind` says how it looks, and `thin` that it is minor."""

    name: str
    points: tuple[svg.Point, ...]
    kind: Kind = "after"
    thin: bool = False


def line_chart(
    *,
    title: str,
    description: str,
    x_label: str,
    y_label: str,
    lines: Sequence[Line],
    is_log: bool = False,
    is_share: bool = False,
) -> Html:
    """Draw lines, shares as per cent; what has no place on an axis, such as NaN, or 0 on a log axis, is left out."""
    some = []
    for each in lines:
        points = [(x, y) for x, y in each.points if svg.drawable(x, is_log=is_log) and svg.drawable(y, is_log=is_log)]
        some += [replace(each, points=tuple(points))] if points else []
    height, parts = 0.0, list[Html]()
    if some:
        x, y = _scales(some, is_log=is_log, is_share=is_share)
        height, parts = svg.axes(x, y, x_label=x_label, y_label=y_label, shares=(False, is_share))
        # What matters most is drawn last, on top.
        for each in sorted(some, key=lambda each: (each.kind == "after", not each.thin)):
            parts += _line(each, x, y)
    return svg.figure(
        title=title,
        description=description,
        height=height,
        parts=parts,
        table=_table(lines, x_label=x_label, is_share=is_share) if some else None,
        above=svg.legend([(_sample(each), each.name) for each in some]) if some else None,
    )


def _scales(lines: Sequence[Line], *, is_log: bool, is_share: bool) -> tuple[svg.Scale, svg.Scale]:
    xs, ys = ([point[i] for each in lines for point in each.points] for i in (0, 1))
    if is_log:
        y = svg.logarithmic(ys, start=_BOTTOM, end=svg.TOP)
        return svg.logarithmic(xs, start=svg.left_of(y, percent=is_share), end=svg.RIGHT), y
    y = svg.linear(ys, start=_BOTTOM, end=svg.TOP, most=1.0 if is_share else None)
    return svg.through(xs, start=svg.left_of(y, percent=is_share), end=svg.RIGHT), y


def _line(each: Line, x_scale: svg.Scale, y_scale: svg.Scale) -> list[Html]:
    places = [(x_scale.place(x), y_scale.place(y)) for x, y in each.points]
    width = 1.2 if each.thin else 2.4 if each.kind == "after" else 1.8
    parts = [svg.path(places, class_=each.kind, width=width, dash=_dash(each))] if len(places) > 1 else []
    shape = _MARKERS[each.kind] or ("circle" if len(places) == 1 else "")
    if shape and len(places) <= _MOST_MARKED:
        parts += [svg.marker(shape, x, y, class_=_look(each), size=3.0 if each.thin else 3.6) for x, y in places]
    return parts


def _dash(each: Line) -> str | None:
    return "5 3" if each.thin and each.kind != "chance" else _DASHES[each.kind]


def _look(each: Line) -> str:
    return f"{each.kind} {'hollow' if each.thin or each.kind == 'before' else 'filled'}"


def _sample(each: Line) -> Html:
    drawn = svg.path([(1, 6), (25, 6)], class_=each.kind, width=1.2 if each.thin else 2, dash=_dash(each))
    shape = _MARKERS[each.kind]
    return Html(drawn + svg.marker(shape, 13, 6, class_=_look(each), size=3)) if shape else drawn


def _table(lines: Sequence[Line], *, x_label: str, is_share: bool) -> Html:
    xs = sorted({x for each in lines for x, _ in each.points if not isnan(x)})
    caption = ""
    if len(xs) > _MOST_ROWS:
        caption = f"{_MOST_ROWS} of {len(xs):,} places"
        xs = [xs[round(i * (len(xs) - 1) / (_MOST_ROWS - 1))] for i in range(_MOST_ROWS)]
    by_x = [dict(each.points) for each in lines]
    write = percent if is_share else number
    rows = [[number(x), *(write(points.get(x)) for points in by_x)] for x in xs]
    return table([x_label, *(each.name for each in lines)], rows=rows, caption=caption)
