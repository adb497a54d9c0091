"""Charts as text: SVG without scripts, each with a name, a description and its figures as a table."""

from queryveil.reports.charts.bars import Bar, BeforeAfter, bar_chart, paired_bar_chart
from queryveil.reports.charts.dots import Dot, dot_chart
from queryveil.reports.charts.lines import Line, line_chart

__all__ = ["Bar", "BeforeAfter", "Dot", "Line", "bar_chart", "dot_chart", "line_chart", "paired_bar_chart"]
