"""Figures of Zhu and Xiong, compared with ours."""

from __future__ import annotations

from itertools import pairwise

from queryveil.papers.plink_runs import (
    PROMISES,
    PS,
    STEPS,
    THEIR_PRECISION,
    A,
    P,
    Run,
    Runs,
    curve,
    ours_row,
    spread_note,
    theirs_row,
)
from queryveil.papers.table import DRAWN_NOTE, OURS, THEIRS, Table, at_each, claim

WITHOUT, OWN = "no profile", "the user's own profile"
SIGNIFICANT = 1.1


def build(runs: Runs) -> Table:
    """Return the average precision at 10 without a profile, with the group's, and with the user's own."""
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
    """Return what the stricter promise buys and costs."""
    open_, closed = runs.outcome(paper), runs.outcome(strict)
    return (
        f"at p={paper.p} a term of a group is held by up to {100 * open_.largest_share:.0f} % of its members as in the "
        f"paper and {100 * closed.largest_share:.0f} % with strict, which drops {100 * closed.dropped:.1f} % of the "
        f"terms of users and changes the precision by {closed.precision - open_.precision:+.4f}"
    )


NAMES = tuple(f"a={a}" for a in STEPS)


def build_plink_fig3(runs: Runs) -> Table:
    """Return the average precision at 10 for each augmentation level."""
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


NAMES_PLINK_FIG4 = tuple(f"p={p}" for p in PS)


def build_plink_fig4(runs: Runs) -> Table:
    """Return the average precision at 10 for each p."""
    wanted = {strict: [Run(p=p, strict=strict) for p in PS] for strict in PROMISES}
    ours = {strict: curve(runs, settings, lambda outcome: outcome.precision) for strict, settings in wanted.items()}
    without = runs.outcome(Run()).without_profile
    return Table(
        name="plink-fig4",
        title=f"Zhu and Xiong, figure 4: average precision at 10 by privacy level, a={A}",
        columns=("promise", "whose", *NAMES_PLINK_FIG4),
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
                figures=at_each(NAMES_PLINK_FIG4, ours[False]),
            ),
            *(cost_of_strict(runs, paper=Run(p=p), strict=Run(p=p, strict=True)) for p in PS),
            spread_note(runs, [run for settings in wanted.values() for run in settings]),
        ),
    )


NAMES_PLINK_FIG5 = tuple(f"p={p}" for p in PS)


def build_plink_fig5(runs: Runs) -> Table:
    """Return the average group size for each p."""
    wanted = {strict: [Run(p=p, strict=strict) for p in PS] for strict in PROMISES}
    ours = {strict: curve(runs, settings, lambda outcome: outcome.group_size) for strict, settings in wanted.items()}
    return Table(
        name="plink-fig5",
        title=f"Zhu and Xiong, figure 5: average number of users in a group, a={A}",
        columns=("promise", "whose", *NAMES_PLINK_FIG5),
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
                figures=at_each(NAMES_PLINK_FIG5, ours[False], digits=2),
            ),
            "where all profiles have the same size, a group needs 1/p users, rounded up: "
            + at_each(NAMES_PLINK_FIG5, (-(-1 // p) for p in PS), digits=0),
        ),
    )


NAMES_PLINK_FIG6 = tuple(f"p={p}" for p in PS)
CLOSE = 0.75


def build_plink_fig6(runs: Runs) -> Table:
    """Return |U|avg / |G| for each p, on average and at most, and the largest share of members that have one term."""
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
        columns=("linkability", "whose", *NAMES_PLINK_FIG6),
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
                figures=f"{at_each(NAMES_PLINK_FIG6, average)}; {CLOSE} p is our limit, and p itself counts as below",
            ),
            "|U|avg / |G| takes the terms of a group as if each were one member's: a term that all members share links "
            "to each of them for sure, which the largest share shows",
        ),
    )
