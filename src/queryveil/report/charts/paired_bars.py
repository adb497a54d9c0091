"""Pairs of bars: what attackers find before and after, beside what blind guessing finds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from queryveil.html_tables import Html, percent, table
from queryveil.report.charts import svg
from queryveil.report.charts.bars import base_line, label_column, rect, row_label
from queryveil.report.charts.scales import Scale, drawable, linear, tick_text

_THICK = 13.0
_APART = 2.0
_BOTH = 2 * _THICK + _APART
_ROW = _BOTH + 16


@dataclass(frozen=True, slots=True, kw_only=True)
class BeforeAfter:
    """Shares of 1 with their label; None where there is none. `interval` holds `after` with 95 % confidence."""

    label: str
    before: float | None
    after: float | None
    chance: float | None = None
    interval: tuple[float, float] | None = None


def paired_bar_chart(
    *,
    title: str,
    description: str,
    rows: Sequence[BeforeAfter],
    before: str = "before: new ids only",
    after: str = "after: this release",
    chance: str = "blind guessing",
) -> Html:
    """Draw two bars for each row, with a dashed mark where blind guessing gets."""

    def draw(width: float) -> svg.Drawing:
        return _drawn(rows, width)

    columns = ["", before, after, "95 % interval", chance]
    cells = [[row.label, percent(row.before), percent(row.after), _interval(row), percent(row.chance)] for row in rows]
    has_interval = any(row.interval for row in rows)
    if not has_interval:
        columns, cells = columns[:3] + columns[4:], [row[:3] + row[4:] for row in cells]
    drawn = _legend(before, after, chance, has_interval=has_interval)
    figures = table(columns, rows=cells) if cells else None
    return svg.figure(
        title=title,
        description=description,
        wide=draw(svg.WIDE),
        narrow=draw(svg.NARROW),
        table=figures,
        above=drawn if rows else None,
    )


def _interval(row: BeforeAfter) -> str:
    return f"{percent(row.interval[0])} to {percent(row.interval[1])}" if row.interval else ""


def _legend(before: str, after: str, chance: str, *, has_interval: bool) -> Html:
    boxed: dict[str, float | str | None] = {"x": 1, "y": 1, "width": 24, "height": 10, "stroke": "currentColor"}
    items = [
        (svg.tag("rect", class_="before hollow", **boxed), before),
        (svg.tag("rect", class_="after filled", **boxed), after),
        (svg.line(13, 0, 13, 12, class_="chance", width=2, dash="3 2"), chance),
    ]
    if has_interval:
        items.append((_whisker(4, 22, 6), "95 % interval"))
    return svg.legend(items)


def _whisker(low: float, high: float, middle: float) -> Html:
    lines = [
        svg.line(low, middle, high, middle, class_="chance", width=1.2),
        svg.line(low, middle - 3, low, middle + 3, class_="chance", width=1.2),
        svg.line(high, middle - 3, high, middle + 3, class_="chance", width=1.2),
    ]
    return Html("".join(lines))


def _drawn(rows: Sequence[BeforeAfter], width: float) -> svg.Drawing:
    if not rows:
        return svg.nothing(width)
    column = label_column([row.label for row in rows], width=width)
    ends = [
        value
        for row in rows
        for value in (row.before, row.after, row.chance, *(row.interval or ()))
        if value is not None
    ]
    scale = linear(ends, start=column + 1, end=width - 62, n_ticks=4, most=1.0)
    above = 0.0 if column else svg.LINE
    bottom = 6 + len(rows) * (_ROW + above) - 8
    parts: list[Html] = []
    for tick in scale.ticks:
        place = scale.place(tick)
        if tick != 0:
            parts.append(svg.line(place, 0, place, bottom, class_="grid"))
        anchor = "start" if not column and tick == scale.ticks[0] else "middle"
        text = tick_text(tick, percent=True)
        parts.append(svg.label(text, place, bottom + 16, anchor=anchor, size=svg.SMALL))
    top = 6.0
    for row in rows:
        top += above
        parts += row_label(row.label, column=column, width=width, top=top, height=_BOTH)
        parts += [*_row(row, scale, top=top), base_line(scale, top=top, height=_BOTH)]
        top += _ROW
    return bottom + 22, parts


def _row(row: BeforeAfter, scale: Scale, *, top: float) -> list[Html]:
    parts: list[Html] = []
    below = top + _THICK + _APART
    has_chance = row.chance is not None and drawable(row.chance)
    mark = scale.place(row.chance or 0.0)
    for value, place, class_ in ((row.before, top, "before hollow"), (row.after, below, "after filled")):
        if value is None or not drawable(value):
            continue
        parts.append(rect(scale, value, top=place, height=_THICK, class_=class_))
        end = scale.place(value)
        if class_.startswith("after") and row.interval and all(drawable(each) for each in row.interval):
            low, high = (scale.place(each) for each in row.interval)
            parts.append(_whisker(low, high, place + _THICK / 2))
            end = max(end, high)
        # A figure that would stand on the mark of blind guessing goes to its right.
        text = percent(value)
        if has_chance and end < mark + 3 and end + 6 + svg.text_width(text, size=svg.SMALL) > mark - 3:
            end = mark
        kind = class_.split()[0]
        parts.append(svg.label(text, end + 6, place + _THICK / 2 + 4.5, class_=f"{kind} halo", size=svg.SMALL))
    if has_chance:
        parts.append(svg.line(mark, top - 3, mark, below + _THICK + 3, class_="chance", width=2, dash="3 2"))
    return parts
