"""Fard and Wang, figure 5: average level of the generalised items."""

from __future__ import annotations

from queryveil.reproduce.clump_curves import COLUMNS, Curves, at_each_k, curves, order, places, rows
from queryveil.reproduce.clump_runs import KS, METHODS_NOTE, Method, Runs
from queryveil.reproduce.table import DRAWN_NOTE, Cell, Table, claim

# Lower in the paper is lower in the tree, further from the root: the number of the level is larger.
THEIR_PLACES: dict[Method, Cell] = {Method.CLUMP2: 1, Method.PARTITION: 2, Method.CLUMP1: 3}


def build(runs: Runs) -> Table:
    """Give the average level of the released items of each method at each k."""
    ours = curves(runs, lambda cost: cost.average_level)
    return Table(
        name="clump-fig5",
        title="Fard and Wang, figure 5: average level of a generalised item, the root at 1, r=10",
        columns=(*COLUMNS, "place, lowest in the tree first"),
        rows=tuple(rows(ours, theirs_last=THEIR_PLACES, ours_last=places(ours), digits=2)),
        notes=(*runs.material.notes, METHODS_NOTE, DRAWN_NOTE, *_claims(ours)),
    )


def _claims(ours: Curves) -> list[str]:
    orders = [order(ours, at=at) for at in range(len(KS))]
    figures = at_each_k(", ".join(by_level) for by_level in orders)
    return [
        claim(
            "from the lowest in the tree, Clump2, Partition, Clump1",
            holds=all(by_level == list(THEIR_PLACES) for by_level in orders),
            figures=figures,
        ),
        claim(
            "the duplicates that Clump1 keeps are close to the root",
            holds=all(two > one for one, two in zip(ours[Method.CLUMP1], ours[Method.CLUMP2], strict=True)),
            figures="without them (Clump2) the average level goes from "
            + at_each_k(
                f"{one:.2f} to {two:.2f}" for one, two in zip(ours[Method.CLUMP1], ours[Method.CLUMP2], strict=True)
            ),
        ),
    ]
