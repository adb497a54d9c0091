"""How many modules a command goes through, and how often one module calls another: `python -m benchmarks.walks`.

Counted by `sys.setprofile` on a made-up log of 300 users: calls from a function of one module of queryveil to a
function of another, in this thread and those that it starts. With `PYTHONPATH=OTHER/src`, those of another checkout.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

import queryveil
from queryveil.cli import main as program


def walk(run: Callable[[], object]) -> tuple[int, int]:
    """Return the modules that take part in calls between modules, and the number of these calls."""
    calls: Counter[tuple[str, str]] = Counter()

    def note(frame: FrameType, event: str, _argument: Any) -> None:
        if event == "call" and frame.f_back is not None:
            pair = frame.f_back.f_globals.get("__name__", ""), frame.f_globals.get("__name__", "")
            if pair[0] != pair[1] and all(name.startswith("queryveil.") for name in pair):
                calls[pair] += 1

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return len({name for pair in calls for name in pair}), sum(calls.values())


def command(*words: object) -> Callable[[], None]:
    """Return what runs a command in this process."""

    def run() -> None:
        with contextlib.suppress(SystemExit):
            program([str(word) for word in words])

    return run


def main() -> None:
    """Walk through four commands and print a table."""
    with TemporaryDirectory() as folder:
        log, release = Path(folder) / "log.tsv", Path(folder) / "release"
        command("synth", log, "--users", 300, "--seed", 1)()
        key = Path(folder) / "key"
        key.write_bytes(b"k" * 32)
        walks = {
            "anonymize km": ("anonymize", "km", log, "-o", release, "--k", 5, "--m", 2, "--ids", "keyed", "--key", key),
            "verify": ("verify", release),
            "attack": ("attack", log, release, "--key", key, "--seed", 1),
            "report": ("report", release, "--original", log, "--key", key, "--seed", 1),
        }
        print(f"queryveil {queryveil.__version__}")
        for name, words in walks.items():
            with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere):
                n_modules, n_calls = walk(command(*words))
            print(f"{name:14} {n_modules:4} modules {n_calls:7,} calls")


if __name__ == "__main__":
    main()
