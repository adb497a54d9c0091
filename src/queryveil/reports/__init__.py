"""Say in one page what a release promises, whether it holds, and what it cost."""

from queryveil.reports._document import in_short
from queryveil.reports.building import report
from queryveil.reports.render import render, render_html, render_markdown, write_whole
from queryveil.reports.value import Report, State

__all__ = ["Report", "State", "in_short", "render", "render_html", "render_markdown", "report", "write_whole"]
