"""Utility for statistics and profiling: top queries and URLs, frequencies, trends, and each user's categories."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import polars as pl

from queryveil.data import Bools, Floats, Int8s, Int64s, QueryLog
from queryveil.data.rows import Rows
from queryveil.kernels import njit
from queryveil.pairing import ESTIMATED, Identity, Pair
from queryveil.release.texts import N_TOP, n_top_kept
from queryveil.text.classifier import CATEGORIES
from queryveil.utility.score import Measures, Score, kept, note, share
from queryveil.utility.views import View

N_RANKED = 1000


def frequencies(pair: Pair) -> Measures:
    """Measure the most frequent queries, and the most frequent URLs if both logs have some."""
    urls, released = urls_of(pair.log), urls_of(pair.release.log)
    clicked = None if released is None else released.to_frame("url").with_columns(count=pl.lit(1))
    return frequencies_of_counts(*pair.n_asked) + top_urls(urls, clicked)


def urls_of(log: QueryLog) -> pl.Series | None:
    """Return the URL of each click of a log, missing ones where a row is none; None if there is no URL at all."""
    clicks = log.with_clicks_as_rows().frame
    return clicks["url"] if "url" in clicks.columns and clicks["url"].null_count() < clicks.height else None


def frequencies_of_counts(before: Int64s, after: Int64s) -> Measures:
    """Measure the most frequent queries, from how often each is asked."""
    return Measures(scores=(_top("queries", before, after),)) + _correlation(before, after)


def top_urls(original: pl.Series | None, clicked: pl.DataFrame | None) -> Measures:
    """Measure the most frequent URLs of the rows of the original, and of a release: columns `url` and `count`."""
    if original is None:
        return note("top URLs are left out: the log has no URLs")
    if clicked is None:
        return note("top URLs are left out: the release has no URLs")
    before = original.to_frame("url").group_by("url").agg(before=pl.len().cast(pl.Int64))
    after = clicked.group_by("url").agg(after=pl.col("count").sum().cast(pl.Int64).clip(lower_bound=0))
    both = before.join(after, on="url", how="full", coalesce=True).filter(pl.col("url") != "").fill_null(0)
    return Measures(scores=(_top("URLs", both["before"].to_numpy(), both["after"].to_numpy()),))


def _top(what: str, before: Int64s, after: Int64s) -> Score:
    about = f"of the {N_TOP} most frequent {what} are still among the {N_TOP} most frequent"
    value = share(n_top_kept(before, after), min(N_TOP, int((before > 0).sum())))
    return kept(f"top_{what.lower()}_kept", value, about=about, group="search")


def _correlation(before: Int64s, after: Int64s) -> Measures:
    asked = before[before > 0]
    if not len(asked):
        return note("the frequency correlation is left out: the log has no queries")
    # Whatever is as frequent as the last one is looked at too, or the choice among them would be ours.
    least = np.partition(asked, max(0, len(asked) - N_RANKED))[max(0, len(asked) - N_RANKED)]
    looked_at = before >= least
    if asked.max() == least:
        return note("the frequency correlation is left out: all queries of the log are equally frequent")
    value = spearman(before[looked_at], after[looked_at])
    about = "rank correlation of how often the most frequent queries are asked, 1 is the same order"
    score = Score(name="frequency_correlation", value=value, better="more", about=about, group="search")
    return Measures(scores=(score,))


def spearman(one: Int64s, other: Int64s) -> float:
    """Return the correlation of ranks, equal values having their mean rank; 0 if all values of one side are equal.

    >>> spearman(np.array([9, 5, 5, 1]), np.array([90, 50, 50, 10])), spearman(np.array([1, 2, 3]), np.array([3, 2, 1]))
    (1.0, -1.0)
    """
    first, second = (pl.Series(values).rank("average").to_numpy() for values in (one, other))
    first, second = first - first.mean(), second - second.mean()
    scale = float(np.sqrt((first @ first) * (second @ second)))
    return float(np.clip(first @ second / scale, -1.0, 1.0)) if scale else 0.0


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Trends:
    """How often each common query of a log is asked in each week, or on each day of a log of one week.

    - `every`: the length of a period, as Polars writes it.
    - `common`: the numbers of the queries looked at.
    - `periods`: the periods in which the log has queries, in their order.
    - `n_asked`: how often each of these queries is asked in each period.
    """

    every: str
    common: Int64s
    periods: pl.Series
    n_asked: Int64s

    @classmethod
    def of(cls, view: View) -> Self | None:
        """Count the queries of a log by week, or by day; None if it has no times or all of one day."""
        common = np.flatnonzero(view.is_common)
        if not view.has_times or view.rows is None or not len(common):
            return None
        for every in ("1w", "1d"):
            periods = view.rows["time"].drop_nulls().dt.truncate(every).unique().sort()
            if len(periods) > 1:
                empty = cls(every=every, common=common, periods=periods, n_asked=np.zeros((0, 0), np.int64))
                found = replace(empty, n_asked=empty.count(view))
                return found if found.is_mixed.any() else None
        return None

    @property
    def is_mixed(self) -> Bools:
        """Whether queries are asked more or less often in each period: without, there is no order."""
        return np.asarray(self.n_asked.min(axis=0) < self.n_asked.max(axis=0), np.bool_)

    def count(self, view: View) -> Int64s:
        """Return how often each query is asked in each period."""
        shape = (len(self.common), len(self.periods))
        if not view.has_times or view.rows is None:
            return np.zeros(shape, np.int64)
        numbers = pl.DataFrame({"query": self.common.astype(np.int32), "place": np.arange(shape[0])})
        places = self.periods.to_frame("period").with_columns(column=pl.int_range(pl.len()))
        timed = view.rows.with_columns(period=pl.col("time").dt.truncate(self.every))
        cells = (
            timed.join(numbers, on="query")
            .join(places, on="period")
            .select(pl.col("place") * shape[1] + pl.col("column"))
        )
        return np.bincount(cells["place"].to_numpy(), minlength=shape[0] * shape[1]).reshape(shape).astype(np.int64)

    def measure(self, view: View) -> Measures:
        """Return the rank correlation of how often queries are asked, for the mean period, 0 if it is below."""
        after, periods = self.count(view), np.flatnonzero(self.is_mixed)
        found = [spearman(self.n_asked[:, period], after[:, period]) for period in periods]
        value = float(np.average(found, weights=self.n_asked.sum(axis=0)[periods]))
        what = "week" if self.every == "1w" else "day"
        about = (
            f"of the order of the common queries by how often they are asked each {what} is there (rank correlation)"
        )
        notes = () if view.has_times else ("the release has no times, so that it shows no trends",)
        return Measures(scores=(kept("trends_kept", max(0.0, value), about=about, group="search"),), notes=notes)


_N = len(CATEGORIES) + 1
"""The last one is for queries without a category."""

_ESTIMATED = f"{ESTIMATED}; profiles come out further from the original than they are"
_FRESH = f"{_ESTIMATED}; with --ids keyed they are measured exactly"
_CUT = f"ids are new in each window: {_ESTIMATED}"


def category_profiles(pair: Pair) -> Measures:
    """Measure how many profiles are unchanged, and how far the others moved."""
    if not pair.n_users:
        return Measures(notes=("profiles are left out: the log has no users",))
    category = pair.categories
    before = _count(pair.original_rows, category, n_owners=pair.n_users)
    after = _count(pair.released_rows, category, n_owners=pair.n_candidates)
    # A released user who may be any of n people is a part of each of their profiles. With windows a person is several
    # released users, and all of them together make up the profile.
    is_cut = pair.release.promise.window is not None
    released, presence = merged(after, identity=pair.identity, n_users=pair.n_users, is_cut=is_cut)
    same = presence * (np.abs(before - released) < 1e-6).all(axis=1)
    moved = presence * jensen_shannon(before, released) + (1.0 - presence)
    notes = () if pair.identity.exact else (_CUT if is_cut else _FRESH,)
    about = "of the users have as many queries of each category as before"
    unmoved = kept("profiles_unchanged", float(same.mean()), about=about, group="profiles")
    about = "Jensen-Shannon distance of a user's categories from those before, 0 to 1, gone is 1"
    distance = Score(name="profile_distance", value=float(moved.mean()), better="less", about=about, group="profiles")
    return Measures(scores=(unmoved, distance), notes=notes)


def _count(rows: pl.DataFrame, category: Int8s, *, n_owners: int) -> Int64s:
    of_query = np.append(np.where(category < 0, _N - 1, category), _N - 1).astype(np.int64)
    # The query of a row without a term is -1, which is the last place.
    cells = rows["user"].to_numpy().astype(np.int64) * _N + of_query[rows["query"].to_numpy()]
    return np.bincount(cells, minlength=n_owners * _N).reshape(n_owners, _N).astype(np.int64)


@njit(cache=True, nogil=True)
def _sum_by_owner(owners: Rows[np.int32], parts: Floats, n_users: int) -> Floats:
    """Return the sum of the rows of all that each user owns; there may be hundreds of owners to a row."""
    summed = np.zeros((n_users, parts.shape[1]))
    for row in range(len(owners.ptr) - 1):
        for owner in owners.values[owners.ptr[row] : owners.ptr[row + 1]]:
            summed[owner] += parts[row]
    return summed


def merged(counts: Int64s, *, identity: Identity, n_users: int, is_cut: bool) -> tuple[Floats, Floats]:
    """Return the released counts of each user, and how much of the user is there, 0 to 1.

    >>> from queryveil.data.rows import Rows
    >>> who = Identity(users=Rows.from_lists([[0], [1, 2]]), exact=False)
    >>> released, presence = merged(np.array([[2, 0], [1, 4]]), identity=who, n_users=4, is_cut=False)
    >>> released.tolist(), presence.tolist()
    ([[2.0, 0.0], [1.0, 4.0], [1.0, 4.0], [0.0, 0.0]], [1.0, 0.5, 0.5, 0.0])
    """
    owners = identity.users
    parts = counts / np.maximum(1, owners.lengths)[:, None]
    summed = _sum_by_owner(owners, parts, n_users)
    weight = identity.n_candidates_of(n_users)
    presence = np.minimum(1.0, weight)
    scale = np.where(weight > 0, presence if is_cut else weight, 1.0)
    return summed / scale[:, None], presence


def jensen_shannon(one: Int64s | Floats, other: Int64s | Floats) -> Floats:
    """Return the Jensen-Shannon distance (root of the divergence in bits) between the shares of two rows of counts.

    >>> jensen_shannon(np.array([[2, 2], [1, 0]]), np.array([[5, 5], [0, 3]])).tolist()
    [0.0, 1.0]
    """
    shares = [counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-300) for counts in (one, other)]
    middle = (shares[0] + shares[1]) / 2
    ratios = [np.divide(p, middle, out=np.ones_like(p), where=p > 0) for p in shares]
    one_entropy, other_entropy = ((p * np.log2(ratio)).sum(axis=1) for p, ratio in zip(shares, ratios, strict=True))
    return np.asarray(np.sqrt(np.clip((one_entropy + other_entropy) / 2, 0.0, 1.0)), np.float64)
