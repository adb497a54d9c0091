"""Compare methods on one log by re-identification and utility."""

from queryveil.comparison.comparison import Comparison
from queryveil.comparison.methods import method_of
from queryveil.comparison.plan import Plan, Run, default_plan, plan_of, read_plan
from queryveil.comparison.running import compare

__all__ = ["Comparison", "Plan", "Run", "compare", "default_plan", "method_of", "plan_of", "read_plan"]
