"""Say in one page what a release promises, whether it holds, and what it cost."""

from queryveil.reports._document import in_short
from queryveil.reports.building import report
from queryveil.reports.render import (
    ReportFormat,
    check_report_target,
    render,
    render_html,
    render_markdown,
    report_format,
    write_whole,
)
from queryveil.reports.value import Judgement, Report, State

__all__ = [
    "Judgement",
    "Report",
    "ReportFormat",
    "State",
    "check_report_target",
    "in_short",
    "render",
    "render_html",
    "render_markdown",
    "report",
    "report_format",
    "write_whole",
]
