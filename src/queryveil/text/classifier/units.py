"""Semantic units: nouns, adjectives, and known units of several words, the longest first.

The table of recommendations comes first; this is for the misspellings that nobody has listed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from queryveil.data import Bools, Bytes, Float32s, Int8s, Int32s, Int64s
from queryveil.text.classifier import _word_kernels
from queryveil.text.classifier._unit_kernels import Units, match_units
from queryveil.text.classifier._word_kernels import ByteWords, Nearby, Vocabulary, find_hashes, n_slots
from queryveil.text.classifier.tables import CATEGORIES
from queryveil.text.tokens import ENGLISH, normalize, text_bytes


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
    data, ptr = text_bytes(texts)
    return _word_kernels.find_words(_LOWER[data[ptr[0] : ptr[-1]]], ptr - ptr[0], _IS_LETTER)


_CODES = np.arange(256)
_IS_DIGIT, _IS_SMALL = (ord("0") <= _CODES) & (ord("9") >= _CODES), (ord("a") <= _CODES) & (ord("z") >= _CODES)
_IS_LETTER: Bools = _IS_DIGIT | _IS_SMALL | (_CODES >= 128)
_LOWER: Bytes = np.where((ord("A") <= _CODES) & (ord("Z") >= _CODES), _CODES + 32, _CODES).astype(np.uint8)

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
    return Nearby(*_word_kernels.index_deletions(words, n_slots(n_forms)), words, chosen)


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
        reading = _word_kernels.resolve(words, self.vocabulary, self.nearby, MIN_SPLIT_COUNT)
        return match_units(words, reading, self.vocabulary, reads_corrected)

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
        data, starts, ends = units.words.data, units.words.starts[word], units.words.ends[word]
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
    hashes = _word_kernels.hash_units(words)
    keys, values = _word_kernels.place_hashes(hashes, n_slots(len(hashes)))

    def at(texts: pl.Series) -> Int32s:
        return find_hashes(keys, values, _word_kernels.hash_units(byte_words(texts)))

    unit, meant = np.full(len(entries), -1, np.int32), np.full(len(entries), -1, np.int32)
    unit[at(pl.Series(sorted(ENGLISH)))] = _word_kernels.NEVER_A_UNIT
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
