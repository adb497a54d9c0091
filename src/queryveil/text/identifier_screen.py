"""Which of the rules for identifiers a query needs; most need none."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from queryveil.kernels.arrays import UInt64s
from queryveil.kernels.identifier_screen import (
    CONTACTS,
    EVERYTHING,
    NAMES,
    NUMBERS,
    PLACES,
    fill,
    hash_words,
    screen_rows,
)
from queryveil.text.identifier_table import identifier_table

__all__ = ["CONTACTS", "EVERYTHING", "NAMES", "NUMBERS", "PLACES", "screen"]

_TOKEN_BITS, _SITE_BITS = 19, 14


def screen(queries: pl.Series) -> NDArray[np.uint8]:
    """Give for every query the groups of rules that may find something in it.

    >>> screen(pl.Series(["red shoes", "myspace.com", "call 212-555-0143"])).tolist() == [0, 0, NUMBERS]
    True
    """
    array: Any = queries.to_arrow()
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    array = array.cast(pa.large_string())
    if not len(array):
        return np.zeros(0, dtype=np.uint8)
    _, offsets, data = array.buffers()
    bounds = np.frombuffer(offsets, dtype=np.int64)[array.offset : array.offset + len(array) + 1]
    letters = np.frombuffer(data, dtype=np.uint8) if data is not None else np.zeros(0, dtype=np.uint8)
    return screen_rows(letters, bounds, *_slots())


@cache
def _slots() -> tuple[UInt64s, UInt64s]:
    table = identifier_table()
    return (
        _fill(table.tokens, np.array(list(table.tokens.values()), dtype=np.uint16), n_bits=_TOKEN_BITS),
        _fill(table.sites, np.ones(len(table.sites), dtype=np.uint16), n_bits=_SITE_BITS),
    )


def _fill(words: Iterable[str], tokens: NDArray[np.uint16], *, n_bits: int) -> UInt64s:
    letters = np.frombuffer("\n".join(words).encode("ascii"), dtype=np.uint8)
    return fill(hash_words(letters, len(tokens)), tokens, n_bits)
