"""Figures 3, 4 and 5 of Fard and Wang show one measure for each method, at r=10 and growing k."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from queryveil.methods.clump_measures import Cost
from queryveil.reproduce.clump_runs import KS, Method, Run, Runs
from queryveil.reproduce.table import OURS, THEIRS, Cell

Measure = Callable[[Cost], float]
Curves = Mapping[Method, tuple[float, ...]]
"""Ours by method, one figure for each of `KS`."""

COLUMNS = ("method", "whose", *(f"k={k}" for k in KS))


def curves(runs: Runs, measure: Measure) -> Curves:
    """Measure every method at every k."""
    runs.make(Run(method=method, k=k) for method in Method for k in KS)
    return {method: tuple(measure(runs.cost(Run(method=method, k=k))) for k in KS) for method in Method}


def rows(
    ours: Curves, *, theirs_last: Mapping[Method, Cell], ours_last: Mapping[Method, Cell], digits: int
) -> Iterator[tuple[Cell, ...]]:
    """Put ours below theirs for each method; the last column is what the paper's text speaks of."""
    for method, figures in ours.items():
        if method is not Method.REFINED:
            yield (str(method), THEIRS, *(None,) * len(KS), theirs_last.get(method))
        yield (str(method), OURS, *(round(figure, digits or None) for figure in figures), ours_last.get(method))


def order(ours: Curves, *, at: int) -> list[Method]:
    """Order the paper's methods by their figure at one place of `KS`, largest first."""
    papers = [method for method in ours if method is not Method.REFINED]
    return sorted(papers, key=lambda method: -ours[method][at])


def places(ours: Curves) -> dict[Method, Cell]:
    """Give the place of each of the paper's methods, largest first, if it is the same at every k.

    >>> found = places({Method.CLUMP1: (3.0, 3.0), Method.CLUMP2: (1.0, 4.0), Method.PARTITION: (2.0, 2.0)})
    >>> {str(method): place for method, place in found.items()}
    {'Clump1': '1 or 2', 'Clump2': '1 or 3', 'Partition': '2 or 3'}
    """
    n_ks = len(next(iter(ours.values())))
    orders = [order(ours, at=at) for at in range(n_ks)]
    found: dict[Method, Cell] = {}
    for method in orders[0]:
        seen = sorted({by_size.index(method) + 1 for by_size in orders})
        found[method] = seen[0] if len(seen) == 1 else " or ".join(map(str, seen))
    return dict(sorted(found.items(), key=lambda entry: list(ours).index(entry[0])))


def at_each_k(figures: Iterator[str]) -> str:
    """Write one figure for each k.

    >>> at_each_k(iter(["a", "b", "c", "d"]))
    'a (k=5), b (k=7), c (k=10), d (k=15)'
    """
    return ", ".join(f"{figure} (k={k})" for k, figure in zip(KS, figures, strict=True))
