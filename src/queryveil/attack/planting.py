"""Invented users in a log: what somebody who may add users plants."""

from __future__ import annotations

import numpy as np
import polars as pl

from queryveil.attack.combinations import Combinations
from queryveil.kernels.arrays import Int64s
from queryveil.log import QueryLog


def planted(log: QueryLog, *, combinations: Combinations, n_each: int, rng: np.random.Generator) -> QueryLog:
    """Give the log with `n_each` invented users for each combination, who ask it once.

    Their rows are like the row of the combination in all else: its time, its URL, and what other columns there are.
    """
    n_rows = len(combinations.rows) * n_each
    rows = np.repeat(combinations.rows, n_each)
    queries = combinations.texts.gather(np.repeat(np.arange(len(combinations.rows)), n_each))
    new = log.frame[pl.Series(rows)].with_columns(
        user=_new_names(log.frame["user"], n=n_rows, rng=rng), query=queries.cast(pl.String)
    )
    return log.with_frame(pl.concat([log.frame, new.select(log.frame.columns)]))


def without(log: QueryLog, *, rows: Int64s) -> QueryLog:
    """Give the log without some rows."""
    kept = np.ones(log.n_rows, np.bool_)
    kept[rows] = False
    return log.with_frame(log.frame.filter(pl.Series(kept)))


def _new_names(users: pl.Series, *, n: int, rng: np.random.Generator) -> pl.Series:
    """Invent ids that nobody has, in an order that tells nothing."""
    taken = set(users.unique())
    names: dict[str, None] = {}
    while len(names) < n:
        name = f"{int(rng.integers(1, 2**62))}"
        if name not in taken:
            names[name] = None
    return pl.Series("user", list(names), dtype=pl.String)
