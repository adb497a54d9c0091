"""Burghardt et al., figure 1: log size per target function."""

from __future__ import annotations

from queryveil.methods import Target
from queryveil.reproduce.km_curves import COLUMNS, Curves, M, by_k, make_all, ranking, rows
from queryveil.reproduce.km_outcomes import ALGORITHM_NOTE, KS, RANDOM_NOTE, Measure, Outcomes
from queryveil.reproduce.km_table5 import theirs
from queryveil.reproduce.table import Table

# Table 6 would give random and fis too, but its log size column contradicts table 5; see km_table6.py.
CURVES: Curves = {Target.LOG_SIZE: tuple(theirs(Measure.LOG_SIZE, m=M, k=k) for k in KS)}


def build(outcomes: Outcomes) -> Table:
    """Give the share of the term occurrences that each target function keeps at m=3."""
    make_all(outcomes)
    second = by_k({k: ranking(outcomes, Measure.LOG_SIZE, k=k)[1] for k in KS})
    first = by_k({k: outcomes.leader(Measure.LOG_SIZE, m=M, k=k) for k in KS})
    return Table(
        name="km-fig1",
        title="Burghardt et al., figure 1: log size in % of the original per target function, m=3",
        columns=COLUMNS,
        rows=tuple(rows(outcomes, Measure.LOG_SIZE, CURVES)),
        notes=(
            *outcomes.material.notes,
            ALGORITHM_NOTE,
            RANDOM_NOTE,
            "theirs: log_size is from table 5; the other curves are only drawn in the paper, so their cells are empty",
            "table 6 gives differences to random, but they contradict table 5 (random would keep less than nothing)",
            f"the paper: log_size keeps most; ours: {first}",
            f"the paper: users keeps second most; ours, random and fis apart: {second}",
        ),
    )
