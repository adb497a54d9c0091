"""Utility for statistics: top queries and URLs, and the correlation of frequencies."""

import numpy as np
import polars as pl

from queryveil.data import Floats, Int64s
from queryveil.pairing import Pair
from queryveil.utility.score import Measures, Score, kept, note

N_TOP = 50
"""Paper: Hong et al., figure 2(c), counts how many of the 50 most frequent stay among the 50 most frequent."""
N_RANKED = 1000


def frequencies(pair: Pair) -> Measures:
    """Measure the most frequent queries, and the most frequent URLs if both logs have some."""
    original, released = pair.original_rows, pair.released_rows
    urls = original["url"] if "url" in original.columns else None
    clicked = released.select("url", count=pl.lit(1)) if "url" in released.columns else None
    return frequencies_of_counts(*pair.n_asked) + top_urls(urls, clicked)


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
    return kept(f"top_{what.lower()}_kept", top_kept(before, after, n_top=N_TOP), about=about, group="search")


def top_kept(before: Int64s, after: Int64s, *, n_top: int) -> float:
    """Return the share of the most frequent things that are still among the most frequent.

    Things that are equally frequent share the last places between them, before and after.

    >>> top_kept(np.array([9, 8, 7, 0]), np.array([5, 0, 4, 9]), n_top=2)
    0.5
    >>> top_kept(np.array([9, 1, 1]), np.array([9, 1, 1]), n_top=2)
    1.0
    """
    mine, theirs = _places(before, n_top), _places(after, n_top)
    whole = float(mine.sum())
    return float(np.minimum(mine, theirs).sum()) / whole if whole else 1.0


def _places(counts: Int64s, n_top: int) -> Floats:
    """Return the part of the first `n_top` places that each thing has: 1, 0, or an equal part of the last ones."""
    there = counts[counts > 0]
    if len(there) <= n_top:
        return np.asarray(counts > 0, np.float64)
    last = np.partition(there, len(there) - n_top)[len(there) - n_top]
    n_above = int((there > last).sum())
    part = (n_top - n_above) / int((there == last).sum())
    return np.where(counts > last, 1.0, np.where(counts == last, part, 0.0))


def _correlation(before: Int64s, after: Int64s) -> Measures:
    there = before[before > 0]
    if not len(there):
        return note("the frequency correlation is left out: the log has no queries")
    # Whatever is as frequent as the last one is looked at too, or the choice among them would be ours.
    least = np.partition(there, max(0, len(there) - N_RANKED))[max(0, len(there) - N_RANKED)]
    looked_at = before >= least
    if there.max() == least:
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
