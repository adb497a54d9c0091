"""The elements that charts are made of: text widths, marks, axes with round ticks, and the figure around a drawing.

A chart is one drawing that scales with the page. Its text is laid out for the size that it has on a phone; the style
sheet makes it smaller on a wide screen, where the drawing is scaled up, so what fits on a phone fits everywhere.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from math import ceil, floor, isfinite, log10, sqrt
from typing import Literal

from queryveil.html_tables import Html, escape

WIDTH = 500.0
FONT = 15.5
"""The size of text on a phone, as in templates/style.css; 11 pixels where 500 become 358."""
LINE = 20.0
"""From one line of text to the next."""

TOP = 34.0
"""Where the plane of an axis chart begins; the meaning of y stands above."""
RIGHT = WIDTH - 14
LINE_BELOW = LINE + 2

_MOST, _LEAST = 1e300, 1e-300
"""Beyond these, differences and steps are no longer numbers."""
_LOG_STEPS = 4
_ROOT_TICKS = (0.0, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 1.0)

Point = tuple[float, float]

_WIDTHS = {
    **dict.fromkeys("ijl.,:;'|!()[]/ ", 0.4),
    **dict.fromkeys("frt-", 0.43),
    **dict.fromkeys("mwMW%@\u2013", 0.95),
    **dict.fromkeys("ABCDEGHKNOPQRSUVXYZ+<>=", 0.76),
}


def text_width(text: str) -> float:
    """Return about how wide a text is, as in a wide font: no browser is there to ask."""
    return FONT * sum(_WIDTHS.get(c, 0.64) for c in text)


def shortened(text: str, *, width: float) -> str:
    """Cut a text to a width.

    >>> shortened("a rather long label", width=72)
    'a rathe\u2026'
    """
    if text_width(text) <= width:
        return text
    while text and text_width(text + "\u2026") > width:
        text = text[:-1]
    return text.rstrip() + "\u2026"


def tag(name: str, *inside: str, **attributes: float | str | None) -> Html:
    """Return an element; `_` in a name stands for `-`, and a last `_` for nothing (`class_`).

    >>> print(tag("text", "a < b", x=1.26, class_="name"))
    <text x="1.3" class="name">a &lt; b</text>
    """
    given = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items() if value is not None}
    written = "".join(f' {key}="{_value(value)}"' for key, value in given.items())
    text = "".join(escape(part) for part in inside)
    return Html(f"<{name}{written}>{text}</{name}>" if text else f"<{name}{written}/>")


def line(x1: float, y1: float, x2: float, y2: float, *, class_: str, width: float = 1, dash: str | None = None) -> Html:
    look: dict[str, float | str | None] = {"stroke": "currentColor", "stroke_width": width, "stroke_dasharray": dash}
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_, **look)


def label(text: str, x: float, y: float, *, class_: str = "", anchor: str = "start") -> Html:
    """Return a text; `y` is its base line."""
    side = None if anchor == "start" else anchor
    return tag("text", text, x=x, y=y, class_=class_ or None, text_anchor=side)


def path(points: Iterable[Point], *, class_: str, width: float, dash: str | None = None) -> Html:
    """Return a line through points; those that fall on the last pixel drawn are left out."""
    kept: list[Point] = []
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


def legend(items: Iterable[tuple[Html, str]]) -> Html:
    """Return what lines or marks mean: each a drawing of 26 by 12 pixels, and its words."""
    box = '<svg viewBox="0 0 26 12" aria-hidden="true">'
    rows = [f"<li>{box}{drawn}</svg>{escape(words)}</li>" for drawn, words in items]
    return Html(f'<ul class="legend">{"".join(rows)}</ul>')


def figure(
    *,
    title: str,
    description: str,
    height: float,
    parts: list[Html],
    table: Html | None,
    above: Html | None = None,
    below: Html | None = None,
) -> Html:
    """Return a chart: title, drawing, and its figures as a table that opens; without parts it says so."""
    if not parts:
        height, parts = 60.0, [label("There is nothing to draw.", WIDTH / 2, 34, anchor="middle")]
    # From the contents: the same report gives the same file, and charts that differ have names that differ.
    contents = f"{title}\0{description}\0{''.join(parts)}\0{table}"
    name = "c" + sha256(contents.encode(errors="replace")).hexdigest()[:10]
    drawing = tag(
        "svg",
        tag("title", title, id=f"{name}-t"),
        tag("desc", description or title, id=f"{name}-d"),
        *parts,
        viewBox=f"0 0 {WIDTH:g} {height:g}",
        role="img",
        aria_labelledby=f"{name}-t {name}-d",
        font_family="system-ui, sans-serif",
        fill="currentColor",
    )
    lines = [
        '<figure class="chart">',
        f"<figcaption><strong>{escape(title)}</strong> {escape(description)}</figcaption>",
        above,
        drawing,
        below,
        f"<details><summary>The figures</summary>{table}</details>" if table else None,
        "</figure>",
    ]
    return Html("\n".join(line for line in lines if line))


def _value(value: float | str) -> str:
    if isinstance(value, str):
        return escape(value)
    if not isfinite(value):
        raise ValueError("a place in a chart is not a number")
    return f"{round(value, 1) or 0.0:.1f}".removesuffix(".0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """An axis from its first tick to its last, drawn from `start` to `end` (pixels).

    >>> Scale(start=100, end=200, ticks=(0, 5, 10)).place(5)
    150.0
    """

    start: float
    end: float
    ticks: tuple[float, ...]
    shape: Literal["linear", "log", "root"] = "linear"

    def place(self, value: float) -> float:
        """Return where a value stands; what is outside stands at the edge."""
        first, last = self.ticks[0], self.ticks[-1]
        bent = {"linear": float, "log": log10, "root": sqrt}[self.shape]
        low, high, here = bent(first), bent(last), bent(min(max(value, first), last))
        return self.start + (here - low) / (high - low) * (self.end - self.start)


def drawable(value: float, *, is_log: bool = False) -> bool:
    """Return whether a value has a place on an axis; NaN has none."""
    return abs(value) <= _MOST and (not is_log or value >= _LEAST)


def linear(values: Iterable[float], *, start: float, end: float, n_ticks: int = 5, most: float | None = None) -> Scale:
    """Return an axis that has 0 on it and round ends; `most` is passed by no tick."""
    known = [value for value in values if drawable(value)] or [0.0]
    low, high = min(*known, 0.0), max(*known, 0.0)
    if high - low < _LEAST:
        low, high = 0.0, 1.0
    step = _step((high - low) / n_ticks)
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    ticks = tuple(float(f"{i * step:.12g}") for i in range(first, last + 1))
    if most is not None and max(known) <= most < ticks[-1]:
        ticks = (*(tick for tick in ticks if tick < most), most)
    return Scale(start=start, end=end, ticks=ticks)


def through(values: Iterable[float], *, start: float, end: float) -> Scale:
    """Return an axis from the least value to the greatest with a tick for each, if they are few whole numbers."""
    known = sorted({value for value in values if drawable(value)})
    if 2 <= len(known) <= 8 and all(value == int(value) for value in known):
        return Scale(start=start, end=end, ticks=tuple(known))
    return linear(known, start=start, end=end)


def logarithmic(values: Iterable[float], *, start: float, end: float) -> Scale:
    """Return an axis where each step is ten times the last; values that are not above 0 have no place there."""
    known = [value for value in values if drawable(value, is_log=True)] or [1.0]
    first, last = floor(log10(min(known)) + 1e-9), ceil(log10(max(known)) - 1e-9)
    last = max(last, first + 1)
    apart = ceil((last - first) / _LOG_STEPS)
    last = first + apart * ceil((last - first) / apart)
    return Scale(start=start, end=end, ticks=tuple(10.0**i for i in range(first, last + 1, apart)), shape="log")


def rooted(shares: Iterable[float], *, start: float, end: float) -> Scale:
    """Return an axis of shares that gives small ones more room: places go with the square root."""
    most = max((share for share in shares if drawable(share)), default=1.0)
    ticks = [tick for tick in _ROOT_TICKS if tick < most]
    ticks.append(next((tick for tick in _ROOT_TICKS if tick >= most), most))
    return Scale(start=start, end=end, ticks=tuple(ticks), shape="root")


def tick_text(value: float, *, percent: bool = False) -> str:
    if percent:
        return f"{100 * value:.6g} %"
    for power, name in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if power <= abs(value) < 1e15:
            return f"{value / power:.6g} {name}"
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e6 and value == int(value) else f"{value:.6g}"


def _step(rough: float) -> float:
    """Return the least round number that is not below a rough one."""
    power = 10.0 ** floor(log10(rough))
    return next((f * power for f in (1.0, 2.0, 2.5, 5.0) if rough <= f * power * (1 + 1e-9)), 10 * power)


def left_of(y: Scale, *, percent: bool) -> float:
    """Return where the plane begins: right of the widest tick of the y axis."""
    return max(text_width(tick_text(tick, percent=percent)) for tick in y.ticks) + 10


def axes(x: Scale, y: Scale, *, x_label: str, y_label: str, shares: tuple[bool, bool]) -> tuple[float, list[Html]]:
    """Draw both axes and return the height; the meaning of y stands above its ticks, that of x below its end."""
    bottom = y.start
    parts = [label(shortened(y_label, width=WIDTH), 0, 16)]
    for tick in y.ticks:
        place = y.place(tick)
        parts.append(line(x.start, place, x.end, place, class_="axis" if place == bottom else "grid"))
        parts.append(label(tick_text(tick, percent=shares[1]), x.start - 8, place + 5, anchor="end"))
    last_end = -1e9
    for tick in x.ticks:
        place, text = x.place(tick), tick_text(tick, percent=shares[0])
        half = text_width(text) / 2
        middle = min(max(place, half), WIDTH - half)
        parts.append(line(place, bottom, place, bottom + 4, class_="axis"))
        if middle - half > last_end + 6:
            parts.append(label(text, middle, bottom + LINE_BELOW, anchor="middle"))
            last_end = middle + half
    parts.append(label(shortened(x_label, width=WIDTH), WIDTH, bottom + 2 * LINE_BELOW, class_="measure", anchor="end"))
    return bottom + 2 * LINE_BELOW + 8, parts
