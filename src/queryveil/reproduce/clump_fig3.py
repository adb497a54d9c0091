"""Fard and Wang, figure 3: information loss."""

from __future__ import annotations

from itertools import pairwise

from queryveil.reproduce.clump_curves import COLUMNS, Curves, at_each_k, curves, rows
from queryveil.reproduce.clump_runs import KS, METHODS_NOTE, Method, Run, Runs
from queryveil.reproduce.clump_sizes import sized, sizes
from queryveil.reproduce.table import DRAWN_NOTE, Cell, Table, claim

THEIR_MOST = 30
VERY_SMALL = 5


def build(runs: Runs) -> Table:
    """Give the total distortion of each method at each k, and how far it is below Partition's."""
    ours = curves(runs, lambda cost: cost.distortion)
    most: dict[Method, Cell] = {
        method: round(max(below(ours, method)), 1) for method in ours if method is not Method.PARTITION
    }
    return Table(
        name="clump-fig3",
        title="Fard and Wang, figure 3: information loss (total GGD), r=10",
        columns=(*COLUMNS, "below Partition, at most %"),
        rows=tuple(
            rows(
                ours,
                theirs_last={Method.CLUMP1: THEIR_MOST, Method.CLUMP2: THEIR_MOST},
                ours_last=most,
                digits=0,
            )
        ),
        notes=(
            *runs.material.notes,
            METHODS_NOTE,
            DRAWN_NOTE,
            *_claims(ours),
            *_by_size(runs),
            _carried(runs, ours),
            _refined(ours),
        ),
    )


def below(ours: Curves, method: Method) -> list[float]:
    """Give by how many per cent a method is below Partition at each k; negative is above."""
    pairs = zip(ours[method], ours[Method.PARTITION], strict=True)
    return [100 * (1 - figure / partition) for figure, partition in pairs]


def _claims(ours: Curves) -> list[str]:
    one, two = below(ours, Method.CLUMP1), below(ours, Method.CLUMP2)
    pairs = zip(ours[Method.CLUMP1], ours[Method.CLUMP2], strict=True)
    apart = [100 * (second / first - 1) for first, second in pairs]
    figures = at_each_k(f"{share:.1f} %" for share in one)
    return [
        claim(
            "Clump loses less than Partition",
            holds=min(*one, *two) > 0,
            figures=f"below it (negative: above) Clump1 is by {figures}, "
            f"Clump2 by {at_each_k(f'{share:.1f} %' for share in two)}",
        ),
        claim(f"by as much as {THEIR_MOST} %", holds=max(*one, *two) >= THEIR_MOST, figures=f"{max(*one, *two):.1f} %"),
        claim(
            "the difference between Clump1 and Clump2 is very small",
            holds=max(apart) < VERY_SMALL,
            figures=f"Clump2 is above by {at_each_k(f'{share:.1f} %' for share in apart)}; {VERY_SMALL} % is our limit",
        ),
        claim("the gain falls as k grows", holds=all(a >= b for a, b in pairwise(one)), figures=f"Clump1, {figures}"),
    ]


def _by_size(runs: Runs) -> list[str]:
    found = sizes(runs)
    if len(found) < 2:
        return []
    gains = []
    for size in found:
        clump1, partition = (
            runs.cost(sized(runs, method, k=KS[0], size=size)).distortion
            for method in (Method.CLUMP1, Method.PARTITION)
        )
        gains.append(100 * (1 - clump1 / partition))
    figures = ", ".join(f"{gain:.1f} % (|D|={size:,})" for size, gain in zip(found, gains, strict=True))
    falls = all(a >= b for a, b in pairwise(gains))
    return [claim("the gain falls as the log grows", holds=falls, figures=f"Clump1 at k={KS[0]}, {figures}")]


def _carried(runs: Runs, ours: Curves) -> str:
    wanted = [Run(method=Method.CLUMP1, k=k, carry=True) for k in KS]
    runs.make(wanted)
    carried = {**ours, Method.CLUMP1: tuple(runs.cost(run).distortion for run in wanted)}
    gains = at_each_k(f"{share:.1f} %" for share in below(carried, Method.CLUMP1))
    return (
        "Clump1 follows the paper's algorithm 2, which loses items that its definition 2 of the LCG keeps; "
        f"with that LCG it is below Partition by {gains}"
    )


def _refined(ours: Curves) -> str:
    pairs = zip(ours[Method.REFINED], ours[Method.CLUMP1], strict=True)
    against = at_each_k(f"{100 * (1 - refined / clump1):.1f} %" for refined, clump1 in pairs)
    return f"Clump refined is below Clump1 by {against}"
