"""Pàmies-Estrems et al., figure 8: how long the de-anonymizers take."""

from __future__ import annotations

from time import process_time

from queryveil.attack import Seen
from queryveil.attack.rebuilding import Rebuilding
from queryveil.progress import step
from queryveil.reproduce.swap_fig6 import NAMES
from queryveil.reproduce.swap_material import Order
from queryveil.reproduce.swap_runs import ATTACKERS, KS, N_TIMES, SECONDS_NOTE, TIMED_ROWS, Run, Runs
from queryveil.reproduce.table import DRAWN_NOTE, OURS, THEIRS, Cell, Table, at_each, claim

COUNTING = ("rebuild_2", "rebuild_4")
"""The attackers that count how often a user waits."""
AFFECTED = 1.5


def build(runs: Runs) -> Table:
    """Give the microseconds a row of each attacker for each k."""
    times: dict[str, list[float]] = {}
    for k in KS:
        step(f"k={k}")
        seen = _release(runs, k=k)
        for attacker in ATTACKERS:
            each = attacker(k=k, seed=runs.seed)
            times.setdefault(each.name, []).append(_microseconds(each, seen))
    growth = {name: row[-1] / row[0] for name, row in times.items()}
    at_last = {name: row[-1] for name, row in times.items()}
    theirs: list[tuple[Cell, ...]] = [(name, THEIRS, *(None,) * len(KS)) for name in times]
    ours: list[tuple[Cell, ...]] = [(name, OURS, *(round(each, 3) for each in row)) for name, row in times.items()]
    return Table(
        name="swap-fig8",
        title="Pàmies-Estrems et al., figure 8: microseconds a row of the de-anonymizers",
        columns=("attacker", "whose", *NAMES),
        rows=(*theirs, *ours),
        notes=(
            *runs.material.notes,
            f"the first {TIMED_ROWS:,} rows of a release with l=2 at most, classified before; {SECONDS_NOTE}; each is "
            f"the least of {N_TIMES}",
            "ours count with two tables, so that a user's rows are never searched for; theirs is Python 2.7 on a "
            "1.8 GHz notebook",
            DRAWN_NOTE,
            claim(
                "those that count how often a user is in a pool are the slowest",
                holds=_stand_above(at_last),
                figures=at_each(at_last, at_last.values(), digits=3) + f" at {NAMES[-1]}",
            ),
            claim(
                "these are also more affected when k grows",
                holds=_stand_above(growth),
                figures=at_each(growth, growth.values(), digits=2) + f" times from {NAMES[0]} to {NAMES[-1]}",
            ),
            claim(
                "the one that goes by the rows so far is affected too",
                holds=growth["rebuild_3"] > AFFECTED,
                figures=f"{growth['rebuild_3']:.2f} times; {AFFECTED} is our limit",
            ),
        ),
    )


def _stand_above(figures: dict[str, float]) -> bool:
    """Whether all that count have more than any that does not."""
    others = [figure for name, figure in figures.items() if name not in COUNTING]
    return min(figures[name] for name in COUNTING) > max(others)


def _release(runs: Runs, *, k: int) -> Seen:
    order = Order.TIME if runs.has_times else Order.FILE
    pooled = runs.pooled(Run(k=k, l=2, order=order))
    log = pooled.released.with_frame(pooled.released.frame.head(TIMED_ROWS))
    return Seen.of(log, category=pooled.category.head(TIMED_ROWS).to_numpy())


def _microseconds(attacker: Rebuilding, seen: Seen) -> float:
    attacker.guess(seen)
    times = []
    for _ in range(N_TIMES):
        start = process_time()
        attacker.guess(seen)
        times.append(process_time() - start)
    return 1e6 * min(times) / max(1, seen.n_rows)
