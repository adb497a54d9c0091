"""Utility for query suggestion: follow-up queries, completions while somebody types, and related queries.

Of follow-ups the most frequent one is compared. A released log with its times cut to days has lost the order of a day,
so there a follow-up is any other query of the same user on the same day; without times, any other query of the same
user. Where times are exact it is the next other query of the user within half an hour. The original is always looked at
in the way that the release allows.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Self

import numpy as np
import polars as pl

from queryveil.data import Bools, Int64s
from queryveil.pairing import Pair
from queryveil.release import TimeDetail
from queryveil.utility.score import Measures, kept, note
from queryveil.utility.views import LEAST_USERS, View

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


TYPED = 3  # letters after which a query is completed
_SHOWN = 10


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Completions:
    """Queries that are typed, with how often each is, and how early the whole log completes them.

    After three letters those queries are shown that begin with them, what is asked most often first. Each query counts
    one over its place, 0 below the tenth; of queries asked equally often, each has the last place.
    """

    typed: pl.DataFrame
    with_log: float

    @classmethod
    def of(cls, view: View, *, judged: pl.DataFrame) -> Self | None:
        """Prepare the queries to judge on (`query` and `count`); None if the log completes none of them."""
        typed = judged.filter(pl.col("query").str.len_chars() > TYPED)
        with_log = reciprocal_rank(view, typed=typed)
        return cls(typed=typed, with_log=with_log) if with_log > 0 else None

    def measure(self, view: View) -> Measures:
        """Return the mean reciprocal rank of the completions by a release, as a share of that by the log."""
        found = reciprocal_rank(view, typed=self.typed)
        about = (
            f"of the log's completions after {TYPED} letters are there (mean reciprocal rank {found:.3f}, "
            f"{self.with_log:.3f} with the log)"
        )
        value = min(1.0, found / self.with_log)
        return Measures(scores=(kept("completions_kept", value, about=about, group="search"),))


def reciprocal_rank(view: View, *, typed: pl.DataFrame) -> float:
    """Return the mean reciprocal rank of typed queries among the completions that a view gives."""
    asked = view.queries.to_frame("query").with_columns(n=view.n_asked)
    asked = asked.filter((pl.col("n") > 0) & (pl.col("query").str.len_chars() > TYPED))
    place = pl.col("n").rank("max", descending=True).over(pl.col("query").str.slice(0, TYPED))
    found = typed.join(asked.select("query", place=place).filter(pl.col("place") <= _SHOWN), on="query")
    return float(found.select((pl.col("count") / pl.col("place")).sum()).item()) / max(1, int(typed["count"].sum()))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class RelatedQueries:
    """The ten queries most related to each common query of a log.

    Two queries are as related as there are people who asked both on one day (at all, where there are no times), and
    clicks that they have in common; below two they are not related.
    """

    top: pl.DataFrame
    is_common: Bools

    @classmethod
    def of(cls, view: View) -> Self | None:
        """Look at the 1,000 queries asked most often by three users or more; None if nothing is related to them."""
        top = related(view, is_common=view.is_common)
        return cls(top=top, is_common=view.is_common) if top.height else None

    def measure(self, view: View) -> Measures:
        """Return the share of the related queries that a release finds too, for the mean query."""
        same = related(view, is_common=self.is_common).join(self.top, on=["query", "next"])
        shares = (
            self.top.group_by("query")
            .agg(n=pl.len())
            .join(same.group_by("query").agg(n_same=pl.len()), on="query", how="left")
        )
        value = float(shares.select((pl.col("n_same").fill_null(0) / pl.col("n")).mean()).item())
        about = f"of the {_SHOWN} most related queries of each common query are still among them"
        return Measures(scores=(kept("related_kept", value, about=about, group="search"),))


def related(view: View, *, is_common: Bools) -> pl.DataFrame:
    """Return the `query` and the `next` that is among the ten most related to it, for common queries."""
    numbers = pl.Series(np.flatnonzero(is_common).astype(np.int32)).implode()
    parts = [pl.DataFrame(schema={"query": pl.Int32, "next": pl.Int32, "n": pl.Int64})]
    if view.rows is not None:
        rows = view.rows.select("user", "query")
        if view.has_times:
            timed = view.rows.drop_nulls("time")
            rows = timed.select("user", "query", day=pl.col("time").dt.date())
        asked = rows.unique()
        keys = [name for name in asked.columns if name != "query"]
        asked = asked.filter(pl.col("query").len().over(keys).is_between(2, MOST_QUERIES))
        first = asked.filter(pl.col("query").is_in(numbers))
        pairs = first.join(asked.rename({"query": "next"}), on=keys).select("user", "query", "next").unique()
        parts.append(pairs.group_by("query", "next").agg(n=pl.len().cast(pl.Int64)))
    if view.clicked is not None:
        clicked = view.clicked
        first = clicked.filter(pl.col("query").is_in(numbers))
        pairs = first.join(clicked.rename({"query": "next", "count": "n"}), on="url")
        common = pl.min_horizontal("count", "n")
        parts.append(pairs.group_by("query", "next").agg(n=common.sum().cast(pl.Int64)))
    both = pl.concat(parts).filter(pl.col("query") != pl.col("next")).group_by("query", "next").agg(pl.col("n").sum())
    often = both.filter(pl.col("n") >= LEAST_FOLLOWERS).sort(["query", "n", "next"], descending=[False, True, False])
    return often.group_by("query", maintain_order=True).head(_SHOWN).select("query", "next")
