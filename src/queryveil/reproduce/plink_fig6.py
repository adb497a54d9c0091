"""Zhu and Xiong, figure 6: how probable it really is that a term of a group links to a user."""

from __future__ import annotations

from queryveil.reproduce.plink_runs import PS, A, Run, Runs, curve, ours_row, theirs_row
from queryveil.reproduce.table import DRAWN_NOTE, Table, at_each, claim

NAMES = tuple(f"p={p}" for p in PS)
CLOSE = 0.75


def build(runs: Runs) -> Table:
    """Give |U|avg / |G| for each p, on average and at most, and the largest share of members that have one term."""
    paper, strict = ([Run(p=p, strict=strict) for p in PS] for strict in (False, True))
    average = curve(runs, paper, lambda outcome: outcome.average_linkability)
    rows = {
        "average |U|avg / |G|": average,
        "largest |U|avg / |G|": curve(runs, paper, lambda outcome: outcome.largest_linkability),
        "largest share of a term": curve(runs, paper, lambda outcome: outcome.largest_share),
        "largest share of a term, strict": curve(runs, strict, lambda outcome: outcome.largest_share),
    }
    return Table(
        name="plink-fig6",
        title=f"Zhu and Xiong, figure 6: actual linkability against p, a={A}",
        columns=("linkability", "whose", *NAMES),
        rows=(
            theirs_row("average |U|avg / |G|", n=len(PS)),
            *(ours_row(name, figures) for name, figures in rows.items()),
        ),
        notes=(
            *runs.notes,
            DRAWN_NOTE,
            claim(
                "the actual linkability is close to p but below it",
                holds=all(CLOSE * p <= round(figure, 6) <= p for p, figure in zip(PS, average, strict=True)),
                figures=f"{at_each(NAMES, average)}; {CLOSE} p is our limit, and p itself counts as below",
            ),
            "|U|avg / |G| takes the terms of a group as if each were one member's: a term that all members share links "
            "to each of them for sure, which the largest share shows",
        ),
    )
