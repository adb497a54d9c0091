"""Pàmies-Estrems et al., figure 5: what k grows to, against its growth."""

from __future__ import annotations

from collections.abc import Callable
from statistics import fmean

import numpy as np

from queryveil.kernels.arrays import Int64s
from queryveil.reproduce.swap_material import ORDER_NOTE, Order
from queryveil.reproduce.swap_runs import GROWTHS, KS, Run, Runs
from queryveil.reproduce.table import DRAWN_NOTE, OURS, THEIRS, Cell, Table, at_each, claim

NAMES = tuple(f"growth={growth}" for growth in GROWTHS)
PRINTED, ALGORITHM = "as printed", "ours"
SLIGHTLY = 2


def build(runs: Runs) -> Table:
    """Give the mean and the largest k that categories end with, by the printed rule and by ours."""
    used = np.unique(runs.material.events["category"].to_numpy())

    def final(variant: str, k: int, growth: float) -> Int64s:
        if variant == PRINTED:
            found = runs.printed_k(k=k, growth=growth, order=Order.FILE)
        else:
            found = runs.pooled(Run(k=k, l=2, growth=growth, order=Order.FILE)).k_now
        return np.asarray(found[used])

    rows: list[tuple[Cell, ...]] = [(k, None, THEIRS, *(None,) * len(GROWTHS)) for k in KS]
    means: dict[tuple[str, int], list[float]] = {}
    for variant in (PRINTED, ALGORITHM):
        for k in KS:
            found = [final(variant, k, growth) for growth in GROWTHS]
            means[variant, k] = [float(each.mean()) for each in found]
            rows.append((k, f"mean, {variant}", OURS, *(round(mean, 1) for mean in means[variant, k])))
            rows.append((k, f"largest, {variant}", OURS, *_cells(found, lambda each: int(each.max()))))
    return Table(
        name="swap-fig5",
        title="Pàmies-Estrems et al., figure 5: k of the categories after the last row, against its growth, l=2",
        columns=("k", "final k", "whose", *NAMES),
        rows=tuple(rows),
        notes=(
            *runs.material.notes,
            f"the {len(used)} categories that have rows, which come in the order of the file",
            ORDER_NOTE,
            f"{PRINTED}: k grows if all users of a full pool are the same; {ALGORITHM}: also if every waiting user has "
            "issued every waiting query, so k grows further, up to 10,000",
            DRAWN_NOTE,
            *(_claim(means, variant=variant) for variant in (PRINTED, ALGORITHM)),
        ),
    )


def _cells(found: list[Int64s], measure: Callable[[Int64s], int]) -> tuple[int, ...]:
    return tuple(measure(each) for each in found)


def _claim(means: dict[tuple[str, int], list[float]], *, variant: str) -> str:
    average = [fmean(figures) for figures in zip(*(means[variant, k] for k in KS), strict=True)]
    return claim(
        f"a larger growth gives slightly larger k, not significantly ({variant}, mean of all k)",
        holds=average[0] < average[-1] < SLIGHTLY * average[0],
        figures=f"{at_each(NAMES, average, digits=1)}; {SLIGHTLY} times as large is our limit",
    )
