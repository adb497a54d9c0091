"""How many examples a property is tried on: few where one is dear or in haste, and many when the tests soak."""

from __future__ import annotations

import os

from hypothesis import settings

SOAKS = bool(os.environ.get("QUERYVEIL_SOAK"))
"""Whether there is time: `make soak` sets it."""
N_SOAKING = 2000
IS_QUICK = bool(os.environ.get("QUERYVEIL_QUICK"))
"""Whether somebody waits: `make quick` sets it."""
N_QUICK = 10


def examples(n: int) -> settings:
    """Return the settings of a property that `n` examples are enough for."""
    return settings(max_examples=N_SOAKING if SOAKS else min(n, N_QUICK) if IS_QUICK else n)
