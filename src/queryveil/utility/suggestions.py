"""Utility for query suggestion: whether the most frequent follow-up query is preserved.

A released log with its times cut to days has lost the order of a day, so there a follow-up is any other query of the
same user on the same day; without times, any other query of the same user. Where times are exact it is the next other
query of the user within half an hour. The original is always looked at in the way that the release allows.
"""

from enum import StrEnum

import numpy as np
import polars as pl

from queryveil.data import Bools, Int64s
from queryveil.pairing import Pair
from queryveil.release import TimeDetail
from queryveil.utility.score import Measures, kept, note

LEAST_USERS = 3  # users who must have asked a query for it to be looked at
LEAST_FOLLOWERS = 2  # users who must have asked one query after the other for that to be a suggestion
MOST_QUERIES = 100
"""Somebody with more different queries at a time is taken for a program and left out: every pair would count."""
_SESSION_MINUTES = 30


class Order(StrEnum):
    """What a release shows of the order of queries: which follow-ups both sides can tell."""

    NEXT = "the next query within half an hour"
    SAME_DAY = "another query of the same user and day"
    SAME_USER = "another query of the same user"


def suggestions(pair: Pair) -> Measures:
    """Measure the share of queries whose most frequent follow-up is the same as before."""
    order = Order.NEXT if pair.release.manifest.columns.time is TimeDetail.KEEP else Order.SAME_DAY
    original, released = (rows.filter(pl.col("query") >= 0) for rows in (pair.original_rows, pair.released_rows))
    if "time" not in original.columns or "time" not in released.columns:
        order = Order.SAME_USER
    asked = original.group_by("query").agg(pl.col("user").n_unique())
    looked_at = np.zeros(len(pair.queries), np.bool_)
    looked_at[asked.filter(pl.col("user") >= LEAST_USERS)["query"].to_numpy()] = True
    place = pair.queries.rank("ordinal").to_numpy() if order is Order.NEXT else None
    before, after = (_most_frequent(frame, order, looked_at, place) for frame in (original, released))
    n_queries = before["query"].n_unique()
    if not n_queries:
        return note(
            f"suggestions are left out: no query of {LEAST_USERS} users is followed by the same one for "
            f"{LEAST_FOLLOWERS} of them"
        )
    about = f"of the queries have the same most frequent follow-up ({order})"
    return Measures(scores=(kept("suggestions_kept", _same(before, after) / n_queries, about=about, group="search"),))


def _same(before: pl.DataFrame, after: pl.DataFrame) -> float:
    """Return the sum over the queries of the chance of the same suggestion, if one of the most frequent is drawn."""
    both = before.join(after, on=["query", "next"]).group_by("query").agg(shared=pl.len())
    for name, frame in (("n_before", before), ("n_after", after)):
        both = both.join(frame.group_by("query").agg(pl.len().alias(name)), on="query")
    return float(both.select((pl.col("shared") / pl.max_horizontal("n_before", "n_after")).sum()).item())


def _most_frequent(frame: pl.DataFrame, order: Order, looked_at: Bools, place: Int64s | None) -> pl.DataFrame:
    """Return the most frequent follow-ups of each query that is looked at; `place` sorts queries by their texts."""
    pairs = _pairs_together(frame, order, looked_at) if place is None else _next_pairs(frame, place)
    pairs = pairs.filter(pl.Series(looked_at[pairs["query"].to_numpy()]))
    counted = pairs.unique().group_by("query", "next").agg(pl.len().alias("n"))
    often = counted.filter(pl.col("n") >= LEAST_FOLLOWERS)
    return often.filter(pl.col("n") == pl.col("n").max().over("query")).select("query", "next")


def _next_pairs(frame: pl.DataFrame, place: Int64s) -> pl.DataFrame:
    # Rows of a release are shuffled: queries of the same moment go by their texts on both sides.
    by_text = frame.with_columns(place=pl.Series(place[frame["query"].to_numpy()]))
    ordered = by_text.drop_nulls("time").sort("user", "time", "place")
    runs = ordered.group_by(run=pl.struct("user", "query").rle_id(), maintain_order=True)
    visits = runs.agg(pl.col("user", "query", "time").first(), ended=pl.col("time").last())
    follows = visits.with_columns(pl.col("query", "user", "time").shift(-1).name.prefix("next_"))
    is_soon = (pl.col("next_time") - pl.col("ended")) <= pl.duration(minutes=_SESSION_MINUTES)
    found = follows.filter((pl.col("next_user") == pl.col("user")) & is_soon)
    return found.select("user", "query", next="next_query")


def _pairs_together(frame: pl.DataFrame, order: Order, looked_at: Bools) -> pl.DataFrame:
    keys = ["user"]
    if order is Order.SAME_DAY:
        frame = frame.drop_nulls("time").with_columns(day=pl.col("time").dt.date())
        keys = ["user", "day"]
    asked = frame.select(*keys, "query").unique()
    n_together = pl.col("query").count().over(keys)
    asked = asked.filter(n_together.is_between(2, MOST_QUERIES))
    # What one user alone asked is nobody else's follow-up.
    common = asked.filter(pl.col("user").n_unique().over("query") >= LEAST_FOLLOWERS)
    first = common.filter(pl.Series(looked_at[common["query"].to_numpy()]))
    pairs = first.join(common.rename({"query": "next"}), on=keys)
    return pairs.filter(pl.col("query") != pl.col("next")).select("user", "query", "next")
