"""What can be counted of terms without reading them: how many people use each, where, and beside which others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from queryveil.kernels.arrays import Bools, Float32s, Int64s
from queryveil.log import Format, QueryLog
from queryveil.text.codes import encode
from queryveil.text.tokens import tokenize

_FURTHEST = 5
"""Terms of one query count as neighbours up to so many places apart."""
_BANDS = tuple(2**i for i in range(13))
"""Neighbours are put into bands by their rank among all terms: the first, the second, the next two, the next four."""
_PEOPLE_AT_ONCE = 5_000


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class TokenCounts:
    """The most used terms of a log, and how many people use each in which way.

    `uses` counts the people who use a term at all, alone, with one, two or more others, in the first and in the last
    place; `bands` those who use it beside a term of each band. Two terms are `together` in a query, or `apart` in
    different queries of one person.
    """

    terms: pl.Series
    n_people: int
    uses: Float32s
    bands: Float32s
    together: Float32s
    apart: Float32s

    @classmethod
    def of(cls, log: QueryLog, *, n_terms: int, rng: np.random.Generator) -> TokenCounts:
        """Count the `n_terms` most used terms of a log; among equals those that are drawn."""
        occurrences = _Occurrences(log)
        vocabulary = occurrences.vocabulary
        holders = np.unique(occurrences.user * max(1, len(vocabulary)) + occurrences.term)
        user, term = holders // max(1, len(vocabulary)), holders % max(1, len(vocabulary))
        support = np.bincount(term, minlength=len(vocabulary))
        order = np.lexsort((rng.random(len(vocabulary)), -support))
        rank = np.empty(len(vocabulary), np.int64)
        rank[order] = np.arange(len(vocabulary))
        n = min(n_terms, len(vocabulary))
        bands, together = _neighbours(occurrences, rank, support, n=n)
        among = _in_histories(user, rank[term], n_people=occurrences.n_people, n=n)
        return cls(
            terms=vocabulary.gather(order[:n]),
            n_people=occurrences.n_people,
            uses=_uses(occurrences, rank, n=n),
            bands=bands,
            together=together,
            apart=np.maximum(0, among - together),
        )

    def __repr__(self) -> str:
        # Privacy: the terms stay out of it.
        return f"TokenCounts(n_terms={len(self.terms)}, n_people={self.n_people})"


class _Occurrences:
    """Every term of every query, a query once for each person who asked it."""

    def __init__(self, log: QueryLog) -> None:
        owner, owners = encode(log.frame["user"])
        tokens = tokenize(log.frame["query"], by_blanks=log.layout.format is Format.TRANSACTIONS)
        n_queries = max(1, len(tokens.queries))
        asked = np.unique(owner.astype(np.int64) * n_queries + tokens.row_query)
        query = asked % n_queries
        lengths = np.diff(tokens.query_ptr)[query] if len(query) else np.zeros(0, np.int64)
        self.vocabulary, self.n_people = tokens.vocabulary, len(owners)
        self.asked: Int64s = np.repeat(np.arange(len(asked)), lengths)
        self.place: Int64s = np.arange(len(self.asked)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        self.length: Int64s = np.repeat(lengths, lengths)
        self.user: Int64s = (asked // n_queries)[self.asked]
        self.term: Int64s = tokens.terms[tokens.query_ptr[query[self.asked]] + self.place].astype(np.int64)


def _uses(occurrences: _Occurrences, rank: Int64s, *, n: int) -> Float32s:
    place, length = occurrences.place, occurrences.length
    is_top = rank[occurrences.term] < n
    longer = length > 1
    kinds = (length > 0, length == 1, length == 2, length == 3, length > 3, longer & (place == 0))
    columns = [_people(occurrences, rank, is_top & kind, n=n) for kind in (*kinds, longer & (place == length - 1))]
    return np.stack(columns, axis=1).astype(np.float32)


def _people(occurrences: _Occurrences, rank: Int64s, chosen: Bools, *, n: int) -> Int64s:
    """Count the people behind some occurrences of each term."""
    pairs = np.unique(occurrences.user[chosen] * max(1, n) + rank[occurrences.term[chosen]])
    return np.bincount(pairs % max(1, n), minlength=n)


def _neighbours(occurrences: _Occurrences, rank: Int64s, support: Int64s, *, n: int) -> tuple[Float32s, Float32s]:
    """Count the people who use each term beside one of each band, and beside each other."""
    n_terms = max(1, len(rank))
    parts = []
    for distance in range(1, _FURTHEST + 1):
        left = np.flatnonzero(occurrences.asked[:-distance] == occurrences.asked[distance:])
        for one, other in ((left, left + distance), (left + distance, left)):
            top, beside = rank[occurrences.term[one]], rank[occurrences.term[other]]
            chosen = (top < n) & (top != beside)
            parts.append((occurrences.user[one[chosen]] * max(1, n) + top[chosen]) * n_terms + beside[chosen])
    pairs = np.unique(np.concatenate(parts))
    top, beside = pairs // n_terms % max(1, n), pairs % n_terms
    # What one person alone uses is a band of its own, whatever its rank.
    once = np.sort(support)[::-1][beside] == 1
    band = np.where(once, len(_BANDS) + 1, np.digitize(beside, _BANDS))
    n_bands = len(_BANDS) + 2
    bands = np.bincount(top * n_bands + band, minlength=n * n_bands).reshape(n, n_bands)
    both = beside < n
    together = np.bincount(top[both] * n + beside[both], minlength=n * n).reshape(n, n)
    return bands.astype(np.float32), together.astype(np.float32)


def _in_histories(user: Int64s, rank: Int64s, *, n_people: int, n: int) -> Float32s:
    """Count the people who have any two of the terms; users are in ascending order."""
    both = np.zeros((n, n), np.float32)
    for first in range(0, n_people, _PEOPLE_AT_ONCE):
        some = slice(*np.searchsorted(user, [first, first + _PEOPLE_AT_ONCE]))
        is_top = rank[some] < n
        has = np.zeros((min(_PEOPLE_AT_ONCE, n_people - first), n), np.float32)
        has[user[some][is_top] - first, rank[some][is_top]] = 1
        both += has.T @ has
    np.fill_diagonal(both, 0)
    return both
