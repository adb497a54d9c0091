"""The elements that charts are made of, text widths, and the figure around a drawing.

A chart is one drawing that scales with the page. Its text is laid out for the size that it has on a phone; the style
sheet makes it smaller on a wide screen, where the drawing is scaled up, so what fits on a phone fits everywhere.
"""

from collections.abc import Iterable
from hashlib import sha256
from math import isfinite

from queryveil.html_tables import Html, escape

WIDTH = 500.0
FONT = 15.5
"""The size of text on a phone, as in templates/style.css; 11 pixels where 500 become 358."""
LINE = 20.0
"""From one line of text to the next."""

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
    """Return a straight line."""
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
