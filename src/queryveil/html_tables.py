"""Small HTML tables, for notebooks and reports, and the one place that escapes text for HTML."""

import html
import re
from collections.abc import Iterable, Sequence
from math import isfinite, isnan

Cell = str | int | float | bool | None
"""None is an empty cell: there is no such figure."""

_FIGURE = re.compile(r"(&lt;|[-\u2212\u2264\u2265])?\s?\d|n/a$|-?infinite$")


class Html(str):
    """Text that is HTML already and is not escaped again."""

    __slots__ = ()


def escape(text: str) -> Html:
    """Make text safe to stand in HTML, in quoted attributes too.

    >>> print(escape('a < "b"'), escape(Html("<b>as it is</b>")))
    a &lt; &quot;b&quot; <b>as it is</b>
    """
    if isinstance(text, Html):
        return text
    # XML knows no control characters, not even written as numbers; a lone half of a surrogate cannot be written at all.
    clean = "".join(c if c in "\t\n" or (c >= " " and not "\ud800" <= c <= "\udfff") else "\ufffd" for c in text)
    return Html(html.escape(clean))


def number(value: float | None) -> str:
    """Write a number for people.

    >>> [number(x) for x in (1234567, 0.123456, 1234.5678, 2e-9, float("nan"), None)]
    ['1,234,567', '0.1235', '1,235', '2e-09', 'n/a', '']
    """
    if value is None:
        return ""
    if isinstance(value, int):
        return f"{value:,}"
    if not isfinite(value):
        return "n/a" if isnan(value) else "infinite" if value > 0 else "-infinite"
    if 1000 <= abs(value) < 1e15:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def percent(share: float | None) -> str:
    """Write a share of 1 for people: what is not nothing never reads as nothing, nor what is not all as all.

    >>> [percent(x) for x in (0, 0.00004, 0.0523, 0.5, 0.99999, 1, float("nan"), None)]
    ['0 %', '0.004 %', '5.23 %', '50 %', '99.999 %', '100 %', 'n/a', '']
    """
    if share is None or not isfinite(share):
        return number(share)
    if abs(share) >= 10:
        return f"{number(100.0 * share)} %"
    for digits in (3, 5, 7, 9, 17):
        written = f"{100 * share:.{digits}g} %"
        if written != "100 %" or share >= 1:
            return written
    return written


def table(columns: Sequence[str], *, rows: Iterable[Sequence[Cell]], caption: str = "") -> Html:
    """Return a table; the first cell of each row is its heading.

    Columns of figures stand to the right. Text is escaped; `Html` is taken as it is.

    >>> rows = table(["method", "users"], rows=[["km <k=5>", 1200]]).splitlines()
    >>> print(rows[3])
    <tr><th scope="row" style="text-align:left">km &lt;k=5&gt;</th><td style="text-align:right">1,200</td></tr>
    """
    cells = [[escape(written(cell)) for cell in row] for row in rows]
    # Styles stand in the tags: a notebook has none of ours and puts all cells to the right.
    sides = ["right" if i and _is_figures([row[i] for row in cells]) else "left" for i in range(len(columns))]
    headings = zip(columns, sides, strict=True)
    head = "".join(f'<th scope="col" style="text-align:{side}">{escape(name)}</th>' for name, side in headings)
    return _framed(cells, sides, caption=caption, head=f"<thead><tr>{head}</tr></thead>")


def facts(pairs: Iterable[tuple[str, Cell]], *, caption: str = "") -> Html:
    """Return a table of two columns without headings above them: what it is, and its value."""
    cells = [[escape(name), escape(written(value))] for name, value in pairs]
    return _framed(cells, ["left", "left"], caption=caption, head="")


def written(cell: Cell) -> str:
    """Write a cell for people, not escaped."""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    return cell if isinstance(cell, str) else number(cell)


def _framed(cells: list[list[Html]], sides: list[str], *, caption: str, head: str) -> Html:
    lines = ['<table class="qv">', f"<caption>{escape(caption)}</caption>" if caption else "", head, "<tbody>"]
    for heading, *figures in ([*zip(row, sides, strict=True)] for row in cells):
        first = f'<th scope="row" style="text-align:{heading[1]}">{heading[0]}</th>'
        others = "".join(f'<td style="text-align:{side}">{text}</td>' for text, side in figures)
        lines.append(f"<tr>{first}{others}</tr>")
    return Html("\n".join(filter(None, [*lines, "</tbody>", "</table>"])))


def _is_figures(texts: list[Html]) -> bool:
    said = [text for text in texts if text]
    return bool(said) and all(_FIGURE.match(text) for text in said)
