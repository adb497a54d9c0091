"""Zhu and Xiong, figure 3: what the augmentation level does to the precision."""

from __future__ import annotations

from itertools import pairwise

from queryveil.reproduce.plink_fig2 import cost_of_strict
from queryveil.reproduce.plink_runs import PROMISES, STEPS, P, Run, Runs, curve, ours_row, spread_note, theirs_row
from queryveil.reproduce.table import DRAWN_NOTE, Table, at_each, claim

NAMES = tuple(f"a={a}" for a in STEPS)


def build(runs: Runs) -> Table:
    """Give the average precision at 10 for each augmentation level."""
    wanted = {strict: [Run(a=a, strict=strict) for a in STEPS] for strict in PROMISES}
    ours = {strict: curve(runs, settings, lambda outcome: outcome.precision) for strict, settings in wanted.items()}
    paper = ours[False]
    return Table(
        name="plink-fig3",
        title=f"Zhu and Xiong, figure 3: average precision at 10 by augmentation level, p={P}",
        columns=("promise", "whose", *NAMES),
        rows=(
            theirs_row(wanted[False][0].promise, n=len(STEPS)),
            *(ours_row(wanted[strict][0].promise, figures, digits=4) for strict, figures in ours.items()),
        ),
        notes=(
            *runs.notes,
            DRAWN_NOTE + f"; nor does it say at which p, {P} is our guess",
            claim(
                "the higher a, the better",
                holds=all(a <= b for a, b in pairwise(paper)) and paper[0] < paper[-1],
                figures=at_each(NAMES, paper),
            ),
            cost_of_strict(runs, paper=Run(), strict=Run(strict=True)),
            spread_note(runs, [run for settings in wanted.values() for run in settings]),
        ),
    )
