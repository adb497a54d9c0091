"""What a live anonymizer was given, and by when each of its rows had left."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import numpy as np
import numpy.typing as npt
import polars as pl

from queryveil.errors import MissingColumn
from queryveil.log import QueryLog

Ints = npt.NDArray[np.int64]

FINEST = timedelta(seconds=1)
"""Some formats hold whole seconds only, so times are never compared more exactly."""
NO_FILE_HOLDS = ("\0", "\t", "\n", "\r")
"""Some formats have a blank in their place, so texts are compared with a blank there."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Arrivals:
    """The events that came into the pools, in the order of their arrival.

    `frame` has the `user` as the release calls them, the `query` without identifiers, the number of its `category`,
    and the `time` if the log has times. Released times are those of arrivals, cut to `time_unit`; without one a release
    has no times. `max_pool` is the most events that a pool holds, if that is known. Rows of the release stand in the
    order in which they left (`in_order`), or in none.
    """

    frame: pl.DataFrame
    time_unit: timedelta | None = None
    max_pool: int | None = None
    in_order: bool = True

    def __post_init__(self) -> None:
        for name in ("user", "query", "category"):
            if name not in self.frame.columns:
                raise MissingColumn("the arrivals", name, found=self.frame.columns)

    def __repr__(self) -> str:
        # Privacy: a frame's own repr would show queries.
        return f"Arrivals(n_events={self.frame.height}, n_categories={self.frame['category'].n_unique()})"


def as_written(queries: pl.Series) -> pl.Series:
    r"""Give texts as any file can hold them.

    >>> as_written(pl.Series(["red\tkettle"])).to_list()
    ['red kettle']
    """
    return queries.str.replace_all("[\0\t\n\r]", " ").rename("query")


def latest_arrivals(released: QueryLog, *, original: Arrivals) -> Ints:
    """Give for each released row the last arrival after which it can have left, -1 if it left before all of them.

    A row bears the time of the arrival that set it free, so it left no later than the last arrival with that time or
    an earlier one; and where rows stand in the order in which they left, it left no later than the rows after it.
    """
    last = original.frame.height - 1
    latest = np.full(released.n_rows, last, np.int64)
    if has_times(released, original=original) and original.time_unit is not None:
        unit = max(original.time_unit, FINEST)
        came = original.frame.select(pl.col("time").dt.truncate(unit)).with_row_index("arrival")
        came = came.drop_nulls("time").sort("time").with_columns(pl.col("arrival").cast(pl.Int64).cum_max())
        left = released.frame.select(pl.col("time").dt.truncate(unit))["time"]
        known = left.is_not_null().to_numpy()
        place = np.searchsorted(_micros(came["time"]), _micros(left.drop_nulls()), side="right")
        latest[known] = np.concatenate([[-1], came["arrival"].to_numpy()])[place]
    return np.ascontiguousarray(np.minimum.accumulate(latest[::-1])[::-1]) if original.in_order else latest


def has_times(released: QueryLog, *, original: Arrivals) -> bool:
    """Whether some released row says when it left, and the original when what came."""
    if original.time_unit is None or "time" not in released.columns or "time" not in original.frame.columns:
        return False
    return bool(released.frame["time"].is_not_null().any())


def _micros(times: pl.Series) -> Ints:
    return times.cast(pl.Datetime("us")).to_physical().to_numpy().astype(np.int64)
