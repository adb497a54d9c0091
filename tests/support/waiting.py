"""The one place that says how long a test waits for what happens elsewhere: longer, the busier the machine is."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from typing import Any

_CORES = os.cpu_count() or 1
_SPARE = 4.0
"""How much slower than alone a process may be before it counts as hanging, beside what the load explains."""


def patience(seconds: float = 30.0) -> float:
    """Return the seconds to wait for what takes at most `seconds` on an idle machine."""
    # The load counts processes that want a core; it lags behind, so two processes a core are assumed at least.
    return seconds * _SPARE * max(2.0, os.getloadavg()[0] / _CORES)


def until(holds: Callable[[], Any], *, process: subprocess.Popen[Any] | None = None, seconds: float = 30.0) -> None:
    """Wait until something holds that happens elsewhere; fail when `process`, which should do it, has ended."""
    began = time.monotonic()
    while not holds():
        if process is not None and process.poll() is not None and not holds():
            raise AssertionError(f"the process has ended with exit code {process.returncode}")
        # Asked again each time: the load may have risen since the wait began.
        if time.monotonic() - began > patience(seconds):
            raise AssertionError(f"it did not happen in {time.monotonic() - began:.0f} seconds")
        time.sleep(0.01)
