"""Burghardt et al., table 3: how the frequency of a term and its marketing values go together."""

from __future__ import annotations

import math

import numpy as np
import polars as pl

from queryveil.reproduce.km_outcomes import Outcomes
from queryveil.reproduce.table import Cell, Table

VARIABLES = ("term frq.", "user frq.", "max bid", "clicks", "impressions", "revenue")

THEIRS: dict[tuple[str, str], tuple[float, float, int]] = {
    ("term frq.", "revenue"): (0.002, 0.326, 64_694),
    ("term frq.", "impressions"): (0.111, 0.000, 117_916),
    ("term frq.", "clicks"): (0.024, 0.000, 64_694),
    ("term frq.", "max bid"): (0.001, 0.348, 117_916),
    ("term frq.", "user frq."): (0.761, 0.000, 117_916),
    ("user frq.", "revenue"): (0.003, 0.259, 64_694),
    ("user frq.", "impressions"): (0.151, 0.000, 117_916),
    ("user frq.", "clicks"): (0.031, 0.000, 64_694),
    ("user frq.", "max bid"): (0.002, 0.254, 117_916),
    ("max bid", "revenue"): (0.579, 0.000, 64_694),
    ("max bid", "impressions"): (0.002, 0.296, 117_916),
    ("max bid", "clicks"): (-0.003, 0.225, 64_694),
    ("clicks", "revenue"): (0.040, 0.000, 64_694),
    ("clicks", "impressions"): (0.400, 0.000, 64_694),
    ("impressions", "revenue"): (0.020, 0.000, 64_694),
}
"""Correlation, significance and number of terms of each pair."""

LEVEL = 0.01
"""Where the paper sets its stars, one-tailed."""


def build(outcomes: Outcomes) -> Table:
    """Correlate the variables in pairs, over the terms that have both."""
    columns = _variables(outcomes.material.terms)
    ours = {pair: correlate(columns[pair[0]], columns[pair[1]]) for pair in THEIRS}
    rows: list[tuple[Cell, ...]] = []
    for pair, theirs in THEIRS.items():
        correlation, significance, n = ours[pair]
        rows.append((*pair, *theirs, _rounded(correlation), _rounded(significance), n))
    return Table(
        name="km-table3",
        title="Burghardt et al., table 3: Pearson correlations of a term's frequency and values",
        columns=("", "with", "corr. theirs", "sig. theirs", "N theirs", "corr. ours", "sig. ours", "N ours"),
        rows=tuple(rows),
        notes=(*outcomes.material.notes, *_differences(ours)),
    )


def correlate(first: pl.Series, second: pl.Series) -> tuple[float | None, float | None, int]:
    """Give Pearson's correlation, its one-tailed significance, and the number of terms that have both.

    >>> correlate(pl.Series([1.0, 2.0, 3.0, 4.0]), pl.Series([2.0, 1.0, 4.0, None]))[2]
    3
    """
    both = (first.is_not_null() & second.is_not_null()).to_numpy()
    x, y = first.to_numpy()[both], second.to_numpy()[both]
    if len(x) < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return None, None, len(x)
    correlation = float(np.corrcoef(x, y)[0, 1])
    # With thousands of terms Student's t is as good as normal.
    t = abs(correlation) * math.sqrt((len(x) - 2) / max(1 - correlation**2, 1e-12))
    return correlation, math.erfc(t / math.sqrt(2)) / 2, len(x)


def _variables(terms: pl.DataFrame) -> dict[str, pl.Series]:
    # Paper: the terms are those that the marketing site knows, so all variables are null elsewhere.
    listed = terms.filter(pl.col("bid").is_not_null()).select(
        pl.col("frequency", "users").cast(pl.Float64),
        "bid",
        "clicks",
        "impressions",
        revenue=pl.col("bid") * pl.col("clicks"),
    )
    return dict(zip(VARIABLES, listed.get_columns(), strict=True))


def _rounded(value: float | None) -> float | None:
    # Adding 0 turns a rounded -0.0 into 0.0.
    return None if value is None else round(value, 3) + 0.0


def _differences(ours: dict[tuple[str, str], tuple[float | None, float | None, int]]) -> list[str]:
    """Say where ours has another sign, or is significant where theirs is not, or the other way round."""
    notes = ["'significant' means at the 0.01 level (one-tailed), as in the paper"]
    turned, gained, lost = [], [], []
    for pair, (their_correlation, their_significance, _) in THEIRS.items():
        correlation, significance, _ = ours[pair]
        if correlation is None or significance is None:
            continue
        name, theirs_counts, ours_counts = " and ".join(pair), their_significance < LEVEL, significance < LEVEL
        if theirs_counts and ours_counts and correlation * their_correlation < 0:
            turned.append(name)
        elif ours_counts and not theirs_counts:
            gained.append(name)
        elif theirs_counts and not ours_counts:
            lost.append(name)
    gaps = {pair: abs(found[0] - THEIRS[pair][0]) for pair, found in ours.items() if found[0] is not None}
    if gaps:
        pair = max(gaps, key=lambda key: gaps[key])
        notes.append(f"the largest difference is {gaps[pair]:.2f}, between {' and '.join(pair)}")
    for what, names in (
        ("significant in both, with another sign", turned),
        ("significant in ours, not in theirs", gained),
        ("significant in theirs, not in ours", lost),
    ):
        if names:
            notes.append(f"{what}: {'; '.join(names)}")
    return notes
