"""Figures 1 and 2 of Burghardt et al. show one measure for every target function, at m=3 and growing k."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from queryveil.methods import Target
from queryveil.reproduce.km_outcomes import KS, Measure, Outcomes, Run
from queryveil.reproduce.table import OURS, THEIRS, Cell

M = 3
COLUMNS = ("target", "whose", *(f"k={k}" for k in KS))

Curves = Mapping[Target, tuple[float, ...]]
"""Theirs by target function, one figure for each of `KS`."""


def make_all(outcomes: Outcomes) -> None:
    """Make the runs that the curves are drawn of."""
    outcomes.make(Run(target=target, m=M, k=k) for target in Target for k in KS)


def rows(outcomes: Outcomes, measure: Measure, curves: Curves) -> Iterator[tuple[Cell, ...]]:
    """Put ours below theirs for each target function."""
    for target in Target:
        yield (str(target), THEIRS, *curves.get(target, (None,) * len(KS)))
        yield (str(target), OURS, *(round(outcomes.kept(measure, target=target, m=M, k=k), 1) for k in KS))


def ranking(outcomes: Outcomes, measure: Measure, *, k: int) -> list[Target]:
    """Order the target functions, fis and random left out, from the one that keeps most."""
    focused = [target for target in Target if target not in (Target.FIS, Target.RANDOM)]
    return sorted(focused, key=lambda target: -outcomes.kept(measure, target=target, m=M, k=k))


def by_k(names: Mapping[int, Target]) -> str:
    """Write which target function it is at each k, in as few words as possible.

    >>> by_k({2: Target.BID, 10: Target.BID, 20: Target.USERS})
    'bid (k=2, 10), users (k=20)'
    """
    places: dict[Target, list[str]] = {}
    for k, target in names.items():
        places.setdefault(target, []).append(str(k))
    return ", ".join(f"{target} (k={', '.join(ks)})" for target, ks in places.items())
