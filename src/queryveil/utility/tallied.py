"""Utility of noisy counts, and of sessions synthesized from them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from queryveil.data import Floats, Int64s, QueryLog, Tallies
from queryveil.release import Release
from queryveil.text.tokens import Tokens, encode, tokenize
from queryveil.utility.frequencies import frequencies_of_counts, top_urls
from queryveil.utility.score import Measures, Score, note, share
from queryveil.utility.sides import TermCounts

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
class Tallied:
    """How often the original has each query (`before`) and what the release counts of it (`after`), with their terms.

    Counts of people may be below those of rows and noise may lift them above: what is above counts as noise. `n_rows`
    are the rows of the original, or the items of its transactions.
    """

    n_rows: int

    before: Int64s
    after: Int64s
    terms: TermCounts

    @classmethod
    def of(cls, original: QueryLog, *, release: Release) -> Tallied:
        """Number the queries of both by their terms in lower case."""
        counted = _counted(release, n_rows=original.n_rows)
        by_blanks = original.terms_are_items
        asked = original.frame["query"].rename("")
        if by_blanks:
            # An item of a transaction is what a query is in a log.
            asked = asked.str.split(" ").explode(empty_as_null=False)
        both = tokenize(pl.concat([asked, counted["query"].rename("")]), by_blanks=by_blanks)
        n, n_queries = len(asked), len(both.queries)
        has_terms = both.query_terms.lengths > 0
        before = np.bincount(both.row_query[:n], minlength=n_queries) * has_terms
        counts = np.maximum(0, counted["count"].to_numpy())
        after = np.bincount(both.row_query[n:], weights=counts, minlength=n_queries).astype(np.int64) * has_terms
        kept = np.minimum(before, after)
        return cls(
            n_rows=n,
            before=before,
            after=after,
            terms=TermCounts(vocabulary=both.vocabulary, before=_by_term(both, before), after=_by_term(both, kept)),
        )

    @property
    def kept(self) -> Floats:
        """How much of each query is left."""
        return np.asarray(np.minimum(self.before, self.after), np.float64)

    def __repr__(self) -> str:
        # Privacy: the texts stay out of it.
        return f"Tallied(n_queries={len(self.before)})"


def kept_of_tallies(tallied: Tallied, *, release: Release) -> Measures:
    """Measure what noisy counts keep, or rows made up from them: of each query at most as much as was there."""
    terms, was = tallied.terms, tallied.before > 0
    values = {
        "rows_kept": share(float(tallied.kept.sum()), tallied.n_rows),
        "terms_kept": share(int((terms.kept > 0).sum()), int((terms.before > 0).sum())),
        "queries_kept": share(int((was & (tallied.after > 0)).sum()), int(was.sum())),
        "log_size_kept": share(float(terms.kept.sum()), float(terms.before.sum())),
    }
    scores = tuple(
        Score(name=name, value=value, better="more", about=_ABOUT[name], group="kept", is_share=True)
        for name, value in values.items()
    )
    return Measures(scores=scores, notes=(_NO_USERS if isinstance(release.data, Tallies) else _MADE_UP,))


def search_in_tallies(tallied: Tallied, *, original: QueryLog, release: Release) -> Measures:
    """Measure whether what was frequent still is: queries, and URLs if both sides have some."""
    found = frequencies_of_counts(tallied.before, tallied.after)
    clicked = _clicked(release)
    if "url" not in original.columns or original.frame["url"].null_count() == original.n_rows:
        return found + note("top URLs are left out: the log has no URLs")
    if clicked is None:
        return found + note("top URLs are left out: the release has no URLs")
    asked = original.frame["url"].drop_nulls()
    codes, distinct = encode(pl.concat([asked.rename(""), clicked["url"].rename("")]))
    before = np.bincount(codes[: len(asked)], minlength=len(distinct)).astype(np.int64)
    after = np.bincount(codes[len(asked) :], weights=clicked["count"].to_numpy(), minlength=len(distinct))
    is_url = (distinct != "").to_numpy()
    return found + Measures(scores=(top_urls(before * is_url, np.maximum(0, after).astype(np.int64) * is_url),))


def _counted(release: Release, *, n_rows: int) -> pl.DataFrame:
    """Return the queries of a release with their counts; those of made-up rows are how many there are.

    Rows can be made up without end, so where there are more than in the log, counts are scaled down.
    """
    if isinstance(release.data, Tallies):
        return release.data.frame
    log = release.log
    scale = min(1.0, n_rows / max(1, log.n_rows))
    return log.frame.group_by("query").agg(count=(pl.len() * scale).round().cast(pl.Int64))


def _clicked(release: Release) -> pl.DataFrame | None:
    if isinstance(release.data, Tallies):
        return release.data.clicks
    if "url" not in release.log.columns:
        return None
    return release.log.frame.drop_nulls("url").group_by("url").agg(count=pl.len().cast(pl.Int64))


def _by_term(tokens: Tokens, counts: Int64s) -> Int64s:
    times = np.repeat(counts, tokens.query_terms.lengths)
    return np.bincount(tokens.terms, weights=times, minlength=tokens.n_terms).astype(np.int64)
