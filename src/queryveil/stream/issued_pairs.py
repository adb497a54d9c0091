"""The memory of who issued what: nobody is given a query of their own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from queryveil.kernels.arrays import Bytes, Int64s, UInt64s
from queryveil.kernels.issued import empty_filter, hash_texts, put
from queryveil.text.tokens import normalize

_NONE = np.zeros(0, np.uint64)
_ASCII_END = 128


class IssuedPairs:
    """Pairs of a user and a query text in two generations, of at least `remembered` pairs once the older is full.

    Nothing that is remembered is ever missed; a few in a thousand pairs are taken for remembered that are not, and then
    somebody else is drawn. With `remembered=None` nothing is forgotten.
    """

    def __init__(self, *, remembered: int | None, generation: int = 0) -> None:
        self.remembered = remembered
        self.generation = generation
        self.n_newest = 0
        self.room = (0, 0)
        self.older: UInt64s = _NONE
        self.newest: UInt64s = _NONE

    def put(self, pairs: UInt64s) -> None:
        """Remember pairs. All go into one generation, and a full one is followed by a new one."""
        # The older generation has `remembered` pairs or more, so those are there even while the newest is empty.
        if self.remembered is not None and self.n_newest >= self.remembered:
            self.generation += 1
            self.n_newest, self.room = 0, (self.room[1], 0)
            self.older, self.newest = self.newest, _NONE
        if not len(self.newest) and len(pairs):
            self.room = (self.room[0], max(self.remembered or 0, len(pairs)))
            self.newest = empty_filter(self.room[1])
        put(self.newest, pairs)
        self.n_newest += len(pairs)

    def restore(self, issued: Iterable[tuple[int, bytes]], *, n_newest: int, room: tuple[int, int]) -> None:
        """Remember again what was kept of this generation and the one before."""
        self.n_newest, self.room = n_newest, room
        self.older, self.newest = (empty_filter(n) if n else _NONE for n in room)
        for generation, data in issued:
            blocks = {self.generation: self.newest, self.generation - 1: self.older}.get(generation, _NONE)
            if len(blocks):
                put(blocks, np.frombuffer(data, "<u8").astype(np.uint64, copy=False))

    @property
    def n_bytes(self) -> int:
        """How much memory it takes."""
        return self.older.nbytes + self.newest.nbytes


def hash_users(users: pl.Series, *, key: UInt64s) -> UInt64s:
    """Give a keyed hash of each user."""
    return hash_texts(*_bytes_of(users), _AS_IT_IS, key)


def hash_queries(queries: pl.Series, *, key: UInt64s) -> UInt64s:
    """Give a keyed hash of each query that is the same however it is typed: of its words in lower case."""
    data, ptr = _bytes_of(queries)
    if data[ptr[0] : ptr[-1]].max(initial=0) >= _ASCII_END:
        is_other = queries.str.len_bytes() != queries.str.len_chars()
        composed = queries.filter(is_other).str.normalize("NFC")
        data, ptr = _bytes_of(queries.clone().scatter(is_other.arg_true(), normalize(composed)))
    return hash_texts(data, ptr, _WORDS, key)


def _bytes_of(texts: pl.Series) -> tuple[Bytes, Int64s]:
    array: Any = texts.to_arrow().cast(pa.large_string())
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    _, offsets, letters = array.buffers()
    ptr = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
    data = np.frombuffer(letters, np.uint8) if letters is not None else np.zeros(0, np.uint8)
    return data, ptr


def _words() -> Bytes:
    codes = np.arange(256)
    is_capital = (codes >= ord("A")) & (codes <= ord("Z"))
    is_small = (codes >= ord("a")) & (codes <= ord("z"))
    is_digit = (codes >= ord("0")) & (codes <= ord("9"))
    stays = is_small | is_digit | (codes >= _ASCII_END)
    return np.where(is_capital, codes + 32, np.where(stays, codes, 0)).astype(np.uint8)


_WORDS = _words()
_AS_IT_IS = np.arange(256).astype(np.uint8)
