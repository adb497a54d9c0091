"""Zhu and Xiong, figure 5: the average number of users in a group."""

from __future__ import annotations

from itertools import pairwise

from queryveil.reproduce.plink_runs import PROMISES, PS, A, Run, Runs, curve, ours_row, theirs_row
from queryveil.reproduce.table import DRAWN_NOTE, Table, at_each, claim

NAMES = tuple(f"p={p}" for p in PS)


def build(runs: Runs) -> Table:
    """Give the average group size for each p."""
    wanted = {strict: [Run(p=p, strict=strict) for p in PS] for strict in PROMISES}
    ours = {strict: curve(runs, settings, lambda outcome: outcome.group_size) for strict, settings in wanted.items()}
    return Table(
        name="plink-fig5",
        title=f"Zhu and Xiong, figure 5: average number of users in a group, a={A}",
        columns=("promise", "whose", *NAMES),
        rows=(
            theirs_row(wanted[False][0].promise, n=len(PS)),
            *(ours_row(wanted[strict][0].promise, figures, digits=2) for strict, figures in ours.items()),
        ),
        notes=(
            *runs.notes,
            DRAWN_NOTE,
            claim(
                "groups get smaller as p grows",
                holds=all(a > b for a, b in pairwise(ours[False])),
                figures=at_each(NAMES, ours[False], digits=2),
            ),
            "where all profiles have the same size, a group needs 1/p users, rounded up: "
            + at_each(NAMES, (-(-1 // p) for p in PS), digits=0),
        ),
    )
