"""Bars side by side: how much of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from queryveil.html_tables import Html, number, table
from queryveil.html_tables import percent as percent_text
from queryveil.report.charts import svg
from queryveil.report.charts.scales import Scale, drawable, linear

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
    """Say how wide the labels left of bars are; 0 on a narrow drawing, where each stands above its bar."""
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
