"""A report as Markdown, for mails and wikis: tables stand for the pictures."""

from __future__ import annotations

import re

from queryveil.html_tables import Cell, number
from queryveil.report.blocks import Block, Bullets, Commands, Paragraph, Picture, Table
from queryveil.report.document import document_of
from queryveil.report.value import Report

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~&@]|:(?=//)|(?<=www)\.)", re.IGNORECASE)
"""Among these what would become an entity, a mention or a link."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""What a terminal takes for an order, and what turns the text after it round."""


def render_markdown(report: Report) -> str:
    """Give the whole text."""
    document = document_of(report)
    figures = [
        f"- {escape(one.label)}: **{escape(one.value)}**{f' ({escape(one.note)})' if one.note else ''}"
        for one in document.figures
    ]
    lines = [f"# {escape(document.title)}", "", f"**{escape(document.badge)}.** {escape(document.summary)}", ""]
    lines += [*([f"> {escape(document.alert)}", ""] if document.alert else []), *figures]
    for section in document.sections:
        lines += ["", f"## {escape(section.title)}"]
        for block in section.blocks:
            lines += _block(block)
    return "\n".join([*lines, "", escape(document.footer), ""])


def escape(text: str) -> str:
    r"""Make text mean itself in Markdown, on one line.

    >>> print(escape("a*b_c <b>"))
    a\*b\_c \<b\>
    """
    return _SPECIAL.sub(r"\\\1", _plain(" ".join(text.split())))


def _plain(text: str) -> str:
    return _CONTROL.sub("\ufffd", text)


def _block(block: Block) -> list[str]:
    match block:
        case Paragraph(text=text, kind="quote" | "warning"):
            return ["", f"> {escape(text)}"]
        case Paragraph(text=text):
            return ["", escape(text)]
        case Bullets(items=items):
            return ["", *(f"- {escape(item)}" for item in items)]
        case Table():
            return _table(block)
        case Commands(lines=lines):
            # Indented: a folder may be called anything, and a name with three ticks would end a fence.
            return ["", *(f"    {_plain(line)}" for line in lines)]
        case Picture(instead=table):
            return [] if table is None else _table(table)


def _table(block: Table) -> list[str]:
    caption = ["", f"**{escape(block.caption)}**"] if block.caption else []
    rows = [[_cell(cell) for cell in row] for row in block.rows]
    lines = [[escape(name) for name in block.columns], ["---"] * len(block.columns), *rows]
    return [*caption, "", *(f"| {' | '.join(line)} |" for line in lines)]


def _cell(cell: Cell) -> str:
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    return escape(cell if isinstance(cell, str) else number(cell))
