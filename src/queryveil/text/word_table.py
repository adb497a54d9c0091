"""Sorted tables of distinct words: where a word stands in one, or where each of a whole column does."""

from __future__ import annotations

import unicodedata
from bisect import bisect_left

import numpy as np
import polars as pl

from queryveil.kernels.arrays import Int32s

_BLANKS = " \t\r\n"


def fold(word: str) -> str:
    """Write a word as tables have it: lower case, composed letters, no blanks around it.

    >>> fold("  Ice Cream ")
    'ice cream'
    """
    return unicodedata.normalize("NFC", word.lower()).strip(_BLANKS)


def fold_all(words: pl.Series) -> pl.Series:
    """Fold every word of a column."""
    return words.cast(pl.String).str.to_lowercase().str.normalize("NFC").str.strip_chars(_BLANKS)


def place(word: str, *, table: pl.Series) -> int:
    """Give the place of a word in a table, -1 where it has none.

    >>> place("b", table=pl.Series(["a", "b"])), place("c", table=pl.Series(["a", "b"]))
    (1, -1)
    """
    at = bisect_left(table, word)
    return at if at < len(table) and table[at] == word else -1


def places(words: pl.Series, *, table: pl.Series) -> Int32s:
    """Give the place of every word in a table, -1 where it has none; this table need not be sorted."""
    known = pl.DataFrame({"word": table}).with_row_index("place")
    asked = pl.DataFrame({"word": words.cast(pl.String)})
    found = asked.join(known, on="word", how="left", maintain_order="left")["place"]
    return found.cast(pl.Int64).fill_null(-1).to_numpy().astype(np.int32)
