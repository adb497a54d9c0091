"""How often things were asked, from the most to the least frequent, without saying what they are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from queryveil.kernels.arrays import Int64s
from queryveil.log import Format, QueryLog
from queryveil.release import Release
from queryveil.tallies import Tallies
from queryveil.text.tokens import normalize, tokenize
from queryveil.transactions import Transactions

_N_POINTS = 40

Points = tuple[tuple[int, int], ...]
"""Pairs of a rank and how often that which has this rank was asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Curves:
    """Frequencies by rank in the original and in the release, and `what` they are of: queries or terms.

    Before, rows are counted. After, too, unless the release is noisy counts `of_people`.
    """

    what: str
    before: Points
    after: Points
    of_people: bool = False


def curves_of(original: QueryLog, *, release: Release) -> Curves | None:
    """Give the frequencies of queries, of terms where transactions were released, of nothing where groups were."""
    if isinstance(release.data, QueryLog):
        after = release.data.frame["query"]
        return Curves(what="queries", before=_points(_asked(original.frame["query"])), after=_points(_asked(after)))
    if isinstance(release.data, Tallies):
        counts: Int64s = release.data.frame["count"].to_numpy()
        before = _points(_asked(original.frame["query"]))
        return Curves(what="queries", before=before, after=_points(counts), of_people=True)
    if isinstance(release.data, Transactions):
        by_blanks = original.layout.format is Format.TRANSACTIONS
        tokens = tokenize(original.frame["query"], by_blanks=by_blanks)
        lengths = np.diff(tokens.query_ptr)
        often = np.bincount(tokens.row_query, minlength=len(lengths))
        asked = np.bincount(tokens.terms, weights=np.repeat(often, lengths), minlength=tokens.n_terms)
        items = release.data.frame["items"].explode(empty_as_null=False)
        return Curves(what="terms", before=_points(asked.astype(np.int64)), after=_points(_counts(items)))
    return None


def points_of(counts: list[int]) -> Points:
    """Give ranks and counts: all of the first ranks, then ever fewer, and the last.

    >>> points_of([1, 7, 3])
    ((1, 7), (2, 3), (3, 1))
    """
    return _points(np.array(counts, np.int64))


def _points(counts: Int64s) -> Points:
    ordered = np.sort(counts[counts > 0])[::-1]
    if not len(ordered):
        return ()
    spread = np.rint(np.geomspace(1, len(ordered), _N_POINTS)).astype(np.int64)
    tens = 10 ** np.arange(1 + int(np.log10(len(ordered))))
    ranks = np.union1d(spread, tens)
    return tuple((int(rank), int(ordered[rank - 1])) for rank in ranks)


def _asked(queries: pl.Series) -> Int64s:
    texts = normalize(queries)
    return _counts(texts.filter(texts != ""))


def _counts(values: pl.Series) -> Int64s:
    found: Int64s = values.value_counts(name="n")["n"].cast(pl.Int64).to_numpy()
    return found
