"""Burghardt et al., table 7: how much the target function matters for what advertisers pay for."""

from __future__ import annotations

from queryveil.reproduce.km_differences import COLUMNS_NOTE, Figures, heads, largest, make_all, rows, turned
from queryveil.reproduce.km_outcomes import ALGORITHM_NOTE, RANDOM_NOTE, Measure, Outcomes, dominated
from queryveil.reproduce.table import Table

MEASURES = (Measure.BID, Measure.CLICKS, Measure.IMPRESSIONS, Measure.REVENUE)

FIGURES: Figures = {
    (2, 2): (20, 13, 12, 28, 15, 8, 31, 9, 6, 20, 5, 5),
    (2, 10): (17, 13, 11, 34, 28, 13, 32, 14, 8, 16, 5, 5),
    (2, 20): (16, 12, 11, 35, 33, 15, 32, 15, 9, 16, 5, 5),
    (2, 40): (14, 11, 9, 38, 36, 18, 31, 16, 9, 15, 5, 5),
    (2, 100): (13, 9, 7, 37, 37, 19, 30, 16, 10, 15, 5, 5),
    (3, 2): (15, 14, 11, 32, 31, 12, 29, 16, 7, 21, 12, 10),
    (3, 10): (16, 14, 11, 39, 40, 21, 34, 19, 11, 22, 12, 12),
    (3, 20): (15, 13, 11, 40, 41, 24, 34, 19, 12, 21, 12, 12),
    (3, 40): (14, 11, 9, 40, 41, 25, 33, 20, 12, 19, 11, 11),
    (3, 100): (13, 9, 7, 39, 40, 25, 32, 19, 12, 19, 10, 10),
}


def build(outcomes: Outcomes) -> Table:
    """Take the differences for the measures that read the term values."""
    make_all(outcomes)
    return Table(
        name="km-table7",
        title="Burghardt et al., table 7: what the target function matters for the measures specific to advertising",
        columns=heads(MEASURES),
        rows=tuple(rows(outcomes, MEASURES, FIGURES)),
        notes=(
            *outcomes.material.notes,
            ALGORITHM_NOTE,
            RANDOM_NOTE,
            COLUMNS_NOTE,
            *dominated(outcomes.material),
            _spread(outcomes),
            *turned(outcomes, MEASURES, FIGURES),
        ),
    )


def _spread(outcomes: Outcomes) -> str:
    parts = []
    for i, measure in enumerate(MEASURES):
        theirs = max(line[3 * i + 1] for line in FIGURES.values())
        parts.append(f"{measure} {theirs} and {largest(outcomes, measure, 'W'):.1f}")
    return "largest difference of best and worst target function, theirs and ours: " + "; ".join(parts)
