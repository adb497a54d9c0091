"""Utility of noisy counts, and of sessions synthesized from them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from queryveil.data import Floats, Int64s, Tallies
from queryveil.pairing import Pair, share_numbers
from queryveil.release import Release
from queryveil.text.tokens import tokenize
from queryveil.utility.frequencies import frequencies_of_counts, top_urls
from queryveil.utility.kept import TermCounts, asked_of, count_terms
from queryveil.utility.score import Measures, kept, share

_ABOUT = {
    "rows_kept": "of the rows are counted in the release",
    "terms_kept": "of the different terms are still there",
    "queries_kept": "of the different queries are still there",
    "log_size_kept": "of all that was asked, counted in terms, is counted in the release",
}
_NO_USERS = "users kept, suggestions and profiles are left out: the release has no rows that are one person's"
_MADE_UP = (
    "all rows are made up: kept is what they have in common with the log, each query counted; users kept, suggestions "
    "and profiles are left out, since queries were dealt to made-up users by chance"
)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class QueryCounts:
    """How often the original has each query, and what the release counts of it.

    Counts of people may be below those of rows and noise may lift them above: what is above counts as noise.

    - `n_rows`: the rows of the original, or the items of its transactions.
    - `before`, `after`: the count of each query in the original and in the release.
    - `terms`: the counts of the queries' terms.
    """

    n_rows: int
    before: Int64s
    after: Int64s
    terms: TermCounts

    @classmethod
    def of(cls, pair: Pair) -> QueryCounts:
        """Return the counts of a pair, with the queries of both numbered by their terms in lower case."""
        asked = pair.original_tokens
        if pair.log.terms_are_items:
            # An item of a transaction is what a query is in a log.
            items = pair.log.frame["query"].str.split(" ").explode(empty_as_null=False)
            asked = tokenize(items, by_blanks=True)
        asked, released = share_numbers(asked, pair.release_tokens)
        row, counts = _counted(pair)
        n_queries, has_terms = len(asked.queries), asked.query_terms.lengths > 0
        before = asked_of(asked) * has_terms
        counts = np.bincount(released.row_query[row], weights=np.maximum(0, counts), minlength=n_queries)
        after = counts.astype(np.int64) * has_terms
        n_terms, n_kept = count_terms(asked, before), count_terms(asked, np.minimum(before, after))
        terms = TermCounts(vocabulary=asked.vocabulary, before=n_terms, after=n_kept)
        return cls(n_rows=len(asked.row_query), before=before, after=after, terms=terms)

    @property
    def kept(self) -> Floats:
        """How much of each query is left."""
        return np.asarray(np.minimum(self.before, self.after), np.float64)

    def __repr__(self) -> str:
        # Privacy: the texts stay out of it.
        return f"QueryCounts(n_queries={len(self.before)})"


def kept_of_counts(counts: QueryCounts, *, release: Release) -> Measures:
    """Measure what noisy counts keep, or rows made up from them: of each query at most as much as was there."""
    terms, was = counts.terms, counts.before > 0
    values = {
        "rows_kept": share(float(counts.kept.sum()), counts.n_rows),
        "terms_kept": share(int((terms.kept > 0).sum()), int((terms.before > 0).sum())),
        "queries_kept": share(int((was & (counts.after > 0)).sum()), int(was.sum())),
        "log_size_kept": share(float(terms.kept.sum()), float(terms.before.sum())),
    }
    scores = tuple(kept(name, value, about=_ABOUT[name]) for name, value in values.items())
    return Measures(scores=scores, notes=(_NO_USERS if isinstance(release.data, Tallies) else _MADE_UP,))


def search_in_counts(counts: QueryCounts, *, pair: Pair) -> Measures:
    """Measure whether what was frequent still is: queries, and URLs if both sides have some."""
    found = frequencies_of_counts(counts.before, counts.after)
    clicked, original = _clicked(pair.release), pair.log
    urls = original.frame["url"] if "url" in original.columns else None
    return found + top_urls(None if urls is None or urls.null_count() == len(urls) else urls, clicked)


def _counted(pair: Pair) -> tuple[Int64s, Int64s]:
    """Return a released row of each query with its count; those of made-up rows are how many there are.

    Rows can be made up without end, so where there are more than in the log, counts are scaled down.
    """
    data = pair.release.data
    if isinstance(data, Tallies):
        return np.arange(data.frame.height), data.frame["count"].to_numpy()
    log, n_rows = pair.release.log, pair.log.n_rows
    scale = min(1.0, n_rows / max(1, log.n_rows))
    by_query = log.frame.select("query").with_row_index("row").group_by("query")
    counted = by_query.agg(pl.col("row").first().cast(pl.Int64), count=(pl.len() * scale).round().cast(pl.Int64))
    return counted["row"].to_numpy(), counted["count"].to_numpy()


def _clicked(release: Release) -> pl.DataFrame | None:
    if isinstance(release.data, Tallies):
        return release.data.clicks
    if "url" not in release.log.columns:
        return None
    return release.log.frame.drop_nulls("url").group_by("url").agg(count=pl.len().cast(pl.Int64))
