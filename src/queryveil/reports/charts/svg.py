"""What every chart is made of: elements, text widths, and the figure around a wide and a narrow drawing.

A chart is drawn twice, 680 and 360 pixels wide, and the style sheet shows the one that fits: text scaled down from one
drawing would be too small on a phone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from math import ceil, floor, isfinite, log10, sqrt
from typing import Literal

from queryveil.html_tables import Html, escape

WIDE, NARROW = 680.0, 360.0
FONT = 13.0
SMALL = 12.0
LINE = 17.0
"""From one line of text to the next."""

_WIDTHS = {
    **dict.fromkeys("ijl.,:;'|!()[]/ ", 0.4),
    **dict.fromkeys("frt-", 0.43),
    **dict.fromkeys("mwMW%@\u2013", 0.95),
    **dict.fromkeys("ABCDEGHKNOPQRSUVXYZ+<>=", 0.76),
}


def text_width(text: str, *, size: float = FONT, bold: bool = False) -> float:
    """Say about how wide a text is, as in a wide font: no browser is there to ask."""
    return size * sum(_WIDTHS.get(c, 0.64) for c in text) * (1.1 if bold else 1.0)


def shortened(text: str, *, width: float, size: float = FONT) -> str:
    """Cut a text to a width.

    >>> shortened("a rather long label", width=60)
    'a rathe\u2026'
    """
    if text_width(text, size=size) <= width:
        return text
    while text and text_width(text + "\u2026", size=size) > width:
        text = text[:-1]
    return text.rstrip() + "\u2026"


def wrapped(text: str, *, width: float, size: float = FONT, n_lines: int = 2) -> list[str]:
    """Break a text into lines of a width; what does not fit into `n_lines` is cut."""
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if not lines[-1] or len(lines) == n_lines or text_width(longer, size=size) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return [shortened(line, width=width, size=size) for line in lines]


def tag(name: str, *inside: str, **attributes: float | str | None) -> Html:
    """Return an element; `_` in a name stands for `-`, and a last `_` for nothing (`class_`).

    >>> print(tag("text", "a < b", x=1.26, class_="name"))
    <text x="1.3" class="name">a &lt; b</text>
    """
    written = [
        f' {key.rstrip("_").replace("_", "-")}="{_value(value)}"'
        for key, value in attributes.items()
        if value is not None
    ]
    text = "".join(escape(part) for part in inside)
    return Html(f"<{name}{''.join(written)}>{text}</{name}>" if text else f"<{name}{''.join(written)}/>")


def line(x1: float, y1: float, x2: float, y2: float, *, class_: str, width: float = 1, dash: str | None = None) -> Html:
    """Return a straight line."""
    return tag(
        "line",
        x1=x1,
        y1=y1,
        x2=x2,
        y2=y2,
        class_=class_,
        stroke="currentColor",
        stroke_width=width,
        stroke_dasharray=dash,
    )


def label(text: str, x: float, y: float, *, class_: str = "", anchor: str = "start", size: float = FONT) -> Html:
    """Return a text; `y` is its base line."""
    side = None if anchor == "start" else anchor
    return tag("text", text, x=x, y=y, class_=class_ or None, text_anchor=side, font_size=size)


def path(points: Iterable[tuple[float, float]], *, class_: str, width: float, dash: str | None = None) -> Html:
    """Return a line through points; those that fall on the last pixel drawn are left out."""
    kept: list[tuple[float, float]] = []
    for x, y in points:
        if not kept or abs(x - kept[-1][0]) + abs(y - kept[-1][1]) >= 0.5:
            kept.append((x, y))
    steps = " ".join(f"{'L' if i else 'M'}{_value(x)} {_value(y)}" for i, (x, y) in enumerate(kept))
    look = {"fill": "none", "stroke": "currentColor", "stroke_linejoin": "round", "stroke_linecap": "round"}
    return tag("path", d=steps, class_=class_, stroke_width=width, stroke_dasharray=dash, **look)


def marker(shape: str, x: float, y: float, *, class_: str, size: float = 4) -> Html:
    """Return a mark: shapes differ, so that they can be told apart without colour."""
    look: dict[str, float | str | None] = {"class_": class_, "stroke": "currentColor", "stroke_width": 1.6}
    match shape:
        case "circle":
            return tag("circle", cx=x, cy=y, r=size, **look)
        case "square":
            side = 2 * size * 0.9
            return tag("rect", x=x - side / 2, y=y - side / 2, width=side, height=side, **look)
        case "diamond":
            r = size * 1.35
            return tag("path", d=f"M{_value(x)} {_value(y - r)}l{r:g} {r:g} {-r:g} {r:g} {-r:g} {-r:g}z", **look)
        case _:
            side = 2 * size
            d = f"M{_value(x - size)} {_value(y - size)}l{side:g} {side:g}m0 {-side:g}l{-side:g} {side:g}"
            return tag("path", d=d, fill="none", **look)


Drawing = tuple[float, list[Html]]
"""A height, and what is drawn."""


def figure(
    *,
    title: str,
    description: str,
    wide: Drawing,
    narrow: Drawing,
    table: Html | None,
    above: Html | None = None,
    below: Html | None = None,
) -> Html:
    """Return a chart as a figure: title, drawings, and its figures as a table that opens."""
    inside = "".join([*wide[1], *narrow[1]])
    # From the contents: the same report gives the same file, and charts that differ have names that differ.
    name = "c" + sha256(f"{title}\0{description}\0{inside}\0{table}".encode(errors="replace")).hexdigest()[:10]
    lines = [
        '<figure class="chart">',
        f"<figcaption><strong>{escape(title)}</strong> {escape(description)}</figcaption>",
        *([above] if above else []),
        _svg(f"{name}-w", "wide", WIDE, title, description, wide),
        _svg(f"{name}-n", "narrow", NARROW, title, description, narrow),
        *([below] if below else []),
        *([f"<details><summary>The figures</summary>{table}</details>"] if table else []),
        "</figure>",
    ]
    return Html("\n".join(lines))


def nothing(width: float) -> Drawing:
    """Return a drawing that says that there is nothing to draw."""
    return 60.0, [label("There is nothing to draw.", width / 2, 34, anchor="middle")]


def legend(items: Iterable[tuple[Html, str]], *, class_: str = "legend") -> Html:
    """Return what lines or marks mean: each a drawing of 26 by 12 pixels, and its words."""
    rows = [
        f'<li><svg viewBox="0 0 26 12" aria-hidden="true">{drawn}</svg>{escape(words)}</li>' for drawn, words in items
    ]
    return Html(f'<ul class="{class_}">{"".join(rows)}</ul>')


def _svg(name: str, kind: str, width: float, title: str, description: str, drawing: Drawing) -> Html:
    height, parts = drawing
    return tag(
        "svg",
        tag("title", title, id=f"{name}-t"),
        tag("desc", description or title, id=f"{name}-d"),
        *parts,
        class_=kind,
        viewBox=f"0 0 {width:g} {height:g}",
        role="img",
        aria_labelledby=f"{name}-t {name}-d",
        font_family="system-ui, sans-serif",
        fill="currentColor",
    )


def _value(value: float | str) -> str:
    if isinstance(value, str):
        return escape(value)
    if not isfinite(value):
        raise ValueError("a place in a chart is not a number")
    return f"{round(value, 1) or 0.0:.1f}".removesuffix(".0")


_MOST, _LEAST = 1e300, 1e-300
"""Beyond these, differences and steps are no longer numbers."""
_ROOT_TICKS = (0.0, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """An axis from `low` to `high` (values) drawn from `start` to `end` (pixels), with its ticks.

    >>> Scale(low=0, high=10, start=100, end=200, ticks=(0, 5, 10)).place(5)
    150.0
    """

    low: float
    high: float
    start: float
    end: float
    ticks: tuple[float, ...]
    shape: Literal["linear", "log", "root"] = "linear"

    def place(self, value: float) -> float:
        """Return where a value stands; what is outside stands at the edge."""
        value = min(max(value, self.low), self.high)
        low, high, here = (self._bent(each) for each in (self.low, self.high, value))
        return self.start + (here - low) / (high - low) * (self.end - self.start)

    def _bent(self, value: float) -> float:
        match self.shape:
            case "log":
                return log10(value)
            case "root":
                return sqrt(value)
            case _:
                return value


def drawable(value: float, *, is_log: bool = False) -> bool:
    """Return whether a value has a place on an axis; NaN has none."""
    return abs(value) <= _MOST and (not is_log or value >= _LEAST)


def linear(values: Iterable[float], *, start: float, end: float, n_ticks: int = 5, most: float | None = None) -> Scale:
    """Return an axis that has 0 on it and round ends; `most` is passed by no tick.

    >>> linear([3, 87], start=0, end=1).ticks
    (0.0, 20.0, 40.0, 60.0, 80.0, 100.0)
    """
    known = [value for value in values if drawable(value)] or [0.0]
    low, high = min(*known, 0.0), max(*known, 0.0)
    if high - low < _LEAST:
        low, high = 0.0, 1.0
    step = _step((high - low) / n_ticks)
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    ticks = tuple(float(f"{i * step:.12g}") for i in range(first, last + 1))
    if most is not None and max(known) <= most < ticks[-1]:
        ticks = (*(tick for tick in ticks if tick < most), most)
    return Scale(low=ticks[0], high=ticks[-1], start=start, end=end, ticks=ticks)


def through(values: Sequence[float], *, start: float, end: float, n_ticks: int = 6) -> Scale:
    """Return an axis from the least value to the greatest; few whole numbers get a tick each.

    >>> through([2, 3, 4, 6, 8], start=0, end=1).ticks
    (2, 3, 4, 6, 8)
    """
    known = sorted({value for value in values if drawable(value)}) or [0.0]
    low, high = known[0], known[-1]
    if 2 <= len(known) <= 8 and all(value == int(value) for value in known):
        return Scale(low=low, high=high, start=start, end=end, ticks=tuple(known))
    if high - low <= max(1e-9 * abs(low), _LEAST):
        half = abs(low) / 2 if abs(low) > _LEAST else 0.5
        return Scale(low=low - half, high=high + half, start=start, end=end, ticks=(low,))
    step = _step((high - low) / n_ticks)
    ticks = tuple(float(f"{i * step:.12g}") for i in range(ceil(low / step - 1e-9), floor(high / step + 1e-9) + 1))
    return Scale(low=low, high=high, start=start, end=end, ticks=ticks)


def logarithmic(values: Iterable[float], *, start: float, end: float, n_ticks: int = 6) -> Scale:
    """Return an axis where each step is ten times the last; values that are not above 0 have no place there.

    >>> logarithmic([3, 870], start=0, end=1).ticks
    (1.0, 10.0, 100.0, 1000.0)
    """
    known = [value for value in values if drawable(value, is_log=True)] or [1.0]
    first, last = floor(log10(min(known)) + 1e-9), ceil(log10(max(known)) - 1e-9)
    last = max(last, first + 1)
    apart = ceil((last - first) / n_ticks)
    last = first + apart * ceil((last - first) / apart)
    ticks = tuple(10.0**i for i in range(first, last + 1, apart))
    return Scale(low=ticks[0], high=ticks[-1], start=start, end=end, ticks=ticks, shape="log")


def rooted(shares: Iterable[float], *, start: float, end: float) -> Scale:
    """Return an axis of shares that gives small ones more room: places go with the square root.

    >>> rooted([0.002, 0.31], start=0, end=1).ticks
    (0.0, 0.01, 0.05, 0.1, 0.25, 0.5)
    """
    most = max((share for share in shares if drawable(share)), default=1.0)
    ticks = [tick for tick in _ROOT_TICKS if tick < most]
    ticks.append(next((tick for tick in _ROOT_TICKS if tick >= most), most))
    return Scale(low=0.0, high=ticks[-1], start=start, end=end, ticks=tuple(ticks), shape="root")


def tick_text(value: float, *, percent: bool = False) -> str:
    """Write a tick.

    >>> [tick_text(x) for x in (0.0, 0.25, 500.0, 20000.0, 2500000.0, 1e18)]
    ['0', '0.25', '500', '20,000', '2.5 M', '1e+18']
    >>> tick_text(0.125, percent=True)
    '12.5 %'
    """
    if percent:
        return f"{100 * value:.6g} %"
    size = abs(value)
    if 1e6 <= size < 1e15:
        for power, name in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
            if size >= power:
                return f"{value / power:.6g} {name}"
    return f"{value:,.0f}" if 1000 <= size < 1e6 and value == int(value) else f"{value:.6g}"


def _step(rough: float) -> float:
    power = 10.0 ** floor(log10(rough))
    for factor in (1.0, 2.0, 2.5, 5.0):
        if rough <= factor * power * (1 + 1e-9):
            return factor * power
    return 10 * power
