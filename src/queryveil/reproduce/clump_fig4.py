"""Fard and Wang, figure 4: average length of the generalised transactions."""

from __future__ import annotations

from queryveil.reproduce.clump_curves import COLUMNS, Curves, at_each_k, curves, places, rows
from queryveil.reproduce.clump_runs import KS, METHODS_NOTE, Method, Runs
from queryveil.reproduce.table import DRAWN_NOTE, Table, claim

SIGNIFICANT = 1.1


def build(runs: Runs) -> Table:
    """Give the average number of released items of each method at each k."""
    ours = curves(runs, lambda cost: cost.average_length)
    return Table(
        name="clump-fig4",
        title="Fard and Wang, figure 4: average length of a generalised transaction, r=10",
        columns=(*COLUMNS, "place, longest first"),
        rows=tuple(rows(ours, theirs_last={Method.CLUMP1: 1}, ours_last=places(ours), digits=2)),
        notes=(*runs.material.notes, METHODS_NOTE, DRAWN_NOTE, _longest(ours)),
    )


def _longest(ours: Curves) -> str:
    longest = [max(ours[Method.CLUMP2][at], ours[Method.PARTITION][at]) for at in range(len(KS))]
    times = [clump1 / other for clump1, other in zip(ours[Method.CLUMP1], longest, strict=True)]
    return claim(
        "Clump1 is significantly longer than Clump2 and Partition",
        holds=min(times) > SIGNIFICANT,
        figures=at_each_k(f"{ratio:.2f}" for ratio in times) + f" times the longer of both; {SIGNIFICANT} is our limit",
    )
