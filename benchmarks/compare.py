"""A comparison of all methods: where the time goes by run and step, at two sizes, and in several processes."""

from __future__ import annotations

import os
import time

from queryveil.cli.output import print_table
from queryveil.comparison import compare, default_plan
from queryveil.comparison.judged import ComparisonInput, Judged, judge, name_of
from queryveil.synthesis import synthesize

SIZES = (5_000, 20_000)
STEPS = ("anonymize", "verify", "pair", "attack", "measure")
SEED = 3


def input_of(users: int) -> ComparisonInput:
    """Make up a log and leave a quarter of its users out, as `compare` does."""
    return ComparisonInput(log=synthesize(users=users, seed=SEED).log, seed=SEED).with_holdout(0.25)


def judge_every_run(inputs: ComparisonInput) -> list[Judged]:
    """Do the default plan, one run after another."""
    return [judge(run, inputs) for run in (None, *default_plan().runs)]


def by_step(users: int, results: list[Judged]) -> None:
    """Show the seconds of each run and step."""
    rows = [
        (each.name, *(f"{each.seconds.get(step, 0):.2f}" for step in STEPS), f"{sum(each.seconds.values()):.2f}")
        for each in results
    ]
    totals = [sum(each.seconds.get(step, 0) for each in results) for step in STEPS]
    rows.append(("all", *(f"{total:.2f}" for total in totals), f"{sum(totals):.2f}"))
    print_table(["run", *STEPS, "all"], rows, title=f"seconds at {users:,} users, a quarter of them held out")
    print()


def growth(results: dict[int, list[Judged]]) -> None:
    """Show how many times longer each run takes with more users."""
    few, many = SIZES
    rows = []
    for small, large in zip(results[few], results[many], strict=True):
        took = [sum(each.seconds.values()) for each in (small, large)]
        rows.append((name_of(small.run), *(f"{each:.2f} s" for each in took), f"{took[1] / took[0]:.1f}"))
    print_table(["run", f"{few:,}", f"{many:,}", "times"], rows, title=f"growth for {many / few:.0f} times the users")
    print()


def in_processes(users: int) -> None:
    """Show the whole verb, from a log in memory to a comparison."""
    log = synthesize(users=users, seed=SEED).log
    jobs = os.cpu_count() or 1
    started = time.perf_counter()
    compare(log, jobs=jobs, seed=SEED)
    print(f"all runs at {users:,} users with {jobs} jobs: {time.perf_counter() - started:.1f} s")


if __name__ == "__main__":
    # Once, so that no time below holds the compiling.
    judge_every_run(input_of(500))
    found = {users: judge_every_run(input_of(users)) for users in SIZES}
    for users, results in found.items():
        by_step(users, results)
    growth(found)
    in_processes(SIZES[-1])
