"""Zhu and Xiong, figure 4: what the privacy level does to the precision."""

from __future__ import annotations

from itertools import pairwise

from queryveil.reproduce.plink_fig2 import cost_of_strict
from queryveil.reproduce.plink_runs import PROMISES, PS, A, Run, Runs, curve, ours_row, spread_note, theirs_row
from queryveil.reproduce.table import DRAWN_NOTE, Table, at_each, claim

NAMES = tuple(f"p={p}" for p in PS)


def build(runs: Runs) -> Table:
    """Give the average precision at 10 for each p."""
    wanted = {strict: [Run(p=p, strict=strict) for p in PS] for strict in PROMISES}
    ours = {strict: curve(runs, settings, lambda outcome: outcome.precision) for strict, settings in wanted.items()}
    without = runs.outcome(Run()).without_profile
    return Table(
        name="plink-fig4",
        title=f"Zhu and Xiong, figure 4: average precision at 10 by privacy level, a={A}",
        columns=("promise", "whose", *NAMES),
        rows=(
            theirs_row(wanted[False][0].promise, n=len(PS)),
            *(ours_row(wanted[strict][0].promise, figures, digits=4) for strict, figures in ours.items()),
            ours_row("random groups", curve(runs, wanted[False], lambda outcome: outcome.by_chance)),
            ours_row("no profile", [without] * len(PS)),
        ),
        notes=(
            *runs.notes,
            DRAWN_NOTE,
            claim(
                "the lower p, the lower the precision",
                holds=all(a < b for a, b in pairwise(ours[False])),
                figures=at_each(NAMES, ours[False]),
            ),
            *(cost_of_strict(runs, paper=Run(p=p), strict=Run(p=p, strict=True)) for p in PS),
            spread_note(runs, [run for settings in wanted.values() for run in settings]),
        ),
    )
