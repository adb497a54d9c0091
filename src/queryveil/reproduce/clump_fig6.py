"""Fard and Wang, figure 6: what the number of open clusters does to Clump1."""

from __future__ import annotations

from itertools import pairwise

from queryveil.methods.clump_core import COMPARE_UP_TO
from queryveil.reproduce.clump_runs import METHODS_NOTE, Method, R, Run, Runs
from queryveil.reproduce.table import DRAWN_NOTE, OURS, THEIRS, Cell, Table, claim

K = 5
RS = (5, 10, 30, 50, 100)
GOOD = 2


def build(runs: Runs) -> Table:
    """Give the total distortion at k=5 for each r."""
    methods = (Method.CLUMP1, Method.REFINED)
    runs.make(Run(method=method, k=K, r=r) for method in methods for r in RS)
    ours = {method: [runs.cost(Run(method=method, k=K, r=r)).distortion for r in RS] for method in methods}
    rows: list[tuple[Cell, ...]] = [(str(Method.CLUMP1), THEIRS, *(None,) * len(RS))]
    rows += [(str(method), OURS, *(round(figure) for figure in figures)) for method, figures in ours.items()]
    return Table(
        name="clump-fig6",
        title="Fard and Wang, figure 6: effect of r on the information loss (total GGD), k=5",
        columns=("method", "whose", *(f"r={r}" for r in RS)),
        rows=tuple(rows),
        notes=(
            *runs.material.notes,
            METHODS_NOTE,
            DRAWN_NOTE,
            *_claims(ours[Method.CLUMP1]),
            f"Clump refined looks at r only up to {COMPARE_UP_TO:,} transactions, where it may start from algorithm 1",
        ),
    )


def _claims(clump1: list[float]) -> list[str]:
    best = min(clump1)
    above = 100 * (clump1[RS.index(R)] / best - 1)
    best_r = RS[clump1.index(best)]
    changes = ", ".join(
        f"{100 * (b / a - 1):+.1f} % (r={r})" for (a, b), r in zip(pairwise(clump1), RS[1:], strict=True)
    )
    return [
        claim(
            "a larger r is not always better",
            holds=any(b > a for a, b in pairwise(clump1)),
            figures=f"against the r before, {changes}",
        ),
        claim(
            f"r={R} is good",
            holds=above < GOOD,
            figures=f"{above:.1f} % above the best, r={best_r}; {GOOD} % is our limit",
        ),
    ]
