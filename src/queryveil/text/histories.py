"""Users and their terms as compressed rows, and the way back to a log."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from queryveil.data import Bools, Int32s, Int64s
from queryveil.data.rows import Rows, group, pointers, sort_in_place
from queryveil.kernels import njit
from queryveil.text.tokens import Tokens

_ROWS_AT_ONCE = 2_000_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Histories:
    """The set of terms of each user.

    - user_terms: the distinct terms of each user, ascending
    - counts: how often the user's queries have each of them
    - n_terms: the number of distinct terms of the whole log
    """

    user_terms: Rows[np.int32]
    counts: Int32s
    n_terms: int

    @classmethod
    def of_pairs(cls, users: NDArray[Any], terms: NDArray[Any], *, n_users: int, n_terms: int) -> tuple[Self, Int64s]:
        """Return the histories made of pairs of a user and a term, each counted once, and the entry of every pair."""
        width = max(1, n_terms)
        pairs, entry = np.unique(users.astype(np.int64) * width + terms, return_inverse=True)
        user_terms = Rows.from_entries(pairs // width, (pairs % width).astype(np.int32), n_rows=n_users)
        return cls(user_terms=user_terms, counts=np.ones(len(pairs), np.int32), n_terms=n_terms), entry

    @property
    def terms(self) -> Int32s:
        """The terms of all users, one after another."""
        return self.user_terms.values

    @property
    def n_users(self) -> int:
        """The number of users, those with an empty history among them."""
        return self.user_terms.n_rows

    @property
    def entry_user(self) -> Int32s:
        """The user of each entry."""
        return self.user_terms.row_of_entry.astype(np.int32)

    def terms_of(self, users: Int64s) -> Rows[np.int64]:
        """Return the terms of some users."""
        ptr, terms = self.user_terms.take(users)
        return Rows(ptr, terms.astype(np.int64))

    def support(self) -> Int64s:
        """Count the users of each term."""
        return np.bincount(self.terms, minlength=self.n_terms).astype(np.int64)

    def frequency(self) -> Int64s:
        """Count the occurrences of each term."""
        return np.bincount(self.terms, weights=self.counts, minlength=self.n_terms).astype(np.int64)

    def keep(self, kept: Bools) -> Histories:
        """Return the histories with only the entries that `kept` marks."""
        return replace(self, user_terms=self.user_terms.keep(kept), counts=self.counts[kept])

    def part(self, entries: Int64s) -> tuple[Histories, Int64s]:
        """Return the histories made of some entries, users and terms numbered anew, and the old numbers of the terms.

        The entries must be in ascending order.
        """
        _, user = np.unique(self.entry_user[entries], return_inverse=True)
        old, terms = np.unique(self.terms[entries], return_inverse=True)
        user_terms = Rows(pointers(np.bincount(user)), terms.astype(np.int32))
        return Histories(user_terms=user_terms, counts=self.counts[entries], n_terms=len(old)), old.astype(np.int64)

    def __repr__(self) -> str:
        return f"Histories(n_users={self.n_users}, n_terms={self.n_terms}, n_entries={len(self.terms)})"


def collect(tokens: Tokens, row_user: Int32s, *, n_users: int) -> Histories:
    """Return the terms of each user's queries."""
    user_terms, counts = _collect_terms(group(row_user, n_users), tokens.row_query, tokens.query_terms)
    return Histories(user_terms=user_terms, counts=counts, n_terms=tokens.n_terms)


@njit(cache=True, nogil=True)
def _collect_terms(
    user_rows: Rows[np.int64], row_query: Int32s, query_terms: Rows[np.int32]
) -> tuple[Rows[np.int32], Int32s]:
    """Return each user's distinct terms in ascending order, and how often each occurs."""
    user_ptr, rows = user_rows
    query_ptr, terms_of_queries = query_terms
    n_users = len(user_ptr) - 1
    n_total = 0
    for query in row_query:
        n_total += query_ptr[query + 1] - query_ptr[query]
    row_ptr = np.zeros(n_users + 1, np.int64)
    terms = np.empty(n_total, np.int32)
    counts = np.empty(n_total, np.int32)
    n = 0
    for user in range(n_users):
        first, end = n, n
        for i in range(user_ptr[user], user_ptr[user + 1]):
            query = row_query[rows[i]]
            for j in range(query_ptr[query], query_ptr[query + 1]):
                terms[end] = terms_of_queries[j]
                end += 1
        sort_in_place(terms[first:end])
        for i in range(first, end):
            if n == first or terms[i] != terms[n - 1]:
                terms[n], counts[n] = terms[i], 0
                n += 1
            counts[n - 1] += 1
        row_ptr[user + 1] = n
    return Rows(row_ptr, terms[:n].copy()), counts[:n].copy()


def rewrite(tokens: Tokens, row_user: Int32s, histories: Histories, word: Int32s, words: pl.Series) -> pl.Series:
    """Write every row's query with what stands for each of its terms.

    `word` has a place in `words` for each entry of the histories, -1 for a term that is gone.
    """
    texts = [pl.Series("query", [], dtype=pl.String)]
    for i in range(0, len(row_user), _ROWS_AT_ONCE):
        some = slice(i, i + _ROWS_AT_ONCE)
        found = _replace_terms(row_user[some], tokens.row_query[some], tokens.query_terms, histories.user_terms, word)
        texts.append(found.to_series(words.gather(found.values)).list.join(" "))
    return pl.concat(texts)


@njit(cache=True, nogil=True)
def _replace_terms(
    row_user: Int32s, row_query: Int32s, query_terms: Rows[np.int32], user_terms: Rows[np.int32], word: Int32s
) -> Rows[np.int32]:
    """Return what stands for the terms of each row, in their order; `word` has -1 for nothing."""
    query_ptr, terms = query_terms
    history_ptr, history = user_terms
    n_total = 0
    for query in row_query:
        n_total += query_ptr[query + 1] - query_ptr[query]
    found_ptr = np.zeros(len(row_user) + 1, np.int64)
    found = np.empty(n_total, np.int32)
    n = 0
    for row in range(len(row_user)):
        first, last = history_ptr[row_user[row]], history_ptr[row_user[row] + 1]
        for j in range(query_ptr[row_query[row]], query_ptr[row_query[row] + 1]):
            stands = word[first + np.searchsorted(history[first:last], terms[j])]
            if stands >= 0:
                found[n] = stands
                n += 1
        found_ptr[row + 1] = n
    return Rows(found_ptr, found[:n].copy())
