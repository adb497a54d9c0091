"""Users and their terms as compressed rows, and the way back to a log."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa

from queryveil.data import Bools, Int32s, Int64s
from queryveil.data.rows import collect_histories, find_words, group
from queryveil.text.tokens import Tokens

_ROWS_AT_ONCE = 2_000_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Histories:
    """The set of terms of each user, with how often the user's queries hold each.

    User u has the terms `terms[row_ptr[u]:row_ptr[u + 1]]`, ascending; `counts` stands beside `terms`.
    """

    row_ptr: Int64s
    terms: Int32s
    counts: Int32s
    n_terms: int

    @property
    def n_users(self) -> int:
        """The number of users, those with an empty history among them."""
        return len(self.row_ptr) - 1

    @property
    def entry_user(self) -> Int32s:
        """The user of each entry."""
        return np.repeat(np.arange(self.n_users, dtype=np.int32), np.diff(self.row_ptr))

    def support(self) -> Int64s:
        """Count the users of each term."""
        return np.bincount(self.terms, minlength=self.n_terms).astype(np.int64)

    def frequency(self) -> Int64s:
        """Count the occurrences of each term."""
        return np.bincount(self.terms, weights=self.counts, minlength=self.n_terms).astype(np.int64)

    def keep(self, kept: Bools) -> Histories:
        """Return the histories with only the entries that `kept` marks."""
        n_before = np.concatenate([[0], np.cumsum(kept)]).astype(np.int64)
        return Histories(
            row_ptr=n_before[self.row_ptr], terms=self.terms[kept], counts=self.counts[kept], n_terms=self.n_terms
        )

    def part(self, entries: Int64s) -> tuple[Histories, Int64s]:
        """Return the histories made of some entries, users and terms numbered anew, and the old numbers of the terms.

        The entries must be in ascending order.
        """
        _, user = np.unique(self.entry_user[entries], return_inverse=True)
        old, terms = np.unique(self.terms[entries], return_inverse=True)
        row_ptr = np.concatenate([[0], np.cumsum(np.bincount(user))]).astype(np.int64)
        part = Histories(row_ptr=row_ptr, terms=terms.astype(np.int32), counts=self.counts[entries], n_terms=len(old))
        return part, old.astype(np.int64)

    def __repr__(self) -> str:
        return f"Histories(n_users={self.n_users}, n_terms={self.n_terms}, n_entries={len(self.terms)})"


def collect(tokens: Tokens, row_user: Int32s, *, n_users: int) -> Histories:
    """Collect the terms of each user's queries."""
    user_ptr, user_rows = group(row_user, n_users)
    row_ptr, terms, counts = collect_histories(user_ptr, user_rows, tokens.row_query, tokens.query_ptr, tokens.terms)
    return Histories(row_ptr=row_ptr, terms=terms, counts=counts, n_terms=tokens.n_terms)


def spread(row_ptr: Int64s, *, rows: Int64s) -> tuple[Int64s, Int64s]:
    """Return the place of each entry of some compressed rows, and beside it which of the rows it is in.

    >>> [part.tolist() for part in spread(np.array([0, 2, 3, 5]), rows=np.array([2, 0]))]
    [[0, 0, 1, 1], [3, 4, 0, 1]]
    """
    lengths = row_ptr[rows + 1] - row_ptr[rows]
    row = np.repeat(np.arange(len(rows)), lengths)
    return row, np.arange(len(row)) + np.repeat(row_ptr[rows] - (np.cumsum(lengths) - lengths), lengths)


def rewrite(tokens: Tokens, row_user: Int32s, histories: Histories, word: Int32s, words: pl.Series) -> pl.Series:
    """Write every row's query with what stands for each of its terms.

    `word` has a place in `words` for each entry of the histories, -1 for a term that is gone.
    """
    n = len(row_user)
    parts = [
        _rewrite_some(tokens, row_user, slice(i, i + _ROWS_AT_ONCE), histories, word, words)
        for i in range(0, n, _ROWS_AT_ONCE)
    ]
    return pl.concat(parts) if parts else pl.Series("query", [], dtype=pl.String)


def _rewrite_some(
    tokens: Tokens, row_user: Int32s, some: slice, histories: Histories, word: Int32s, words: pl.Series
) -> pl.Series:
    ptr, found = find_words(
        row_user[some],
        tokens.row_query[some],
        tokens.query_ptr,
        tokens.terms,
        histories.row_ptr,
        histories.terms,
        word,
    )
    texts = words.gather(found).to_arrow().cast(pa.large_string())
    return pl.Series("query", pa.LargeListArray.from_arrays(pa.array(ptr), texts)).list.join(" ")
