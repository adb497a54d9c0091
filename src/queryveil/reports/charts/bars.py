"""Bar charts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from queryveil.html_tables import Html, number, percent, table
from queryveil.html_tables import percent as percent_text
from queryveil.reports.charts import svg
from queryveil.reports.charts.svg import Scale, drawable, linear, tick_text

_THICK = 18.0
_ROW = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A value with its label; the `note` stands after the value."""

    label: str
    value: float
    note: str = ""


def bar_chart(*, title: str, description: str, bars: Sequence[Bar], unit: str = "", percent: bool = False) -> Html:
    """Draw bars from 0, each with its value at its end; with `percent` values are shares.

    Values that are no numbers have no bar, but their line says so.
    """

    def written(value: float) -> str:
        return percent_text(value) if percent else f"{number(value)} {unit}".strip()

    def draw(width: float) -> svg.Drawing:
        return _drawn(bars, width, texts=[written(bar.value) for bar in bars])

    notes = any(bar.note for bar in bars)
    rows = [[bar.label, written(bar.value), *([bar.note] if notes else [])] for bar in bars]
    figures = table(["", "value", *(["note"] if notes else [])], rows=rows) if rows else None
    return svg.figure(title=title, description=description, wide=draw(svg.WIDE), narrow=draw(svg.NARROW), table=figures)


def label_column(labels: Sequence[str], *, width: float) -> float:
    """Return how wide the labels left of bars are; 0 on a narrow drawing, where each stands above its bar."""
    if width < svg.WIDE:
        return 0.0
    return min(max((svg.text_width(text) for text in labels), default=0.0), 0.38 * width) + 12


def row_label(text: str, *, column: float, width: float, top: float, height: float) -> list[Html]:
    """Draw the label of a row whose bars begin at `top`: beside them, or above them if there is no column."""
    if not column:
        return [svg.label(svg.shortened(text, width=width), 0, top - 5, class_="name")]
    lines = svg.wrapped(text, width=column - 12)
    first = top + height / 2 + 4.5 - (len(lines) - 1) * 7.5
    return [svg.label(line, column - 12, first + 15 * i, class_="name", anchor="end") for i, line in enumerate(lines)]


def rect(scale: Scale, value: float, *, top: float, height: float, class_: str) -> Html:
    """Draw one bar; nothing at all is still a hair line."""
    zero, end = scale.place(0), scale.place(value)
    left, width = min(zero, end), max(abs(end - zero), 1.0)
    return svg.tag(
        "rect", x=left, y=top, width=width, height=height, class_=class_, stroke="currentColor", stroke_width=1
    )


def base_line(scale: Scale, *, top: float, height: float) -> Html:
    """Draw where the bars of a row begin; not from row to row, where labels may stand."""
    zero = scale.place(0)
    return svg.line(zero, top - 3, zero, top + height + 3, class_="axis")


def _drawn(bars: Sequence[Bar], width: float, *, texts: Sequence[str]) -> svg.Drawing:
    if not bars:
        return svg.nothing(width)
    column = label_column([bar.label for bar in bars], width=width)
    ends = [f"{text}  {bar.note}".rstrip() for bar, text in zip(bars, texts, strict=True)]
    room = min(max(svg.text_width(end) for end in ends) + 10, 0.45 * width)
    scale = linear([bar.value for bar in bars], start=column + 1, end=width - room)
    above = 0.0 if column else svg.LINE
    parts: list[Html] = []
    top = 4.0
    for bar, text in zip(bars, texts, strict=True):
        top += above
        parts += row_label(bar.label, column=column, width=width, top=top, height=_THICK)
        end = scale.place(0)
        if drawable(bar.value):
            parts.append(rect(scale, bar.value, top=top, height=_THICK, class_="after filled"))
            end = max(end, scale.place(bar.value))
        note = svg.tag("tspan", bar.note, class_="note", dx=8) if bar.note else ""
        shown = svg.shortened(f"{text}  {bar.note}".rstrip(), width=width - end - 6)
        inside = (text, note) if shown.endswith(bar.note) else (shown,)
        parts.append(base_line(scale, top=top, height=_THICK))
        base = top + _THICK / 2 + 4.5
        parts.append(svg.tag("text", *inside, x=end + 6, y=base, class_="figure", font_size=svg.FONT))
        top += _ROW
    return top - _ROW + _THICK + 8, parts


_THICK_PAIRED_BARS = 13.0
_APART = 2.0
_BOTH = 2 * _THICK_PAIRED_BARS + _APART
_ROW_PAIRED_BARS = _BOTH + 16


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
        return _drawn_paired_bars(rows, width)

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


def _drawn_paired_bars(rows: Sequence[BeforeAfter], width: float) -> svg.Drawing:
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
    bottom = 6 + len(rows) * (_ROW_PAIRED_BARS + above) - 8
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
        top += _ROW_PAIRED_BARS
    return bottom + 22, parts


def _row(row: BeforeAfter, scale: Scale, *, top: float) -> list[Html]:
    parts: list[Html] = []
    below = top + _THICK_PAIRED_BARS + _APART
    has_chance = row.chance is not None and drawable(row.chance)
    mark = scale.place(row.chance or 0.0)
    for value, place, class_ in ((row.before, top, "before hollow"), (row.after, below, "after filled")):
        if value is None or not drawable(value):
            continue
        parts.append(rect(scale, value, top=place, height=_THICK_PAIRED_BARS, class_=class_))
        end = scale.place(value)
        if class_.startswith("after") and row.interval and all(drawable(each) for each in row.interval):
            low, high = (scale.place(each) for each in row.interval)
            parts.append(_whisker(low, high, place + _THICK_PAIRED_BARS / 2))
            end = max(end, high)
        # A figure that would stand on the mark of blind guessing goes to its right.
        text = percent(value)
        if has_chance and end < mark + 3 and end + 6 + svg.text_width(text, size=svg.SMALL) > mark - 3:
            end = mark
        kind = class_.split()[0]
        parts.append(
            svg.label(text, end + 6, place + _THICK_PAIRED_BARS / 2 + 4.5, class_=f"{kind} halo", size=svg.SMALL)
        )
    if has_chance:
        parts.append(
            svg.line(mark, top - 3, mark, below + _THICK_PAIRED_BARS + 3, class_="chance", width=2, dash="3 2")
        )
    return parts
