"""For authors of methods: conformance checks, example logs and Hypothesis strategies."""

from queryveil.testing.conformance import Check, OnEngine, checks_for
from queryveil.testing.logs import five_baskets, food, log_of, tiny_log

__all__ = ["Check", "OnEngine", "checks_for", "five_baskets", "food", "log_of", "tiny_log"]
