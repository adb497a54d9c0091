"""What every chart is made of: elements, text widths, and the figure around a wide and a narrow drawing.

A chart is drawn twice, 680 and 360 pixels wide, and the style sheet shows the one that fits: text scaled down from one
drawing would be too small on a phone.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from math import isfinite

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
    """Give an element; `_` in a name stands for `-`, and a last `_` for nothing (`class_`).

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
    """Give a straight line."""
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
    """Give a text; `y` is its base line."""
    side = None if anchor == "start" else anchor
    return tag("text", text, x=x, y=y, class_=class_ or None, text_anchor=side, font_size=size)


def path(points: Iterable[tuple[float, float]], *, class_: str, width: float, dash: str | None = None) -> Html:
    """Give a line through points; those that fall on the last pixel drawn are left out."""
    kept: list[tuple[float, float]] = []
    for x, y in points:
        if not kept or abs(x - kept[-1][0]) + abs(y - kept[-1][1]) >= 0.5:
            kept.append((x, y))
    steps = " ".join(f"{'L' if i else 'M'}{_value(x)} {_value(y)}" for i, (x, y) in enumerate(kept))
    look = {"fill": "none", "stroke": "currentColor", "stroke_linejoin": "round", "stroke_linecap": "round"}
    return tag("path", d=steps, class_=class_, stroke_width=width, stroke_dasharray=dash, **look)


def marker(shape: str, x: float, y: float, *, class_: str, size: float = 4) -> Html:
    """Give a mark: shapes differ, so that they can be told apart without colour."""
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
    """Give a chart as a figure: title, drawings, and its figures as a table that opens."""
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
    """Give a drawing that says that there is nothing to draw."""
    return 60.0, [label("There is nothing to draw.", width / 2, 34, anchor="middle")]


def legend(items: Iterable[tuple[Html, str]], *, class_: str = "legend") -> Html:
    """Say what lines or marks mean: each a drawing of 26 by 12 pixels, and its words."""
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
