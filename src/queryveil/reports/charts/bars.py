"""Bar charts."""

from collections.abc import Sequence
from dataclasses import dataclass

from queryveil.html_tables import Html, number, percent, table
from queryveil.reports.charts import _svg as svg

_THICK, _APART = 16.0, 2.0
_BELOW = 12.0
"""From the bars of a row to the label of the next."""
_BEFORE, _AFTER, _CHANCE = "before: new ids only", "after: this release", "blind guessing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A value with its label; the `note` stands after the value."""

    label: str
    value: float
    note: str = ""


def bar_chart(*, title: str, description: str, bars: Sequence[Bar]) -> Html:
    """Draw bars from 0, each below its label with its value at its end; what is not a number has no bar."""
    texts = [number(bar.value) for bar in bars]
    ends = [f"{text}  {bar.note}".rstrip() for bar, text in zip(bars, texts, strict=True)]
    room = min(max((svg.text_width(end) for end in ends), default=0.0) + 10, 0.5 * svg.WIDTH)
    scale = svg.linear([bar.value for bar in bars], start=1, end=svg.WIDTH - room)
    parts: list[Html] = []
    top = 4.0
    for bar, text, whole in zip(bars, texts, ends, strict=True):
        top += svg.LINE
        parts.append(svg.label(svg.shortened(bar.label, width=svg.WIDTH), 0, top - 6, class_="name"))
        end = scale.place(0)
        if svg.drawable(bar.value):
            parts.append(_rect(scale, bar.value, top=top, class_="after filled"))
            end = max(end, scale.place(bar.value))
        shown = svg.shortened(whole, width=svg.WIDTH - end - 6)
        inside = (text, svg.tag("tspan", bar.note, class_="note", dx=8)) if bar.note and shown == whole else (shown,)
        parts.append(_base_line(scale, top=top, height=_THICK))
        parts.append(svg.tag("text", *inside, x=end + 6, y=top + _THICK / 2 + 5, class_="figure"))
        top += _THICK + _BELOW
    rows = [[bar.label, text, bar.note] for bar, text in zip(bars, texts, strict=True)]
    n_columns = 3 if any(bar.note for bar in bars) else 2
    figures = table(["", "value", "note"][:n_columns], rows=[row[:n_columns] for row in rows]) if rows else None
    return svg.figure(title=title, description=description, height=top, parts=parts, table=figures)


def _rect(scale: svg.Scale, value: float, *, top: float, class_: str) -> Html:
    """Draw one bar; nothing at all is still a hair line."""
    zero, end = scale.place(0), scale.place(value)
    place: dict[str, float | str | None] = {"x": min(zero, end), "y": top, "width": max(abs(end - zero), 1.0)}
    return svg.tag("rect", **place, height=_THICK, class_=class_, stroke="currentColor", stroke_width=1)


def _base_line(scale: svg.Scale, *, top: float, height: float) -> Html:
    """Draw where the bars of a row begin; not from row to row, where labels stand."""
    return svg.line(scale.place(0), top - 3, scale.place(0), top + height + 3, class_="axis")


@dataclass(frozen=True, slots=True, kw_only=True)
class BeforeAfter:
    """Shares of 1 with their label; None where there is none. `interval` holds `after` with 95 % confidence."""

    label: str
    before: float | None
    after: float | None
    chance: float | None = None
    interval: tuple[float, float] | None = None


def paired_bar_chart(*, title: str, description: str, rows: Sequence[BeforeAfter]) -> Html:
    """Draw two bars for each row below its label, with a dashed mark where blind guessing gets."""
    shares = [s for row in rows for s in (row.before, row.after, row.chance, *(row.interval or ())) if s is not None]
    scale = svg.linear(shares, start=1, end=svg.WIDTH - svg.text_width("100.0 %") - 8, n_ticks=4, most=1.0)
    height_of_row = svg.LINE + 2 * _THICK + _APART + _BELOW
    bottom = len(rows) * height_of_row
    parts: list[Html] = []
    for tick in scale.ticks if rows else ():
        place, anchor = scale.place(tick), "start" if tick == scale.ticks[0] else "middle"
        if tick != 0:
            parts.append(svg.line(place, 0, place, bottom, class_="grid"))
        parts.append(svg.label(svg.tick_text(tick, percent=True), place, bottom + svg.LINE, anchor=anchor))
    for i, row in enumerate(rows):
        parts += _pair(row, scale, top=4 + i * height_of_row + svg.LINE)
    intervals = [" to ".join(map(percent, row.interval or ())) for row in rows]
    cells = [
        [row.label, percent(row.before), percent(row.after), interval, percent(row.chance)]
        for row, interval in zip(rows, intervals, strict=True)
    ]
    columns = ["", _BEFORE, _AFTER, "95 % interval", _CHANCE]
    return svg.figure(
        title=title,
        description=description,
        height=bottom + svg.LINE + 8,
        parts=parts,
        table=table(columns, rows=cells) if cells else None,
        above=_legend() if rows else None,
    )


def _legend() -> Html:
    boxed: dict[str, float | str | None] = {"x": 1, "y": 1, "width": 24, "height": 10, "stroke": "currentColor"}
    items = [
        (svg.tag("rect", class_="before hollow", **boxed), _BEFORE),
        (svg.tag("rect", class_="after filled", **boxed), _AFTER),
        (svg.line(13, 0, 13, 12, class_="chance", width=2, dash="3 2"), _CHANCE),
        (_whisker(4, 22, 6), "95 % interval"),
    ]
    return svg.legend(items)


def _whisker(low: float, high: float, middle: float) -> Html:
    ends = [(low, middle, high, middle), *((x, middle - 3, x, middle + 3) for x in (low, high))]
    return Html("".join(svg.line(*each, class_="chance", width=1.2) for each in ends))


def _pair(row: BeforeAfter, scale: svg.Scale, *, top: float) -> list[Html]:
    parts = [svg.label(svg.shortened(row.label, width=svg.WIDTH), 0, top - 6, class_="name")]
    below = top + _THICK + _APART
    mark = scale.place(row.chance) if row.chance is not None and svg.drawable(row.chance) else None
    for value, place, kind, look in ((row.before, top, "before", "hollow"), (row.after, below, "after", "filled")):
        if value is None or not svg.drawable(value):
            continue
        parts.append(_rect(scale, value, top=place, class_=f"{kind} {look}"))
        end = scale.place(value)
        if kind == "after" and row.interval and all(svg.drawable(each) for each in row.interval):
            low, high = (scale.place(each) for each in row.interval)
            parts.append(_whisker(low, high, place + _THICK / 2))
            end = max(end, high)
        # A figure that would stand on the mark of blind guessing goes to its right.
        text = percent(value)
        if mark is not None and end < mark + 3 and end + 6 + svg.text_width(text) > mark - 3:
            end = mark
        parts.append(svg.label(text, end + 6, place + _THICK / 2 + 5, class_=f"{kind} halo"))
    if mark is not None:
        parts.append(svg.line(mark, top - 3, mark, below + _THICK + 3, class_="chance", width=2, dash="3 2"))
    return [*parts, _base_line(scale, top=top, height=2 * _THICK + _APART)]
