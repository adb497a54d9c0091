"""How often the original and the release of a pair have each term."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from queryveil.data import Floats, Int64s, Transactions
from queryveil.pairing import Pair
from queryveil.release import Release
from queryveil.text.tokens import Tokens, encode


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class TermCounts:
    """How often the original and the release have each term.

    Parameters
    ----------
    vocabulary
        The terms, by number.
    before, after
        The occurrences of each term in the original and in the release.
    real
        The share of released rows that were not made up; those that were are taken out of all terms alike.
    """

    vocabulary: pl.Series
    before: Int64s
    after: Int64s
    real: float = 1.0

    @classmethod
    def of(cls, pair: Pair) -> TermCounts:
        """Count the terms of a log and of the log that was released."""
        before, after = (count_terms(tokens, asked_of(tokens)) for tokens in pair.tokens)
        real = n_real_rows(pair.release) / max(1, pair.release.log.n_rows)
        return cls(vocabulary=pair.vocabulary, before=before, after=after, real=real)

    @property
    def kept(self) -> Floats:
        """How much of each term is left; what the release has more of was made up too."""
        return np.asarray(np.minimum(self.before, self.after * self.real), np.float64)

    def __repr__(self) -> str:
        # Privacy: the terms stay out of it.
        return f"TermCounts(n_terms={len(self.vocabulary)})"


def n_real_rows(release: Release) -> int:
    """Count the released rows that somebody asked; the manifest says how many were made up."""
    return max(0, release.log.n_rows - release.manifest.changed.get("rows_added", 0))


def asked_of(tokens: Tokens) -> Int64s:
    """Count the rows of each query."""
    return np.bincount(tokens.row_query, minlength=len(tokens.queries)).astype(np.int64)


def count_terms(tokens: Tokens, asked: Int64s) -> Int64s:
    """Count the occurrences of each term, where each query is asked so often."""
    times = np.repeat(asked, tokens.query_terms.lengths)
    return np.bincount(tokens.terms, weights=times, minlength=tokens.n_terms).astype(np.int64)


def items_in(bags: Transactions | pl.Series) -> pl.Series:
    """Return all items one after another."""
    lists = bags.frame["items"] if isinstance(bags, Transactions) else bags
    return lists.explode(empty_as_null=False).rename("")


def count_items(before: pl.Series, *, after: pl.Series) -> TermCounts:
    """Count the items of two sides; an item is taken as it stands."""
    codes, vocabulary = encode(pl.concat([before.rename(""), after.rename("")]))
    n = len(before)
    return TermCounts(
        vocabulary=vocabulary,
        before=np.bincount(codes[:n], minlength=len(vocabulary)).astype(np.int64),
        after=np.bincount(codes[n:], minlength=len(vocabulary)).astype(np.int64),
    )
