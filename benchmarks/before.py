"""This checkout against another one, such as the state before a change: processor seconds of the same work, in turns.

    python -m benchmarks.before --other ../queryveil-before [--users N] [--rounds N] [--repeats N] [--only km,stream]

Each piece of work runs in a process of its own with the sources of one checkout, once to warm up and then `--repeats`
times; checkouts take turns, and the least of all runs counts. `stream` is the service from a file to a file with its
state in SQLite, its worker processes included.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import queryveil

WORK = ("km", "clump", "kdelta", "plink", "swap", "stream")


def measured(name: str, folder: Path, *, repeats: int) -> float:
    """Return the processor seconds of one piece of work, in this process and those it waited for: the least of all."""
    run = task(name, folder)
    run()
    least = float("inf")
    for _ in range(repeats):
        started = _seconds()
        run()
        least = min(least, _seconds() - started)
    return least


def _seconds() -> float:
    """Return the processor seconds of this process, finely, and of those it waited for, in hundredths."""
    children = os.times()
    return time.process_time() + children.children_user + children.children_system


def task(name: str, folder: Path) -> Callable[[], object]:
    """Return a piece of work, made of names that every version exports."""
    log = queryveil.read_log(folder / "log.tsv")
    methods: dict[str, Callable[[], Any]] = {
        "km": lambda: queryveil.Km(k=5, m=3, seed=1),
        "clump": lambda: queryveil.Clump(k=5, taxonomy=queryveil.Taxonomy.wordnet(), seed=1),
        "kdelta": lambda: queryveil.Kdelta(k=5, seed=1),
        "plink": lambda: queryveil.Plink(p=0.2, seed=1),
        "swap": lambda: queryveil.Swap(k=10, seed=1),
    }
    if name in methods:
        return lambda: methods[name]().anonymize(log)

    def stream() -> None:
        key = folder / "key"
        key.write_bytes(b"k" * 32)
        with TemporaryDirectory() as out:
            ends = [
                "--source",
                str(folder / "log.tsv"),
                "--sink",
                f"{out}/released.jsonl",
                "--store",
                f"{out}/state.db",
            ]
            command = [sys.executable, "-m", "queryveil", "stream", *ends, "--key", str(key)]
            subprocess.run(command, check=True, capture_output=True, env=os.environ)

    return stream


def main() -> None:
    """Parse the options, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--other", type=Path, required=True, help="another checkout of queryveil")
    parser.add_argument("--users", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", default=",".join(WORK))
    given = parser.parse_args()
    here = Path(__file__).resolve().parents[1]
    best: dict[tuple[str, Path], float] = {}
    with TemporaryDirectory() as folder:
        synth = [
            sys.executable,
            "-m",
            "queryveil",
            "synth",
            f"{folder}/log.tsv",
            "--users",
            str(given.users),
            "--seed",
            "1",
        ]
        subprocess.run(synth, check=True, capture_output=True, env=_environment(here))
        for name in given.only.split(","):
            for _ in range(given.rounds):
                for checkout in (given.other.resolve(), here):
                    command = [sys.executable, __file__, "--measure", name, folder, str(given.repeats)]
                    done = subprocess.run(
                        command, check=True, capture_output=True, text=True, env=_environment(checkout)
                    )
                    seconds = float(done.stdout.splitlines()[-1])
                    best[name, checkout] = min(best.get((name, checkout), float("inf")), seconds)
            other, ours = best[name, given.other.resolve()], best[name, here]
            print(f"{name:8} other {other:7.3f} s   here {ours:7.3f} s   here / other {ours / other:.3f}", flush=True)


def _environment(checkout: Path) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(checkout / "src")}


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        print(measured(sys.argv[2], Path(sys.argv[3]), repeats=int(sys.argv[4])))
    else:
        main()
