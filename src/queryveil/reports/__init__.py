"""Say in one page what a release promises, whether it holds, and what it cost."""

from queryveil.reports._assessment_section import decision
from queryveil.reports._document import in_short
from queryveil.reports.building import report
from queryveil.reports.render import render, render_html, render_markdown, write_whole
from queryveil.reports.value import Circumstances, Report, State

__all__ = ["Circumstances", "Report", "State", "decision", "in_short", "render", "render_html", "render_markdown"]
__all__ += ["report", "write_whole"]
