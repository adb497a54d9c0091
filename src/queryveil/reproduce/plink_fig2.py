"""Zhu and Xiong, figure 2: search with the group's profile against search without one."""

from __future__ import annotations

from queryveil.reproduce.plink_runs import PROMISES, THEIR_PRECISION, Run, Runs, spread_note
from queryveil.reproduce.table import DRAWN_NOTE, OURS, THEIRS, Table, claim

WITHOUT, OWN = "no profile", "the user's own profile"
SIGNIFICANT = 1.1


def build(runs: Runs) -> Table:
    """Give the average precision at 10 without a profile, with the group's, and with the user's own."""
    wanted = [Run(strict=strict) for strict in PROMISES]
    runs.make(wanted)
    paper, strict = (runs.outcome(run) for run in wanted)
    return Table(
        name="plink-fig2",
        title="Zhu and Xiong, figure 2: average precision at 10, p=0.4, a=1",
        columns=("ranked by", "whose", "average precision at 10"),
        rows=(
            (WITHOUT, THEIRS, None),
            (WITHOUT, OURS, round(paper.without_profile, 4)),
            ("a random group's profile", OURS, round(paper.by_chance, 4)),
            ("the group's profile", THEIRS, THEIR_PRECISION),
            ("the group's profile", OURS, round(paper.precision, 4)),
            ("the group's profile, strict", OURS, round(strict.precision, 4)),
            (OWN, THEIRS, 1.0),
            (OWN, OURS, 1.0),
        ),
        notes=(
            *runs.notes,
            DRAWN_NOTE + "; 0.7886 is the only figure there",
            claim(
                "group profiles improve significantly on search without one",
                holds=paper.precision > SIGNIFICANT * paper.without_profile,
                figures=f"{paper.precision / paper.without_profile:.2f} times, {SIGNIFICANT} is our limit",
            ),
            "a random group is as large and has the user in it, with others drawn at random: what the group is better "
            "by is what similarity is worth",
            cost_of_strict(runs, paper=wanted[0], strict=wanted[1]),
            spread_note(runs, wanted),
        ),
    )


def cost_of_strict(runs: Runs, *, paper: Run, strict: Run) -> str:
    """Say what the stricter promise buys and costs."""
    open_, closed = runs.outcome(paper), runs.outcome(strict)
    return (
        f"at p={paper.p} a term of a group is held by up to {100 * open_.largest_share:.0f} % of its members as in the "
        f"paper and {100 * closed.largest_share:.0f} % with strict, which drops {100 * closed.dropped:.1f} % of the "
        f"terms of users and changes the precision by {closed.precision - open_.precision:+.4f}"
    )
