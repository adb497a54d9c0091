"""Say in one page what a release promises, whether it holds, and what it cost."""

from queryveil.reports._document import in_short
from queryveil.reports.building import report
from queryveil.reports.render import (
    check_report_format,
    check_report_target,
    render,
    render_html,
    render_markdown,
    write_whole,
)
from queryveil.reports.value import Report, State

__all__ = [
    "Report",
    "State",
    "check_report_format",
    "check_report_target",
    "in_short",
    "render",
    "render_html",
    "render_markdown",
    "report",
    "write_whole",
]
