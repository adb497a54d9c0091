"""Semantic units: nouns, adjectives, and known units of several words, the longest first.

The table of recommendations comes first; this is for the misspellings that nobody has listed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa

from queryveil.data import Bools, Bytes, Float32s, Int8s, Int32s, Int64s, UInt64s
from queryveil.text.classifier._unit_kernels import Units, match_units
from queryveil.text.classifier._word_kernels import (
    NEVER_A_UNIT,
    Nearby,
    Vocabulary,
    find_hashes,
    find_words,
    hash_units,
    index_deletions,
    n_slots,
    place_hashes,
    resolve,
)
from queryveil.text.classifier.tables import CATEGORIES
from queryveil.text.tokens import ENGLISH, normalize


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
    """Return the bytes of texts in lower case (of ASCII), and where each begins."""
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


SHORTEST = 4
N_WORDS = 30_000
"""So many of the most frequent units are what a word can be corrected to: rare ones attract names."""


def nearby_words(entries: pl.Series, *, vocabulary: Vocabulary) -> Nearby:
    """Index the most frequent units of one word by all their forms with a letter left out."""
    is_plain = entries.str.contains(rf"^[a-z]{{{SHORTEST},}}$").to_numpy()
    fit = np.flatnonzero(is_plain & (vocabulary.unit >= 0) & (vocabulary.counts > 0))
    by_count = np.argsort(-vocabulary.counts[fit], kind="stable")[:N_WORDS]
    chosen: Int32s = fit[by_count].astype(np.int32)
    words = byte_words(entries.gather(chosen))
    n_forms = int((words.ends - words.starts + 1).sum())
    keys, values = index_deletions(words.data, words.starts, words.ends, n_slots(n_forms))
    return Nearby(keys, values, words.data, words.starts, words.ends, chosen)


MIN_SPLIT_COUNT = 1_000_000
"""Only common words are run together by people; below this, made-up words fall apart into syllables."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class UnitTable:
    """All that is known about words.

    Unit u is called `names[u]`, it says `weights[u]` about the categories, most about `category[u]` (-1: nothing), and
    is met `counts[u]` times.
    """

    names: pl.Series
    weights: Float32s
    category: Int8s
    counts: Int64s
    vocabulary: Vocabulary
    nearby: Nearby

    @classmethod
    def build(cls, *, frequencies: pl.DataFrame, recommendations: pl.DataFrame, categories: pl.DataFrame) -> UnitTable:
        """Make the table of the three tables that `unit_tables` reads.

        Differs: a unit is what stands in the table of categories, not what a tagger calls a noun or an adjective. The
        package's own table holds nouns, adjectives and known units of several words.
        """
        names = categories["unit"].unique(maintain_order=True)
        names = names.filter(~names.is_in(list(ENGLISH)))
        entries = _entries(names, frequencies=frequencies, recommendations=recommendations)
        vocabulary = _vocabulary(entries, names=names, frequencies=frequencies, recommendations=recommendations)
        counts = np.zeros(len(names), np.int64)
        has_unit = vocabulary.unit >= 0
        counts[vocabulary.unit[has_unit]] = vocabulary.counts[has_unit]
        weights = _weights(names, categories=categories)
        return cls(
            names=names,
            weights=weights,
            category=np.where(weights.max(axis=1, initial=0) > 0, weights.argmax(axis=1), -1).astype(np.int8),
            counts=counts,
            vocabulary=vocabulary,
            nearby=nearby_words(entries, vocabulary=vocabulary),
        )

    def find(self, queries: pl.Series, *, reads_corrected: bool = True) -> Units:
        """Return the units of queries; see `match_units`."""
        words = byte_words(queries)
        entry, singular, second, how = resolve(
            words.data, words.starts, words.ends, words.hashes, self.vocabulary, self.nearby, MIN_SPLIT_COUNT
        )
        ptr, unit, first, length, read = match_units(
            words.ptr, words.hashes, entry, singular, second, how, self.vocabulary, reads_corrected
        )
        return Units(ptr, unit, first, length, read, words.data, words.starts, words.ends)

    def texts(self, units: Units, chosen: Int64s) -> pl.Series:
        """Return the chosen units as texts, null for -1: as the table has them, or an unknown word itself."""
        is_chosen = chosen >= 0
        at = np.where(is_chosen, chosen, 0)
        unit = units.unit[at] if len(units.unit) else np.full(len(at), -1, np.int32)
        is_known = is_chosen & (unit >= 0)
        known = self.names.gather(pl.Series(np.where(is_known, unit, 0))) if len(self.names) else pl.Series([""])
        texts = pl.select(text=pl.when(pl.Series(is_known)).then(known))["text"]
        unknown = np.flatnonzero(is_chosen & ~is_known)
        if not len(unknown):
            return texts.rename("main_unit")
        word = units.first[at[unknown]]
        data, starts, ends = units.data, units.starts[word], units.ends[word]
        own = [bytes(data[a:b]).decode(errors="replace") for a, b in zip(starts, ends, strict=True)]
        return texts.scatter(unknown, own).rename("main_unit")

    def __repr__(self) -> str:
        return f"UnitTable(n_units={len(self.names)})"


def _entries(names: pl.Series, *, frequencies: pl.DataFrame, recommendations: pl.DataFrame) -> pl.Series:
    """Return all units, every word that stands in a table, and the stop words; the units first."""
    texts = [names, frequencies["unit"], recommendations["correct"], recommendations["misspelt"]]
    several = (names, recommendations["misspelt"], recommendations["correct"])
    words = pl.concat([text.str.split(" ").explode(empty_as_null=True) for text in several])
    return pl.concat([*texts, words, pl.Series(sorted(ENGLISH))]).drop_nulls().unique(maintain_order=True)


def _vocabulary(
    entries: pl.Series, *, names: pl.Series, frequencies: pl.DataFrame, recommendations: pl.DataFrame
) -> Vocabulary:
    words = byte_words(entries)
    hashes = hash_units(words.ptr, words.hashes)
    keys, values = place_hashes(hashes, n_slots(len(hashes)))

    def at(texts: pl.Series) -> Int32s:
        each = byte_words(texts)
        return find_hashes(keys, values, hash_units(each.ptr, each.hashes))

    unit, meant = np.full(len(entries), -1, np.int32), np.full(len(entries), -1, np.int32)
    unit[at(pl.Series(sorted(ENGLISH)))] = NEVER_A_UNIT
    unit[at(names)] = np.arange(len(names), dtype=np.int32)
    meant[at(recommendations["misspelt"])] = at(recommendations["correct"])
    counts = np.zeros(len(entries), np.int64)
    counts[at(frequencies["unit"])] = frequencies["count"].to_numpy()
    n_words = np.diff(words.ptr)
    longest = np.zeros(len(entries), np.int32)
    several = np.flatnonzero((n_words > 1) & ((unit >= 0) | (meant >= 0)))
    np.maximum.at(longest, find_hashes(keys, values, words.hashes[words.ptr[several]]), n_words[several])
    return Vocabulary(keys, values, hashes, unit, longest, meant, counts)


def _weights(names: pl.Series, *, categories: pl.DataFrame) -> Float32s:
    places = pl.DataFrame({"unit": names}).with_row_index("place")
    rows = categories.join(places, on="unit", how="inner")
    weights = np.zeros((len(names), len(CATEGORIES)), np.float32)
    weights[rows["place"].to_numpy(), rows["category"].to_numpy()] = rows["weight"].to_numpy()
    return weights
