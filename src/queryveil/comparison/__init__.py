"""Compare methods on one log by re-identification and utility."""

from queryveil.comparison.comparison import Comparison, Row
from queryveil.comparison.judged import Judged
from queryveil.comparison.methods import build_method, method_of, remake_of
from queryveil.comparison.page import render_html
from queryveil.comparison.plan import Plan, Run, default_plan, plan_of, read_plan
from queryveil.comparison.running import compare

__all__ = [
    "Comparison",
    "Judged",
    "Plan",
    "Row",
    "Run",
    "build_method",
    "compare",
    "default_plan",
    "method_of",
    "plan_of",
    "read_plan",
    "remake_of",
    "render_html",
]
