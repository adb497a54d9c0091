"""Settings for all tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from tests.support.examples import N_SOAKING, SOAKS

TESTS = Path(__file__).resolve().parent
SLOW_FOLDERS = ("papers", "spark")
SLOW_FIXTURES = {"run_apart", "server", "broker"}
"""A process, a server or a broker of its own for a test."""

# What programs keep for their user, fonts and settings of a browser for example, stays in the checkout.
os.environ["HOME"] = str(TESTS.parent / ".test-home")
Path(os.environ["HOME"]).mkdir(exist_ok=True)
for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
    os.environ.pop(name, None)

# Scripts that tests start as processes of their own import from tests.support, too.
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(TESTS.parent), os.environ.get("PYTHONPATH"))))

# The first call of a kernel compiles it, so single examples may take seconds.
settings.register_profile("house", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.register_profile("soak", parent=settings.get_profile("house"), max_examples=N_SOAKING)
settings.load_profile("soak" if SOAKS else "house")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is slow by its folder or fixtures, and put the files with the most slow tests first."""
    n_slow: dict[Path, int] = {}
    for item in items:
        inside = item.path.is_relative_to(TESTS) and item.path.relative_to(TESTS).parts[0] in SLOW_FOLDERS
        if inside or SLOW_FIXTURES & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)
        n_slow[item.path] = n_slow.get(item.path, 0) + (item.get_closest_marker("slow") is not None)
    # Workers take files in this order: a long one at the end would leave the others idle.
    items.sort(key=lambda item: -n_slow[item.path])
