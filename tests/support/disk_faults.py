"""Fail or kill a piece of work at each of its calls to the disk, one after the other, also those of native code.

A library that is loaded before all others (`disk_faults.c`, built here) counts the calls that touch one folder: open,
write, truncate, fsync, rename, link, mkdir, rmdir and unlink, or else allocations of memory. At the chosen one it
returns an error or kills the process. A `Trial` forks a process for each point, so that modules are loaded once.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import random
import shutil
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import pytest
from tests.support.examples import SOAKS

_SOURCE = Path(__file__).with_suffix(".c")
_ROOT = Path(__file__).resolve().parents[2]
NO_MEMORY = "no memory"
MODES = {"count": 1, "fail once": 2, "fail from then on": 3, "kill": 4, "write half": 5, NO_MEMORY: 2}
KILLED = -9


def run_faulty(script: Path, *arguments: object, home: Path) -> list[str]:
    """Run a script in which the disk can fail, and return the lines it prints; skip where nothing can be compiled."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("faults of native code are injected by a library that needs a C compiler and Linux")
    library = home / "disk_faults.so"
    command = [compiler, "-O1", "-shared", "-fPIC", "-o", str(library), str(_SOURCE), "-ldl"]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    if built.returncode:
        pytest.skip("the C compiler lacks the headers of the system")
    environment = {**os.environ, "LD_PRELOAD": str(library), "PYTHONMALLOC": "malloc", "POLARS_MAX_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-m", ".".join(script.relative_to(_ROOT).with_suffix("").parts), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        cwd=_ROOT,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a forked process ended: its exit code, negative for a signal, and what it returned or why it did not."""

    code: int
    told: str
    lacked_memory: bool = False


def in_child(work: Callable[[], object]) -> Ended:
    """Do work in a forked process."""
    ear, mouth = os.pipe()
    child = os.fork()
    if not child:
        os.close(ear)
        code = 0
        try:
            told = json.dumps(work())
        except BaseException as error:
            code, told = 1, f"{type(error).__name__}: {error}\n{traceback.format_exc()}"
        with suppress(OSError):
            os.write(mouth, told.encode(errors="replace")[:60_000])
        os._exit(code)
    os.close(mouth)
    with os.fdopen(ear, "rb") as file:
        told = file.read().decode()
    return Ended(code=os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), told=told)


@dataclass(slots=True, kw_only=True)
class Trial:
    """A piece of work, and what must hold after it has failed at any point.

    - `home`: the folder whose calls count; it is empty before each round.
    - `prepare`: makes what is there before the work; run once, and copied for each round.
    - `work`: what fails.
    - `check`: raises if something is wrong afterwards; it is told how the work ended, and runs in a process of its own.
    - `modes`: what happens at a point, and how many points are tried; when the tests soak, all of them are, and of
      allocations, which are thousands, twenty times as many.
    """

    home: Path
    prepare: Callable[[], object]
    work: Callable[[], object]
    check: Callable[[Ended], object]
    modes: Mapping[str, int]
    n_points: int = field(default=0, init=False)

    def run(self) -> Iterator[str]:
        """Yield a line for each point after which something is wrong, and at last how many points were tried."""
        kept = self.home.with_name(f"{self.home.name}-before")
        self.home.mkdir()
        first = in_child(self.prepare)
        assert first.code == 0, first.told
        self.home.rename(kept)
        traces = {memory: self._trace(kept, memory=memory) for memory in {mode == NO_MEMORY for mode in self.modes}}
        for mode, most in self.modes.items():
            trace = traces[mode == NO_MEMORY]
            places = [n for n, call in enumerate(trace, 1) if mode != "write half" or call.startswith("write")]
            for at in _sample(places, most=(20 * most if mode == NO_MEMORY else len(places)) if SOAKS else most):
                self._renew(kept)
                ended = in_child(partial(self._armed, mode, at))
                found = in_child(partial(self.check, replace(ended, lacked_memory=mode == NO_MEMORY)))
                # Threads of a busy machine may have called the disk less often than in the round that was traced.
                was_reached = ended.code != 0 or int(ended.told) >= at
                self.n_points += was_reached
                if found.code or (mode == "kill" and was_reached and ended.code != KILLED):
                    place = f"{mode} at {at} of {len(trace)} ({trace[at - 1].replace(str(self.home), '')})"
                    yield f"{place}: ended {ended.code} {ended.told} -> {found.told}"
        yield f"{self.n_points} points"

    def _renew(self, kept: Path) -> None:
        shutil.rmtree(self.home, ignore_errors=True)
        shutil.copytree(kept, self.home, symlinks=True)

    def _trace(self, kept: Path, *, memory: bool) -> list[str]:
        """Return the calls of work that goes well, in their order."""
        self._renew(kept)
        calls = self.home.with_name(f"{self.home.name}-calls")
        descriptor = os.open(calls, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        done = in_child(lambda: self._armed("count", 0, memory=memory, trace=-1 if memory else descriptor))
        os.close(descriptor)
        assert done.code == 0, done.told
        return ["allocate memory"] * int(done.told) if memory else calls.read_text().splitlines()

    def _armed(self, mode: str, at: int, *, memory: bool | None = None, trace: int = -1) -> object:
        library, memory = ctypes.CDLL(None), mode == NO_MEMORY if memory is None else memory
        error = errno.ENOMEM if memory else (errno.EIO, errno.ENOSPC)[at % 2]
        library.faults_arm(os.fsencode(f"{self.home}/"), MODES[mode], ctypes.c_long(at), error, trace, int(memory))
        try:
            self.work()
        finally:
            n_seen = library.faults_seen()
        return n_seen


def _sample(places: list[int], *, most: int) -> list[int]:
    if len(places) <= most:
        return places
    # The first and the last calls are those that begin and end things.
    ends = {*places[: most // 8], *places[len(places) - most // 4 :]}
    others = [place for place in places if place not in ends]
    return sorted(ends.union(random.Random(most).sample(others, most - len(ends))))
