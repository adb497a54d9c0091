"""Columns of texts as bytes, words and hashes, the way the kernels for units take them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa

from queryveil.kernels.arrays import Bools, Bytes, Int64s, UInt64s
from queryveil.kernels.word_hash import find_words
from queryveil.text.tokens import normalize


class ByteWords(NamedTuple):
    """The words of texts: those of text t are `ptr[t]` to `ptr[t + 1]`, word w is `data[starts[w]:ends[w]]`."""

    data: Bytes
    ptr: Int64s
    starts: Int64s
    ends: Int64s
    hashes: UInt64s


def byte_words(texts: pl.Series) -> ByteWords:
    """Take texts apart into words, as `tokenize` does; texts that are ASCII all through are never copied as texts.

    >>> words = byte_words(pl.Series(["Red WINE", ""]))
    >>> words.ptr.tolist(), words.starts.tolist(), words.ends.tolist()
    ([0, 2, 2], [0, 4], [3, 8])
    """
    texts = texts.cast(pl.String).fill_null("")
    is_plain = texts.str.len_bytes() == texts.str.len_chars()
    if not is_plain.all():
        frame = pl.DataFrame({"text": texts, "is_plain": is_plain})
        normal = frame.filter(~pl.col("is_plain"))["text"]
        texts = frame["text"].scatter((~is_plain).arg_true(), normalize(normal))
    data, ptr = _bytes_of(texts)
    return ByteWords(data, *find_words(data, ptr, _IS_LETTER))


def _bytes_of(texts: pl.Series) -> tuple[Bytes, Int64s]:
    """Give the bytes of texts in lower case (of ASCII), and where each begins."""
    array: Any = texts.to_arrow().cast(pa.large_string())
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    _, offsets, letters = array.buffers()
    ptr = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1].copy()
    data = np.frombuffer(letters, np.uint8) if letters is not None else np.zeros(0, np.uint8)
    data = data[ptr[0] : ptr[-1]]
    return _LOWER[data], ptr - ptr[0]


def _letters() -> Bools:
    codes = np.arange(256)
    is_digit = (codes >= ord("0")) & (codes <= ord("9"))
    return is_digit | ((codes >= ord("a")) & (codes <= ord("z"))) | (codes >= 128)


def _lower() -> Bytes:
    codes = np.arange(256)
    return np.where((codes >= ord("A")) & (codes <= ord("Z")), codes + 32, codes).astype(np.uint8)


_IS_LETTER = _letters()
_LOWER = _lower()
