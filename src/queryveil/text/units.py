"""Semantic units: nouns, adjectives, and known units of several words, the longest first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from queryveil.kernels.arrays import Float32s, Int8s, Int32s, Int64s
from queryveil.kernels.evidence import Units
from queryveil.kernels.known_words import NEVER_A_UNIT, Nearby, Vocabulary, resolve
from queryveil.kernels.semantic_units import match_units
from queryveil.kernels.word_hash import find_hashes, hash_units, n_slots, place_hashes
from queryveil.text.byte_words import byte_words
from queryveil.text.categories import CATEGORIES
from queryveil.text.spelling import nearby_words
from queryveil.text.stop_words import ENGLISH

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
        """Give the units of queries; see `match_units`."""
        words = byte_words(queries)
        entry, singular, second, how = resolve(
            words.data, words.starts, words.ends, words.hashes, self.vocabulary, self.nearby, MIN_SPLIT_COUNT
        )
        ptr, unit, first, length, read = match_units(
            words.ptr, words.hashes, entry, singular, second, how, self.vocabulary, reads_corrected
        )
        return Units(ptr, unit, first, length, read, words.data, words.starts, words.ends)

    def texts(self, units: Units, chosen: Int64s) -> pl.Series:
        """Give the chosen units as texts, null for -1: as the table has them, or an unknown word itself."""
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
    """Give all units, every word that stands in a table, and the stop words; the units first."""
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
