"""Fair timing on a noisy machine: candidates take turns, the best of several rounds counts."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from queryveil.cli.output import print_table


def take_turns(candidates: Mapping[str, Callable[[], object]], *, rounds: int = 3) -> dict[str, float]:
    """Run every candidate once a round and give the shortest time of each in seconds."""
    best = dict.fromkeys(candidates, float("inf"))
    for _ in range(rounds):
        for name, run in candidates.items():
            started = time.perf_counter()
            run()
            best[name] = min(best[name], time.perf_counter() - started)
    return best


def print_ratios(title: str, seconds: Mapping[str, float], *, ours: str) -> None:
    """Print each candidate's time and how ours compares with it."""
    rows = [(name, f"{took:.3f} s", f"{seconds[ours] / took:.4f}") for name, took in seconds.items()]
    print_table(["", "best", "ours / this"], rows, title=title)
    print()
