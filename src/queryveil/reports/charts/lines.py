"""Line charts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from typing import Literal

from queryveil.html_tables import Html, number, table
from queryveil.html_tables import percent as percent_text
from queryveil.reports.charts import svg
from queryveil.reports.charts.dots import Frame, framed
from queryveil.reports.charts.labels import apart
from queryveil.reports.charts.svg import Scale, drawable, linear, logarithmic, through

Kind = Literal["before", "after", "chance", "other"]
Point = tuple[float, float]

_DASHES: dict[Kind, str | None] = {"before": None, "after": None, "chance": "2 4", "other": "8 4"}
_MARKERS: dict[Kind, str] = {"before": "square", "after": "circle", "chance": "", "other": "diamond"}
_MOST_MARKED = 12
_MOST_ROWS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A named line through points (x, y), from left to right; `kind` says how it looks, and `thin` that it is minor."""

    name: str
    points: tuple[Point, ...]
    kind: Kind = "after"
    thin: bool = False


def line_chart(
    *,
    title: str,
    description: str,
    x_label: str,
    y_label: str,
    lines: Sequence[Line],
    log_x: bool = False,
    log_y: bool = False,
    percent: bool = False,
) -> Html:
    """Draw lines; with `percent` the y values are shares.

    Names stand at the ends of the lines where there is room, else above. What has no place on an axis, such as NaN, or
    0 on a log axis, is left out.
    """
    kept = [_drawable(each, log_x=log_x, log_y=log_y) for each in lines]
    some = [each for each in kept if each.points]

    def draw(width: float) -> svg.Drawing:
        return _drawn(some, width, x_label=x_label, y_label=y_label, logs=(log_x, log_y), percent=percent)

    beside = [width for width in (svg.WIDE, svg.NARROW) if _fits_beside(some, width)]
    above = svg.legend([(_sample(each), each.name) for each in some], class_="legend narrow")
    if svg.WIDE not in beside:
        above = svg.legend([(_sample(each), each.name) for each in some])
    figures = _table(lines, x_label=x_label, percent=percent) if some else None
    needed = some and len(beside) < 2
    return svg.figure(
        title=title,
        description=description,
        wide=draw(svg.WIDE),
        narrow=draw(svg.NARROW),
        table=figures,
        above=above if needed else None,
    )


def _drawable(each: Line, *, log_x: bool, log_y: bool) -> Line:
    points = tuple((x, y) for x, y in each.points if drawable(x, is_log=log_x) and drawable(y, is_log=log_y))
    return Line(name=each.name, points=points, kind=each.kind, thin=each.thin)


def _fits_beside(lines: Sequence[Line], width: float) -> bool:
    return _beside(lines) <= 0.3 * width and len(lines) <= 8


def _beside(lines: Sequence[Line]) -> float:
    return max((svg.text_width(each.name, bold=each.kind == "after") for each in lines), default=0.0) + 12


def _drawn(
    lines: Sequence[Line], width: float, *, x_label: str, y_label: str, logs: tuple[bool, bool], percent: bool
) -> svg.Drawing:
    if not lines:
        return svg.nothing(width)
    named = _fits_beside(lines, width)
    right = width - (_beside(lines) if named else 12)
    frame = Frame(width=width, right=right, bottom=(280 if width == svg.WIDE else 240))
    xs, ys = [x for each in lines for x, _ in each.points], [y for each in lines for _, y in each.points]
    n_ticks = 5 if width == svg.WIDE else 4
    top, bottom = frame.top, frame.bottom
    y_scale = (
        logarithmic(ys, start=bottom, end=top, n_ticks=n_ticks)
        if logs[1]
        else linear(ys, start=bottom, end=top, n_ticks=n_ticks, most=1.0 if percent else None)
    )
    left = frame.left(y_scale, percent=percent)
    x_scale = logarithmic(xs, start=left, end=right, n_ticks=n_ticks) if logs[0] else through(xs, start=left, end=right)
    height, parts = framed(frame, x=x_scale, y=y_scale, x_label=x_label, y_label=y_label, percent=percent)
    # What matters most is drawn last, on top.
    for each in sorted(lines, key=lambda each: (each.kind == "after", not each.thin)):
        parts += _line(each, x_scale, y_scale)
    return height, parts + (_names(lines, x_scale, y_scale) if named else [])


def _line(each: Line, x_scale: Scale, y_scale: Scale) -> list[Html]:
    places = [(x_scale.place(x), y_scale.place(y)) for x, y in each.points]
    width = 1.2 if each.thin else 2.4 if each.kind == "after" else 1.8
    dash = "5 3" if each.thin and each.kind != "chance" else _DASHES[each.kind]
    parts = [svg.path(places, class_=each.kind, width=width, dash=dash)] if len(places) > 1 else []
    shape = _MARKERS[each.kind] or ("circle" if len(places) == 1 else "")
    if shape and len(places) <= _MOST_MARKED:
        look, size = ("hollow", 3.0) if each.thin or each.kind == "before" else ("filled", 3.6)
        parts += [svg.marker(shape, x, y, class_=f"{each.kind} {look}", size=size) for x, y in places]
    return parts


def _names(lines: Sequence[Line], x_scale: Scale, y_scale: Scale) -> list[Html]:
    ends = [y_scale.place(each.points[-1][1]) for each in lines]
    places = apart(ends, gap=svg.LINE, low=y_scale.end, high=y_scale.start)
    parts = []
    for each, end, place in zip(lines, ends, places, strict=True):
        x = x_scale.place(each.points[-1][0])
        if abs(place - end) > 6 or x < x_scale.end - 1:
            parts.append(svg.line(x + 5, end, x_scale.end + 8, place, class_="leader", width=0.6))
        parts.append(
            svg.label(each.name, x_scale.end + 10, place + 4.5, class_=f"{each.kind} thin" if each.thin else each.kind)
        )
    return parts


def _sample(each: Line) -> Html:
    dash = "5 3" if each.thin and each.kind != "chance" else _DASHES[each.kind]
    drawn = svg.path([(1, 6), (25, 6)], class_=each.kind, width=1.2 if each.thin else 2, dash=dash)
    if not _MARKERS[each.kind]:
        return drawn
    look = "hollow" if each.thin or each.kind == "before" else "filled"
    return Html(drawn + svg.marker(_MARKERS[each.kind], 13, 6, class_=f"{each.kind} {look}", size=3))


def _table(lines: Sequence[Line], *, x_label: str, percent: bool) -> Html:
    xs = sorted({x for each in lines for x, _ in each.points if not isnan(x)})
    caption = ""
    if len(xs) > _MOST_ROWS:
        caption = f"{_MOST_ROWS} of {len(xs):,} places"
        xs = [xs[round(i * (len(xs) - 1) / (_MOST_ROWS - 1))] for i in range(_MOST_ROWS)]
    by_x = [dict(each.points) for each in lines]
    written = percent_text if percent else number
    rows = [[number(x), *(written(points.get(x)) for points in by_x)] for x in xs]
    return table([x_label, *(each.name for each in lines)], rows=rows, caption=caption)
