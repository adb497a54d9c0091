"""Write a report as PDF, with Typst: one wheel without system libraries, the same bytes for the same report.

The template gets the report as JSON, and no text in it is a command.
"""

import re
from functools import cache
from html import unescape
from importlib.resources import files
from typing import Any

import msgspec

from queryveil.errors import MissingExtra
from queryveil.html_tables import Cell, written
from queryveil.reports import _blocks as blocks
from queryveil.reports._document import document_of
from queryveil.reports.languages import spoken, without_marks
from queryveil.reports.value import Report

_DRAWING = re.compile(r"<svg viewBox=\"0 0 \d+ [^>]*>.*?</svg>", re.DOTALL)
_LEGEND = re.compile(r"<li>(<svg.*?</svg>)(.*?)</li>", re.DOTALL)
_TITLE = re.compile(r"<figcaption><strong>(.*?)</strong> (.*?)</figcaption>", re.DOTALL)
_TAG_SVG = re.compile(r"^<svg ")
_FIGURE = re.compile(r"[-<\u2264\u2265]?\s?\d[\d.,\u202f]*(\s?%)?$|$")
_SHORT = 26
_LEFT_OUT = ("glossary",)
"""Sections that a printed report can do without."""


def render_pdf(report: Report, *, lang: str = "en") -> bytes:
    """Return a report as PDF; raise if what writes it is not installed."""
    try:
        import typst  # noqa: PLC0415 - an extra
    except ImportError:
        raise MissingExtra("a report as PDF", extra="pdf") from None
    document = spoken(lang).document(document_of(report))
    text = msgspec.json.encode(_document(document, lang=lang)).decode()
    source = files("queryveil.reports").joinpath("templates", "report.typ").read_bytes()
    inputs = {"report": without_marks(text).replace(" %", "\u00a0%")}
    pdf: bytes = typst.compile(source, format="pdf", sys_inputs=inputs, ignore_system_fonts=True, timestamp=0)
    return pdf


def _document(document: blocks.Document, *, lang: str) -> dict[str, Any]:
    sections = [
        {"title": each.title, "blocks": [_block(block) for block in each.blocks]}
        for each in document.sections
        if each.name not in _LEFT_OUT
    ]
    plain: dict[str, Any] = msgspec.to_builtins({**{n: getattr(document, n) for n in _PLAIN}, "lang": lang})
    return plain | {"sections": sections}


_PLAIN = ("title", "kicker", "badges", "decision", "summary", "alert", "facts", "figures", "footer")


def _block(block: blocks.Block) -> dict[str, Any]:
    match block:
        case blocks.Paragraph(text=text, kind=kind):
            return {"kind": kind, "text": text}
        case blocks.Bullets(items=items):
            return {"kind": "bullets", "items": items}
        case blocks.Commands(lines=lines):
            return {"kind": "commands", "lines": lines}
        case blocks.Form(fields=fields):
            return {"kind": "form", "fields": fields}
        case blocks.Table(columns=columns, rows=rows, caption=caption):
            return _table(columns, [[written(cell) for cell in row] for row in rows], caption=caption)
        case blocks.Picture(svg=svg):
            return _picture(svg)


def _table(columns: tuple[str, ...], rows: list[list[str]], *, caption: str) -> dict[str, Any]:
    cells: list[tuple[Cell, ...]] = list(zip(*rows, strict=True)) or [() for _ in columns]
    right = [i > 0 and any(cell) and all(_FIGURE.match(str(text)) for text in cell) for i, cell in enumerate(cells)]
    # Short columns are as wide as they are; the others share what is left by how much they have to say.
    longest = [max(map(len, map(str, (name, *cell)))) for name, cell in zip(columns, cells, strict=True)]
    lengths = [sum(len(str(text)) for text in cell) / max(1, len(cell)) for cell in cells]
    shares = zip(longest, lengths, strict=True)
    widths = [0.0 if most <= _SHORT else min(5.0, max(1.5, length / 14)) for most, length in shares]
    if not any(widths):
        widths[-1 if len(widths) < 3 else 0] = 1.0
    return {"kind": "table", "caption": caption, "columns": columns, "rows": rows, "right": right, "widths": widths}


def _picture(svg: str) -> dict[str, Any]:
    """Return a drawing with its legend and its words; the style that a page has around it goes into it."""
    title = _TITLE.search(svg)
    drawing = next((found[0] for found in _DRAWING.finditer(svg) if 'role="img"' in found[0]), "")
    legend = [{"svg": _styled(drawn), "words": unescape(words)} for drawn, words in _LEGEND.findall(svg)]
    said, about = (unescape(part) for part in title.groups()) if title else ("", "")
    return {"kind": "picture", "title": said, "description": about, "legend": legend, "svg": _styled(drawing)}


def _styled(svg: str) -> str:
    opened = '<svg xmlns="http://www.w3.org/2000/svg" color="#16191d" '
    whole = _TAG_SVG.sub(opened, svg).replace("system-ui, sans-serif", "Libertinus Serif")
    at = whole.find(">") + 1
    return f"{whole[:at]}<style>{_style()}</style>{whole[at:]}"


@cache
def _style() -> str:
    """Return the rules for charts, with the colours of print, as one who knows no variables reads them."""
    css = files("queryveil.reports").joinpath("templates", "style.css").read_text(encoding="utf-8")
    printed = css[css.index("@media print") :]
    colours = dict(re.findall(r"(--[\w-]+): ([^;]+);", printed))
    rules = [line for line in css.splitlines() if line.startswith(".chart ") and "{" in line]
    text = "\n".join(line.replace(".chart ", "") for line in rules if "font-size: 11.5px" not in line)
    plain = re.sub(r"var\((--[\w-]+)\)", lambda found: colours.get(found[1], "#000000"), text)
    return f"text {{ font-size: 13px; fill: {colours['--soft']} }}\n{plain}"
