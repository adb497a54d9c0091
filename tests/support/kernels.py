"""Numba's kernels, compiled once for all processes of the tests: `python -m tests.support.kernels` compiles most."""

from __future__ import annotations

import fcntl
import multiprocessing
import os
from pathlib import Path
from typing import Any

from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher

_LOCKS = Path(__file__).resolve().parents[2] / ".test-home" / "kernels"


def compile_once() -> None:
    """Let a kernel that another process compiles just now be waited for, and read from Numba's cache.

    To be called once in a process.
    """
    compile_here, held = Dispatcher.compile, set[str]()
    _LOCKS.mkdir(parents=True, exist_ok=True)

    def compile_or_wait(self: Any, sig: Any) -> Any:
        name = f"{self.py_func.__module__}.{self.py_func.__qualname__}"
        if not name.startswith("queryveil.") or name in held:
            return compile_here(self, sig)
        # A kernel locks those that it calls, never the other way round, so two processes cannot wait for each other.
        with global_compiler_lock, (_LOCKS / name).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            held.add(name)
            try:
                return compile_here(self, sig)
            finally:
                held.remove(name)
                # Not left to the closing: a process that was forked meanwhile has the file open, too.
                fcntl.flock(lock, fcntl.LOCK_UN)

    Dispatcher.compile = compile_or_wait  # type: ignore[method-assign]


def main() -> None:
    """Compile what the methods use, in as many processes as there are cores."""
    from queryveil.comparison.methods import METHODS
    from queryveil.comparison.warming import compile_for

    with multiprocessing.get_context("spawn").Pool(os.cpu_count(), compile_once) as processes:
        processes.map(compile_for, METHODS, chunksize=1)


if __name__ == "__main__":
    main()
