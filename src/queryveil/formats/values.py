"""Columns of text to the types of their roles, and the rows whose values cannot be read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import polars as pl
from numpy.typing import NDArray

from queryveil.formats.times import read_times
from queryveil.kernels import timestamps
from queryveil.log import ROLES

NO_USER, BAD_TIME, BAD_RANK = 101, 102, 103
REASONS: Mapping[int, str] = {
    NO_USER: "the user is missing",
    BAD_TIME: "the time cannot be read as a time",
    BAD_RANK: "the rank cannot be read as a whole number",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Typed:
    """Columns in the types of their roles; per row the code of what is wrong with it (0: nothing), kinds of times."""

    columns: dict[str, pl.Series]
    wrong: NDArray[np.uint8]
    time_kinds: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, dtype=np.uint8))

    def frame(self) -> pl.DataFrame:
        """Give the rows that can be read, the roles first."""
        first = [role for role in ROLES if role in self.columns]
        rest = [name for name in self.columns if name not in ROLES]
        frame = pl.DataFrame({name: self.columns[name] for name in first + rest})
        return frame.filter(pl.Series(self.wrong == 0)) if self.wrong.any() else frame


def type_columns(text: Mapping[str, pl.Series], *, has_compact_times: bool = False) -> Typed:
    """Turn columns of text, by role or own name, into what their roles ask for; empty is missing but for queries."""
    columns = dict(text)
    user = columns["user"]
    wrong = np.where((user.is_null() | (user.str.strip_chars() == "")).fill_null(True).to_numpy(), NO_USER, 0)
    wrong = wrong.astype(np.uint8)
    columns["query"] = columns["query"].fill_null("")
    kinds = np.zeros(0, dtype=np.uint8)
    if "time" in columns:
        columns["time"], kinds = read_times(columns["time"], compact=has_compact_times)
        wrong[(wrong == 0) & (kinds == timestamps.BAD)] = BAD_TIME
    if "rank" in columns:
        columns["rank"], is_bad = _read_ranks(columns["rank"])
        wrong[(wrong == 0) & is_bad] = BAD_RANK
    for name, column in text.items():
        if name not in ROLES or name == "url":
            columns[name] = _empty_to_null(column)
    return Typed(columns=columns, wrong=wrong, time_kinds=kinds)


def _read_ranks(text: pl.Series) -> tuple[pl.Series, NDArray[np.bool_]]:
    text = _empty_to_null(text.str.strip_chars())
    ranks = text.cast(pl.Int64, strict=False)
    if ranks.null_count() > text.null_count():
        # Tables that had gaps in them come with 3.0 where there was a 3.
        ranks = text.str.replace(r"\.0*$", "").cast(pl.Int64, strict=False)
    return ranks, (ranks.is_null() & text.is_not_null()).to_numpy()


def _empty_to_null(column: pl.Series) -> pl.Series:
    if column.dtype != pl.String:
        return column
    return column.set(column == "", None)
