"""Kernels where they can be kept between runs, and where they cannot."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from queryveil import progress
from queryveil.kernels import EACH_TIME, ONCE

SOURCE = Path(__file__).resolve().parents[1] / "src" / "queryveil"
SORTS = """
import numpy as np
from queryveil import progress
from queryveil.cli.output import show_notice
from queryveil.kernels import counter
with progress.handle_notices(show_notice):
    from queryveil.data.rows import sort_in_place
    for kind in (np.int32, np.int64):
        values = np.array([3, 1, 2], kind)
        sort_in_place(values)
        print(values.tolist())
print(counter.n_compiled > 0)
"""


def package_without_caches(folder: Path) -> Path:
    """Return a folder with the package in which nothing can be kept: links, and a file where the caches would lie."""
    for path in [SOURCE, *SOURCE.rglob("*")]:
        place = folder / "queryveil" / path.relative_to(SOURCE)
        if path.name == "__pycache__" or path.parent.name == "__pycache__":
            continue
        if path.is_dir():
            place.mkdir(parents=True)
            (place / "__pycache__").touch()
        else:
            place.symlink_to(path)
    return folder


def sort(package: Path, **variables: str) -> CompletedProcess[str]:
    kept = {name: text for name, text in os.environ.items() if not name.startswith("NUMBA_")}
    # No home, and no cache of the user's.
    nowhere = {"HOME": "/dev/null", "XDG_CACHE_HOME": "/dev/null/cache", "PYTHONPATH": str(package)}
    command = [sys.executable, "-c", SORTS]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=kept | nowhere | variables)


@pytest.mark.slow
def test_where_nothing_can_be_kept_kernels_work_and_a_notice_says_so_once(tmp_path: Path) -> None:
    done = sort(package_without_caches(tmp_path))
    assert (done.stdout.splitlines(), done.stderr) == (["[1, 2, 3]"] * 2 + ["True"], f"queryveil: {EACH_TIME}\n")
    # Nor does a list of folders that has none which will do stop anybody.
    none = sort(tmp_path, NUMBA_CACHE_LOCATOR_CLASSES="UserProvidedCacheLocator")
    assert (none.stdout, none.stderr) == (done.stdout, done.stderr)


@pytest.mark.slow
def test_what_was_compiled_ahead_is_used_by_those_who_cannot_write_there(tmp_path: Path) -> None:
    package, ahead = package_without_caches(tmp_path / "package"), tmp_path / "ahead"
    first = sort(package, NUMBA_CACHE_DIR=str(ahead))
    # Told on a terminal only.
    assert (first.stdout.splitlines()[-1], first.stderr) == ("True", "")
    files = sorted(ahead.rglob("*.nb*"))
    assert files
    read_only = "queryveil.kernels._CompiledAhead"
    again = sort(package, NUMBA_CACHE_DIR=str(ahead), NUMBA_CACHE_LOCATOR_CLASSES=read_only)
    assert (again.stdout.splitlines(), again.stderr) == (["[1, 2, 3]"] * 2 + ["False"], "")
    assert sorted(ahead.rglob("*.nb*")) == files


def test_every_kernel_is_declared_by_the_one_decorator_that_works_everywhere() -> None:
    for path in SOURCE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if path != SOURCE / "kernels.py":
            assert "numba import njit" not in text, path.name
            assert "nb.njit" not in text, path.name
            assert "numba.njit" not in text, path.name


def test_a_process_that_another_started_leaves_notices_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_handlers", [])
    monkeypatch.setattr(progress, "_shown", set())
    with pytest.warns(RuntimeWarning, match="here"):
        progress.notify("it is shown here")
    progress.ignore_notices()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        progress.notify("it is shown elsewhere")


def test_compiling_is_announced_in_a_line_that_names_the_way_out() -> None:
    assert "NUMBA_CACHE_DIR" in EACH_TIME
    assert "queryveil warm-up" in ONCE
