"""A report as a file, whole or not at all."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

import msgspec

from queryveil.errors import BadFile, BadParameter, NotWritten
from queryveil.report.html import render_html
from queryveil.report.markdown import render_markdown
from queryveil.report.value import Report


class ReportFormat(StrEnum):
    """How a report can be written; the names are those of files."""

    HTML = "html"
    MD = "md"
    JSON = "json"


def render(report: Report, *, format: ReportFormat | str = ReportFormat.HTML) -> str:  # noqa: A002 - as read_log has it
    """Write a report as HTML, Markdown or JSON."""
    match report_format(format):
        case ReportFormat.HTML:
            return render_html(report)
        case ReportFormat.MD:
            return render_markdown(report)
        case ReportFormat.JSON:
            return msgspec.json.format(msgspec.json.encode(report.to_dict()), indent=2).decode() + "\n"


def report_format(name: str) -> ReportFormat:
    """Take a format by its name."""
    try:
        return ReportFormat(name)
    except ValueError:
        raise BadParameter("format", name, allowed="html, md or json") from None


def check_report_target(path: Path, *, force: bool) -> None:
    """Raise if a report may not be written there; better before the work than after it."""
    if not path.absolute().parent.is_dir():
        raise BadParameter("output", str(path), allowed="a file in a folder that is there")
    if path.is_dir() or (os.path.lexists(path) and not force):
        way_out = "is a folder; name a file" if path.is_dir() else "is already there; replace it with --force"
        raise BadFile(str(path), way_out)


def write_whole(text: str, path: Path) -> None:
    """Write a file beside its place and put it there when it is whole; what stood there is replaced."""
    partial = path.with_name(f".{path.name}.partial-{secrets.token_hex(8)}")
    try:
        with partial.open("xb") as file:
            file.write(text.encode("utf-8", errors="replace"))
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        raise NotWritten(str(path), error.strerror) from None
    finally:
        with suppress(OSError):
            partial.unlink()
