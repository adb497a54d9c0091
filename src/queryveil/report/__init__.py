"""Say in one page what a release promises, whether it holds, and what it cost.

`queryveil.report(release)` is the verb `queryveil.report.report`: the package can be called.
"""

from queryveil.callable_package import make_callable
from queryveil.report.building import report
from queryveil.report.document import in_short
from queryveil.report.html import render_html
from queryveil.report.markdown import render_markdown
from queryveil.report.value import Judgement, Report, State
from queryveil.report.writing import ReportFormat, check_report_target, render, report_format, write_whole

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

make_callable(__name__, verb="report")
