"""Charts as text: SVG without scripts, each with a name, a description and its figures as a table."""

from queryveil.report.charts.bars import Bar, bar_chart
from queryveil.report.charts.dots import Dot, dot_chart
from queryveil.report.charts.lines import Line, line_chart
from queryveil.report.charts.paired_bars import BeforeAfter, paired_bar_chart

__all__ = ["Bar", "BeforeAfter", "Dot", "Line", "bar_chart", "dot_chart", "line_chart", "paired_bar_chart"]
