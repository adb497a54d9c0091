"""Queries as terms: lower case, split at everything that is not a letter or a digit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from queryveil.kernels.arrays import Int32s, Int64s
from queryveil.text.codes import encode

# Differs: the paper keeps a list of Latin letters; we keep letters and digits of every script, and the marks that
# letters carry, since Hindi or Thai words fall apart without them.
_SEPARATORS = r"[^\p{L}\p{M}\p{Nd}]+"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Tokens:
    """The terms of a column of queries.

    Row r asks the query `row_query[r]`; query q is the text `queries[q]`, its terms are
    `terms[query_ptr[q]:query_ptr[q + 1]]` in their order, and term t reads `vocabulary[t]`.
    """

    row_query: Int32s
    queries: pl.Series
    query_ptr: Int64s
    terms: Int32s
    vocabulary: pl.Series

    @property
    def n_terms(self) -> int:
        """The number of distinct terms."""
        return len(self.vocabulary)

    def __repr__(self) -> str:
        # Privacy: the texts stay out of it.
        return f"Tokens(n_rows={len(self.row_query)}, n_queries={len(self.queries)}, n_terms={self.n_terms})"


def normalize(queries: pl.Series) -> pl.Series:
    """Write queries as their terms in lower case with one blank between them.

    >>> normalize(pl.Series(["Ad-Placement,  LONDON!", "?"])).to_list()
    ['ad placement london', '']
    """
    # Lower case comes first: that of a few letters (İ) is not in normal form itself.
    lower = queries.str.to_lowercase().str.normalize("NFC")
    return lower.str.replace_all(_SEPARATORS, " ").str.strip_chars(" ")


def tokenize(queries: pl.Series, *, by_blanks: bool = False) -> Tokens:
    """Take the terms out of a column of queries; each distinct query is looked at once.

    With `by_blanks` the terms are items of transactions: as they stand, with blanks between them.

    >>> tokens = tokenize(pl.Series(["Red wine", "wine; red!", "RED  WINE"]))
    >>> tokens
    Tokens(n_rows=3, n_queries=2, n_terms=2)
    """
    row_raw, raw = encode(queries)
    raw_query, distinct = encode(raw.str.replace_all(r"\s+", " ").str.strip_chars(" ") if by_blanks else normalize(raw))
    words = distinct.str.split(" ")
    flat = words.explode(empty_as_null=True) if len(words) else pl.Series([], dtype=pl.String)
    codes, vocabulary = encode(flat)
    lengths = words.list.len().to_numpy().astype(np.int64)

    # The empty query splits into one empty word, which is no term.
    is_empty = (distinct == "").to_numpy()
    lengths[is_empty] = 0
    empty_code = np.flatnonzero((vocabulary == "").to_numpy())
    if len(empty_code):
        codes = codes[codes != empty_code[0]]
        codes = codes - (codes > empty_code[0])
        vocabulary = vocabulary.filter(vocabulary != "")
    return Tokens(
        row_query=raw_query[row_raw] if len(raw) else row_raw,
        queries=distinct,
        query_ptr=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        terms=codes.astype(np.int32, copy=False),
        vocabulary=vocabulary,
    )
