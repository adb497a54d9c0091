"""A report as one HTML file that opens without a network."""

from __future__ import annotations

from queryveil.html_tables import Html, escape, table
from queryveil.report.blocks import Block, Bullets, Commands, Paragraph, Picture, Section, Table
from queryveil.report.document import document_of
from queryveil.report.page import badge, bullets, command, joined, page, paragraph, scrolling, section, tiles
from queryveil.report.value import Report

_MOST_NARROW = 4
"""Tables of more columns scroll by themselves on a phone."""


def render_html(report: Report) -> str:
    """Give the whole file.

    It has no script and loads nothing. It holds no query, URL or user id, unless the report has `top_queries`.
    """
    document = document_of(report)
    lead = [
        Html(f"<p>{badge(document.badge, kind=document.badge_kind)}</p>"),
        paragraph(_unbroken(document.summary), kind="lead"),
        *([paragraph(document.alert, kind="warning")] if document.alert else []),
        tiles((figure.label, figure.value, _unbroken(figure.note)) for figure in document.figures),
        _contents(document.sections),
    ]
    return page(
        title=document.title,
        kicker=document.kicker,
        lead=lead,
        body=[_section(one) for one in document.sections],
        footer=document.footer,
    )


def _unbroken(text: str) -> str:
    """Keep a number and its per cent on one line."""
    return text.replace(" %", "\u00a0%")


def _section(one: Section) -> Html:
    return section(one.title, body=[_block(block) for block in one.blocks], name=one.name)


def _block(block: Block) -> Html:
    match block:
        case Paragraph(text=text, kind="quote"):
            return Html(f"<blockquote>{paragraph(text)}</blockquote>")
        case Paragraph(text=text, kind="note" | "warning" as kind):
            return paragraph(text, kind=kind)
        case Paragraph(text=text):
            return paragraph(text)
        case Bullets(items=items):
            return bullets(items)
        case Table():
            return _table(block)
        case Commands(lines=lines):
            return command("\n".join(lines))
        case Picture(svg=svg):
            return svg


def _table(block: Table) -> Html:
    written = table(block.columns, rows=block.rows, caption=block.caption)
    return scrolling(written) if len(block.columns) > _MOST_NARROW else written


def _contents(sections: tuple[Section, ...]) -> Html:
    links = [Html(f'<a href="#{escape(one.name)}">{escape(one.title)}</a>') for one in sections]
    return joined([Html('<nav aria-label="Sections">'), Html(" · ".join(links)), Html("</nav>")])
