"""Settings for all tests."""

from __future__ import annotations

import gc
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from tests.support.examples import IS_QUICK, N_QUICK, N_SOAKING, SOAKS

TESTS = Path(__file__).resolve().parent
COMPILING_FOLDERS = ("methods", "checks")
"""Tests that run most kernels; whatever starts a process of its own finds them in Numba's cache afterwards."""
SLOW_FOLDERS = ("papers", "spark")
SLOW_FIXTURES = {"run_apart", "server", "broker"}
"""A process, a server or a broker of its own for a test."""

# What programs keep for their user, fonts and settings of a browser for example, stays in the checkout, and so does
# what they keep for a while. The path of a socket may have 107 bytes, of which Chromium needs 48.
HOME = TESTS.parent / ".test-home"
SCRATCH = HOME / "t"
SCRATCH.mkdir(parents=True, exist_ok=True)
os.environ["HOME"] = str(HOME)
for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
    os.environ.pop(name, None)
if len(os.fsencode(SCRATCH)) < 60:
    os.environ["TMPDIR"] = tempfile.tempdir = str(SCRATCH)

# Few rows do not repay the second compiler of the JVM, and Spark's classes need not be verified at each of its starts.
# What it keeps for tools that watch it would lie in /tmp.
JVM = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData "
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
OF_SPARK = {f"spark.{who}.defaultJavaOptions": f'{JVM} -Djava.io.tmpdir="{SCRATCH}"' for who in ("driver", "executor")}
os.environ["SPARK_LAUNCHER_OPTS"] = JVM
os.environ["PYSPARK_SUBMIT_ARGS"] = " ".join(
    [*(f"--conf '{name}={value}'" for name, value in OF_SPARK.items()), "pyspark-shell"]
)

# Modules are compiled once, not by each worker and each process that a test starts.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Threads that wait for a kernel leave the core to others.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# Scripts that tests start as processes of their own import from tests.support, too.
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(TESTS.parent), os.environ.get("PYTHONPATH"))))

# The first call of a kernel compiles it, so single examples may take seconds.
settings.register_profile("house", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.register_profile("soak", parent=settings.get_profile("house"), max_examples=N_SOAKING)
settings.register_profile("quick", parent=settings.get_profile("house"), max_examples=N_QUICK)
settings.load_profile("soak" if SOAKS else "quick" if IS_QUICK else "house")


def pytest_configure(config: pytest.Config) -> None:
    # The process that only hands tests to the others loads no Numba.
    if hasattr(config, "workerinput") or not getattr(config.option, "numprocesses", None):
        from tests.support.kernels import compile_once

        compile_once()


def pytest_collection_finish() -> None:
    """What is loaded stays: Python need not look through it for what it can throw away."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give a worker one file at a time, and one worker all that needs a session of Spark: a JVM is dear."""
    from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

    class Scheduling(LoadFileScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            scope: str = super()._split_scope(nodeid)
            return "tests/spark" if scope.startswith("tests/spark/") and "cluster" not in scope else scope

    return Scheduling(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is slow by its folder or fixtures, and put the files that take long first."""
    n_slow: dict[Path, int] = {}
    folders = {}
    for item in items:
        folder = item.path.relative_to(TESTS).parts[0] if item.path.is_relative_to(TESTS) else ""
        if folder in SLOW_FOLDERS or SLOW_FIXTURES & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)
        n_slow[item.path] = n_slow.get(item.path, 0) + (item.get_closest_marker("slow") is not None)
        folders[item.path] = folder
    # Workers take files in this order: a long one at the end would leave the others idle.
    items.sort(
        key=lambda item: (
            folders[item.path] != "spark",
            folders[item.path] not in COMPILING_FOLDERS,
            -n_slow[item.path],
        )
    )
