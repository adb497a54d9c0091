"""Write a report as HTML, Markdown, JSON or PDF, the page around it, and a file whole or not at all.

A page is one HTML file that asks for nothing else, in light, dark, narrow and print.
"""

import os
import re
import secrets
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from string import Template
from typing import Literal

import msgspec

from queryveil.errors import BadFile, BadParameter, MissingExtra, NotWritten
from queryveil.html_tables import Html, escape, table, written
from queryveil.reports._blocks import Block, Bullets, Commands, Form, Paragraph, Picture, Table
from queryveil.reports._document import document_of
from queryveil.reports.languages import spoken, with_marks, without_marks
from queryveil.reports.pdf import render_pdf
from queryveil.reports.value import Report

_MOST_NARROW = 3
"""Tables of more columns scroll by themselves on a phone."""


def render_html(report: Report, *, lang: str = "en") -> str:
    """Return a report as one HTML file, with no query, URL or user id in it unless the report has `top_queries`."""
    language = spoken(lang)
    document = language.document(document_of(report))
    links = [f'<a href="#{escape(one.name)}">{escape(one.title)}</a>' for one in document.sections]
    lead = [
        Html(f"<p>{' '.join(badge(one.text, kind=one.kind) for one in document.badges)}</p>"),
        paragraph(_unbroken(document.decision), kind="lead"),
        *([paragraph(document.alert, kind="warning")] if document.alert else []),
        _facts(document.facts),
        tiles((figure.label, _unbroken(figure.value), _unbroken(figure.note)) for figure in document.figures),
        *(paragraph(_unbroken(each)) for each in document.summary),
        Html(f'<nav aria-label="{escape(language.text("Sections"))}">\n' + " · ".join(links) + "\n</nav>"),
    ]
    return with_marks(
        page(
            title=document.title,
            kicker=document.kicker,
            lead=lead,
            body=[section(one.title, body=map(_block, one.blocks), name=one.name) for one in document.sections],
            footer=document.footer,
            lang=lang,
        )
    )


def _facts(pairs: Iterable[tuple[str, str]]) -> Html:
    """Return a few names, each with a line of text."""
    lines = [f"<div><dt>{escape(name)}</dt><dd>{escape(fact)}</dd></div>" for name, fact in pairs]
    return Html("\n".join(['<dl class="facts">', *lines, "</dl>"]))


def _unbroken(text: str) -> str:
    """Return a text in which no line breaks between a number and its per cent sign."""
    return text.replace(" %", "\u00a0%")


def _block(block: Block) -> Html:
    match block:
        case Paragraph(text=text, kind="quote"):
            return Html(f"<blockquote>{paragraph(text)}</blockquote>")
        case Paragraph(text=text, kind=kind):
            return paragraph(text, kind="" if kind == "plain" else kind)
        case Bullets(items=items):
            return bullets(items)
        case Table(columns=columns, rows=rows, caption=caption):
            cells = [[_unbroken(written(cell)) for cell in row] for row in rows]
            drawn = table(columns, rows=cells, caption=caption)
            return scrolling(drawn) if len(columns) > _MOST_NARROW else drawn
        case Commands(lines=lines):
            return command("\n".join(lines))
        case Picture(svg=svg):
            return svg
        case Form(fields=fields):
            places = "".join(f"<div><dt>{escape(field)}</dt><dd></dd></div>" for field in fields)
            return Html(f'<dl class="form">{places}</dl>')


def page(
    *,
    title: str,
    body: Iterable[Html],
    lead: Iterable[Html] = (),
    kicker: str = "",
    footer: str = "",
    style: str = "",
    script: str = "",
    lang: str = "en",
) -> str:
    """Return the whole document; `lead` stands below the title, and `kicker` is a small line above it.

    Its policy forbids the browser to load anything, and to run anything but its own `script`, if it has one. A `style`
    comes on top of that of all pages.

    >>> text = page(title="A < B", body=[section("What it cost", body=[paragraph("Nothing.")])])
    >>> "<title>A &lt; B</title>" in text, "<h1>A &lt; B</h1>" in text
    (True, True)
    """
    header = [Html(f'<p class="kicker">{escape(kicker)}</p>')] if kicker else []
    header += [Html(f"<h1>{escape(title)}</h1>"), *lead]
    return Template(_template("page.html")).substitute(
        lang=escape(lang),
        title=without_marks(escape(title)),
        style=(_template("style.css") + style).rstrip(),
        policy=f"; script-src 'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'" if script else "",
        script=f"<script>{script}</script>" if script else "",
        header=joined(header),
        body=joined(body),
        footer=f"<footer>{escape(footer)}</footer>" if footer else "",
    )


def joined(parts: Iterable[str]) -> Html:
    return Html("\n".join(parts))


def section(heading: str, *, body: Iterable[Html], name: str = "") -> Html:
    """Return a section; a `name` lets links lead to it (`#name`)."""
    where = f' id="{escape(name)}"' if name else ""
    return joined([Html(f"<section{where}>"), Html(f"<h2>{escape(heading)}</h2>"), *body, Html("</section>")])


def paragraph(text: str, *, kind: Literal["", "lead", "note", "warning", "quote"] = "") -> Html:
    """Return a paragraph; text is escaped unless it is HTML."""
    return Html(f'<p class="{kind}">{escape(text)}</p>' if kind else f"<p>{escape(text)}</p>")


def bullets(items: Iterable[str]) -> Html:
    return joined([Html("<ul>"), *(Html(f"<li>{escape(item)}</li>") for item in items), Html("</ul>")])


def badge(text: str, *, kind: Literal["good", "bad", "open"]) -> Html:
    """Return a verdict that is seen at once; the text says it too, so the colour is never alone."""
    return Html(f'<span class="badge {kind}">{escape(text)}</span>')


def command(text: str) -> Html:
    return Html(f"<pre><code>{escape(text)}</code></pre>")


def tiles(figures: Iterable[tuple[str, str, str]]) -> Html:
    """Return a row of large figures: what each is, the figure, and a small line below it (may be empty)."""
    lines = ['<dl class="tiles">']
    for name, figure, below in figures:
        small = f"<small>{escape(below)}</small>" if below else ""
        lines.append(f"<div><dt>{escape(name)}</dt><dd>{escape(figure)}{small}</dd></div>")
    return Html("\n".join([*lines, "</dl>"]))


def scrolling(wide: Html) -> Html:
    """Let a wide table scroll by itself on a narrow screen; it can be reached by keyboard."""
    return Html(f'<div class="scroll" tabindex="0" role="group" aria-label="table">{wide}</div>')


@cache
def _template(name: str) -> str:
    return files("queryveil.reports").joinpath("templates", name).read_text(encoding="utf-8")


_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~&@]|:(?=//)|(?<=www)\.)", re.IGNORECASE)
"""Characters with a meaning in Markdown, and those that would start an entity, a mention or a link."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Control characters, which a terminal obeys, and those that reverse the direction of text."""


def render_markdown(report: Report, *, lang: str = "en") -> str:
    document = spoken(lang).document(document_of(report))
    figures = [
        f"- {escape_markdown(one.label)}: **{escape_markdown(one.value)}**"
        + (f" ({escape_markdown(one.note)})" if one.note else "")
        for one in document.figures
    ]
    badges = " ".join(f"**{escape_markdown(one.text)}.**" for one in document.badges)
    alert = [f"> {escape_markdown(document.alert)}", ""] if document.alert else []
    facts = [f"- {escape_markdown(name)}: {escape_markdown(fact)}" for name, fact in document.facts]
    said = [f"{badges} {escape_markdown(document.decision)}", "", *alert, *facts, *figures, ""]
    summary = "\n\n".join(map(escape_markdown, document.summary))
    lines = [f"# {escape_markdown(document.title)}", "", *said, summary]
    for part in document.sections:
        lines += ["", f"## {escape_markdown(part.title)}"]
        for block in part.blocks:
            lines += _block_markdown(block)
    return without_marks("\n".join([*lines, "", escape_markdown(document.footer), ""]))


def escape_markdown(text: str) -> str:
    r"""Escape text for Markdown, on one line.

    >>> print(escape_markdown("a*b_c <b>"))
    a\*b\_c \<b\>
    """
    return _SPECIAL.sub(r"\\\1", _plain(" ".join(text.split())))


def _plain(text: str) -> str:
    return _CONTROL.sub("\ufffd", text)


def _block_markdown(block: Block) -> list[str]:
    match block:
        case Paragraph(text=text, kind="quote" | "warning"):
            return ["", f"> {escape_markdown(text)}"]
        case Paragraph(text=text):
            return ["", escape_markdown(text)]
        case Bullets(items=items):
            return ["", *(f"- {escape_markdown(item)}" for item in items)]
        case Table():
            return _table_markdown(block)
        case Commands(lines=lines):
            # Indented: a folder may be called anything, and a name with three ticks would end a fence.
            return ["", *(f"    {_plain(line)}" for line in lines)]
        case Form(fields=fields):
            return ["", *(f"- {escape_markdown(field)}:" for field in fields)]
        case Picture(instead=table):
            return [] if table is None else _table_markdown(table)


def _table_markdown(block: Table) -> list[str]:
    caption = ["", f"**{escape_markdown(block.caption)}**"] if block.caption else []
    rows = [[escape_markdown(written(cell)) for cell in row] for row in block.rows]
    lines = [[escape_markdown(name) for name in block.columns], ["---"] * len(block.columns), *rows]
    return [*caption, "", *(f"| {' | '.join(line)} |" for line in lines)]


def _render_json(report: Report, *, lang: str = "en") -> str:  # noqa: ARG001 - names and figures have no language
    return msgspec.json.format(msgspec.json.encode(report.to_dict()), indent=2).decode() + "\n"


_FORMATS: Mapping[str, Callable[..., str | bytes]] = {
    "html": render_html,
    "md": render_markdown,
    "json": _render_json,
    "pdf": render_pdf,
}
"""What writes a report, by the ending of its file."""


def render(report: Report, *, format: str = "html", lang: str = "en") -> str | bytes:  # noqa: A002 - as read_log has it
    """Write a report as HTML, Markdown (md), JSON or PDF, in English, German, French or Spanish (en, de, fr, es)."""
    check_report_format(format)
    return _FORMATS[format](report, lang=lang)


def check_report_format(name: str) -> None:
    """Raise if no report is written so, or if what writes it is not installed."""
    if name not in _FORMATS:
        raise BadParameter("format", name, allowed="html, md, json or pdf")
    if name == "pdf" and find_spec("typst") is None:
        raise MissingExtra("a report as PDF", extra="pdf")


def check_report_target(path: Path, *, force: bool) -> None:
    """Raise if a report cannot be written to a path; called before the work begins."""
    if not path.absolute().parent.is_dir():
        raise BadParameter("output", str(path), allowed="a file in a folder that is there")
    if path.is_dir() or (os.path.lexists(path) and not force):
        way_out = "is a folder; name a file" if path.is_dir() else "is already there; replace it with --force"
        raise BadFile(str(path), way_out)


def write_whole(text: str | bytes, path: Path) -> None:
    """Write a file under another name and rename it when it is whole; an existing file is replaced."""
    partial = path.with_name(f".{path.name}.partial-{secrets.token_hex(8)}")
    try:
        with partial.open("xb") as file:
            file.write(text if isinstance(text, bytes) else text.encode("utf-8", errors="replace"))
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        raise NotWritten(str(path), error.strerror) from None
    finally:
        with suppress(OSError):
            partial.unlink()
