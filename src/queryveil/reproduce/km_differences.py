"""Tables 6 and 7 of Burghardt et al. ask the same of different measures: how far the others are behind the best."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from queryveil.methods import Target
from queryveil.reproduce.km_outcomes import KS, MS, Measure, Outcomes, Run
from queryveil.reproduce.table import OURS, THEIRS, Cell

AGAINST = ("R", "W", "fis")
"""Random, the worst target function other than random, and fis."""

COLUMNS_NOTE = (
    "differences in percentage points of the best target function to random (R), to the worst other than random (W) "
    "and to fis; fis has its own column and is not among W"
)

Figures = Mapping[tuple[int, int], tuple[float, ...]]
"""Theirs by (m, k): R, W and fis of each measure in turn."""


def make_all(outcomes: Outcomes) -> None:
    """Make the runs that the differences are taken of."""
    outcomes.make(Run(target=target, m=m, k=k) for m in MS for k in KS for target in Target)


def heads(measures: tuple[Measure, ...]) -> tuple[str, ...]:
    """Name the columns."""
    return ("m", "k", "whose", *(f"{measure} {against}" for measure in measures for against in AGAINST))


def differences(outcomes: Outcomes, measure: Measure, *, m: int, k: int) -> tuple[float, float, float]:
    """Give how far random, the worst target function and fis are behind the best; below 0 where they are ahead."""
    best = outcomes.best(measure, m=m, k=k)
    others = (Target.RANDOM, outcomes.worst(measure, m=m, k=k), Target.FIS)
    random, worst, fis = (best - outcomes.kept(measure, target=target, m=m, k=k) for target in others)
    return random, worst, fis


def rows(outcomes: Outcomes, measures: tuple[Measure, ...], figures: Figures) -> Iterator[tuple[Cell, ...]]:
    """Put ours below theirs for each m and k."""
    for m in MS:
        for k in KS:
            yield (m, k, THEIRS, *figures[m, k])
            cells: list[Cell] = []
            for measure in measures:
                digits = 2 if measure is Measure.TERMS else 1
                cells += [round(value, digits) + 0.0 for value in differences(outcomes, measure, m=m, k=k)]
            yield (m, k, OURS, *cells)


def turned(outcomes: Outcomes, measures: tuple[Measure, ...], figures: Figures) -> list[str]:
    """List where ours is below 0 though theirs is above: there another way beats the measure's own target function."""
    found: dict[str, list[str]] = {}
    for (m, k), line in figures.items():
        for i, measure in enumerate(measures):
            ours = differences(outcomes, measure, m=m, k=k)
            for against, their_value, our_value in zip(AGAINST, line[3 * i : 3 * i + 3], ours, strict=True):
                if their_value > 0 and our_value <= -0.05:
                    found.setdefault(f"{measure} {against}", []).append(f"m={m}, k={k}")
    return [f"theirs above 0, ours below: {head} at {'; '.join(places)}" for head, places in found.items()]


def largest(outcomes: Outcomes, measure: Measure, against: str) -> float:
    """Give the largest difference over all m and k."""
    at = AGAINST.index(against)
    return max(differences(outcomes, measure, m=m, k=k)[at] for m in MS for k in KS)
