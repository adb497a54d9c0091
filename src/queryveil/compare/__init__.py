"""Put methods side by side on one log: what each keeps, and what attackers find in it.

`queryveil.compare(log, plan)` is the verb `queryveil.compare.compare`: the package can be called.
"""

from queryveil.callable_package import make_callable
from queryveil.compare.comparison import Comparison, Row
from queryveil.compare.judged import Judged
from queryveil.compare.methods import build_method, method_of, remake_of
from queryveil.compare.page import render_html
from queryveil.compare.plan import Plan, Run, default_plan, plan_of, read_plan
from queryveil.compare.running import compare

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

make_callable(__name__, verb="compare")
