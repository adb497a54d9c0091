"""What a log, or a release of it, shows of searches: how often each query is asked, by whom, when, and what is clicked.

Measures of a purpose look at both sides in this way, so that a release that shows what the log shows scores 1.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import polars as pl

from queryveil.data import Bools, Int64s, QueryLog, Tallies
from queryveil.guarantees import DifferentialPrivacy
from queryveil.pairing import Pair
from queryveil.release import TimeDetail
from queryveil.text.tokens import encode, join_terms

LEAST_USERS = 3  # users who must have asked a query for it to be looked at
MOST_COMMON = 1000  # of those, the ones asked most often are looked at


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class View:
    """What one side of a pair shows.

    - `queries`: the texts by number; what the original has comes first, so that its numbers hold for every release.
    - `n_asked`: how often each query is asked.
    - `rows`: the number of the `user` and of the `query` of each row, with its `time` if there are any; None where rows
      are nobody's.
    - `clicks`: the `query` (its text), the `url` and the `count` of clicks; None if there are none.
    - `exact_times`: whether times are as they were.
    """

    queries: pl.Series
    n_asked: Int64s
    rows: pl.DataFrame | None
    clicks: pl.DataFrame | None
    exact_times: bool

    @classmethod
    def of(cls, pair: Pair) -> Self:
        """Return what the release of a pair shows; of a pair of a log with itself, what the log shows."""
        release, rows = pair.release, None
        exact_times = release.manifest.columns.time is TimeDetail.KEEP
        if is_counted(pair):
            row, counts = counted(pair)
            weights = np.maximum(0, counts)
            asked = pair.tokens[1].row_query[row]
            has_terms = (pair.queries != "").to_numpy()
            n_asked = np.bincount(asked, weights=weights, minlength=len(pair.queries)).astype(np.int64) * has_terms
        else:
            rows, n_asked = pair.released_rows.filter(pl.col("query") >= 0), pair.n_asked[1]
        clicks = _clicks(release.data)
        return cls(queries=pair.queries, n_asked=n_asked, rows=rows, clicks=clicks, exact_times=exact_times)

    @property
    def has_times(self) -> bool:
        """Whether rows have times."""
        return self.rows is not None and "time" in self.rows.columns

    @cached_property
    def n_askers(self) -> Int64s:
        """How many users ask each query; 0 where rows are nobody's."""
        if self.rows is None:
            return np.zeros(len(self.queries), np.int64)
        asked = self.rows.select("user", "query").unique()["query"].to_numpy()
        return np.bincount(asked, minlength=len(self.queries)).astype(np.int64)

    @cached_property
    def is_common(self) -> Bools:
        """Whether each query is among the 1,000 asked most often, and by three users or more; equals come in or not."""
        often = np.where(self.n_askers >= LEAST_USERS, self.n_asked, 0)
        if len(often) <= MOST_COMMON:
            return often > 0
        least = np.partition(often, len(often) - MOST_COMMON)[len(often) - MOST_COMMON]
        # All that are asked as often as the last one come in, or the choice among them would be ours.
        return np.asarray((often >= least) & (often > 0), np.bool_)

    @cached_property
    def clicked(self) -> pl.DataFrame | None:
        """The clicks with queries by number, those of unknown ones left out."""
        if self.clicks is None:
            return None
        numbers = self.queries.to_frame("query").with_columns(number=pl.int_range(pl.len(), dtype=pl.Int32))
        found = self.clicks.join(numbers, on="query")
        return found.select(pl.col("number").alias("query"), "url", "count")

    def __repr__(self) -> str:
        # Privacy: numbers only.
        return f"View(n_queries={int((self.n_asked > 0).sum())})"


def is_counted(pair: Pair) -> bool:
    """Return whether a release is counts of queries, or rows that were made up from such counts."""
    return isinstance(pair.release.data, Tallies) or isinstance(pair.release.promise, DifferentialPrivacy)


def counted(pair: Pair) -> tuple[Int64s, Int64s]:
    """Return a released row of each query with its count; those of made-up rows are how many there are."""
    data = pair.release.data
    if isinstance(data, Tallies):
        return np.arange(data.frame.height), data.frame["count"].to_numpy()
    log, n_rows = pair.release.log, pair.log.n_rows
    # Rows can be made up without end, so where there are more than in the log, counts are scaled down.
    scale = min(1.0, n_rows / max(1, log.n_rows))
    by_query = log.frame.select("query").with_row_index("row").group_by("query")
    found = by_query.agg(pl.col("row").first().cast(pl.Int64), count=(pl.len() * scale).round().cast(pl.Int64))
    return found["row"].to_numpy(), found["count"].to_numpy()


def _clicks(data: object) -> pl.DataFrame | None:
    """Return how often each URL is clicked for each query, as its terms; None if there is no click."""
    if isinstance(data, Tallies):
        found = None if data.clicks is None else data.clicks.select("query", "url", "count")
    elif isinstance(data, QueryLog):
        rows = data.with_clicks_as_rows().frame
        found = rows.select("query", "url", count=pl.lit(1, pl.Int64)) if "url" in rows.columns else None
    else:
        found = None
    if found is None:
        return None
    codes, texts = encode(found["query"])
    terms = join_terms(texts).gather(codes) if len(texts) else texts
    named = found.with_columns(query=terms).filter(pl.col("url").is_not_null() & (pl.col("url") != ""))
    summed = (
        named.filter((pl.col("query") != "") & (pl.col("count") > 0))
        .group_by("query", "url")
        .agg(pl.col("count").sum())
    )
    return summed.sort("query", "url") if summed.height else None
