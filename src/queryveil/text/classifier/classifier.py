"""What queries are about: one of 16 categories, and the semantic unit that says so.

Units are nouns, adjectives, and known units of several words, the longest first. They come from tables, files (Parquet
or CSV) of these columns; the package ships a default of each.

frequencies        unit, count: how often units are met
recommendations    misspelt, correct: what misspelt words were meant to be
categories         unit, category, and if there is one, weight (1 for all if not): what units are about
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl
from polars.exceptions import PolarsError

from queryveil.data import Float32s, Int8s, Int32s, Int64s
from queryveil.data.frames import read_parquet
from queryveil.errors import BadFile, BadParameter
from queryveil.text._hash_tables import ByteWords, find_hashes, find_words, place_hashes
from queryveil.text.classifier import _unit_kernels, _word_kernels
from queryveil.text.classifier._unit_kernels import Units
from queryveil.text.classifier._word_kernels import Nearby, Vocabulary
from queryveil.text.tokens import ENGLISH, IS_WORD_BYTE, LOWER_BYTES, join_terms, text_bytes

CATEGORIES: Final = (
    "Arts", "Business", "Computers", "Games", "Health", "Home", "Kids and Teens", "News", "Recreation", "Reference",
    "Regional", "Science", "Shopping", "Society", "Sports", "World",
)  # fmt: skip
UNCLASSIFIED: Final = "Unclassified"  # what a query without a category is called where a name is needed


def read_frequencies(path: str | Path | None = None) -> pl.DataFrame:
    """Read how often units are met; a unit that stands there twice counts both times."""
    frame = _read(path, "frequencies.parquet", unit=pl.String, count=pl.Int64)
    if (frame["count"] < 0).any():
        raise BadFile(_name(path), "a count is below 0; counts are numbers of references")
    return frame.group_by("unit", maintain_order=True).agg(pl.col("count").sum())


def read_recommendations(path: str | Path | None = None) -> pl.DataFrame:
    """Read what misspelt words were meant to be; of two corrections the first counts."""
    frame = _read(path, "recommendations.csv", misspelt=pl.String, correct=pl.String)
    return frame.filter(pl.col("misspelt") != pl.col("correct")).unique("misspelt", keep="first", maintain_order=True)


def read_categories(path: str | Path | None = None) -> pl.DataFrame:
    """Read what units are about; categories are written as in `CATEGORIES`, in any case, `_` for a blank."""
    frame = _read(path, "categories.parquet", unit=pl.String, category=pl.String, weight=pl.Float32)
    names = pl.Series([name.lower() for name in CATEGORIES])
    written = frame["category"].str.to_lowercase().str.replace_all("_", " ").str.strip_chars(" ")
    if not written.is_in(names.to_list()).all():
        raise BadFile(_name(path), f"a category is none of the {len(CATEGORIES)}; they are {', '.join(CATEGORIES)}")
    if not (frame["weight"].is_finite() & (frame["weight"] > 0)).all():
        raise BadFile(_name(path), "a weight is not above 0; leave out what a unit is not about")
    number = written.replace_strict(names.to_list(), list(range(len(names))), return_dtype=pl.Int32)
    of_both = frame.with_columns(category=number).group_by("unit", "category", maintain_order=True)
    return of_both.agg(pl.col("weight").sum())


def _name(path: str | Path | None) -> str:
    return Path(path).name if path is not None else "the table in the package"


def _read(path: str | Path | None, default: str, **columns: type[pl.DataType]) -> pl.DataFrame:
    """Read the columns of a file in their types, texts as terms in lower case; rows without a text are left out."""
    if path is None:
        with resources.as_file(resources.files("queryveil.text") / "data" / default) as file:
            return _load(file, columns)
    frame = _load(Path(path), columns)
    texts = [name for name, kind in columns.items() if kind == pl.String and name != "category"]
    frame = frame.with_columns(join_terms(frame[name]).alias(name) for name in texts)
    return frame.filter(pl.all_horizontal(pl.col(name) != "" for name in texts))


def _load(path: Path, columns: Mapping[str, type[pl.DataType]]) -> pl.DataFrame:
    try:
        is_parquet = path.suffix.lower() == ".parquet"
        frame = read_parquet(path) if is_parquet else pl.read_csv(path, infer_schema=False)
    except OSError as error:
        raise BadFile(path.name, f"cannot be opened ({error.strerror or 'not a file'}); check the path") from None
    except PolarsError:
        # Privacy: the cause would quote the row.
        reason = "cannot be read; a table is Parquet (.parquet) or CSV in UTF-8 with a header"
        raise BadFile(path.name, reason) from None
    if "weight" in columns and "weight" not in frame.columns:
        frame = frame.with_columns(weight=pl.lit(1.0))
    missing = [column for column in columns if column not in frame.columns]
    if missing:
        raise BadFile(path.name, f"there is no column {missing[0]}; this table has the columns {', '.join(columns)}")
    typed = frame.select(pl.col(column).cast(kind, strict=False) for column, kind in columns.items())
    for column in columns:
        if typed[column].null_count():
            raise BadFile(path.name, f"{typed[column].null_count()} rows have no readable {column}; fix or drop them")
    return typed


def byte_words(texts: pl.Series) -> ByteWords:
    """Take texts apart into words, as `tokenize` does; texts that are ASCII all through are never copied as texts.

    >>> words = byte_words(pl.Series(["Red WINE", ""]))
    >>> words.ptr.tolist(), words.starts.tolist(), words.ends.tolist()
    ([0, 2, 2], [0, 4], [3, 8])
    """
    texts = texts.cast(pl.String).fill_null("")
    is_plain = texts.str.len_bytes() == texts.str.len_chars()
    if not is_plain.all():
        texts = texts.scatter((~is_plain).arg_true(), join_terms(texts.filter(~is_plain)))
    data, ptr = text_bytes(texts)
    return find_words(LOWER_BYTES[data[ptr[0] : ptr[-1]]], ptr - ptr[0], IS_WORD_BYTE)


SHORTEST = 4
N_WORDS = 30_000  # so many of the most frequent units are what a word can be corrected to: rare ones attract names


def nearby_words(entries: pl.Series, *, vocabulary: Vocabulary) -> Nearby:
    """Index the most frequent units of one word by all their forms with a letter left out."""
    is_plain = entries.str.contains(rf"^[a-z]{{{SHORTEST},}}$").to_numpy()
    fit = np.flatnonzero(is_plain & (vocabulary.unit >= 0) & (vocabulary.counts > 0))
    by_count = np.argsort(-vocabulary.counts[fit], kind="stable")[:N_WORDS]
    chosen: Int32s = fit[by_count].astype(np.int32)
    words = byte_words(entries.gather(chosen))
    return Nearby(*_word_kernels.index_deletions(words), words, chosen)


MIN_SPLIT_COUNT = 1_000_000
"""Only common words are run together by people; below this, made-up words fall apart into syllables."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class UnitTable:
    """All that is known about words."""

    names: pl.Series
    weights: Float32s  # what each unit says about the categories
    category: Int8s  # what it says most about, -1 for nothing
    counts: Int64s  # how often it is met
    vocabulary: Vocabulary
    nearby: Nearby

    @classmethod
    def build(cls, *, frequencies: pl.DataFrame, recommendations: pl.DataFrame, categories: pl.DataFrame) -> UnitTable:
        """Make the table of the three tables, as they were read."""
        # Differs: a unit is what stands in the table of categories, not what a tagger calls a noun or an adjective. The
        # package's own table holds nouns, adjectives and known units of several words.
        names = categories["unit"].unique(maintain_order=True)
        names = names.filter(~names.is_in(list(ENGLISH)))
        texts = [names, frequencies["unit"], recommendations["correct"], recommendations["misspelt"]]
        several = (names, recommendations["misspelt"], recommendations["correct"])
        words = pl.concat([text.str.split(" ").explode(empty_as_null=True) for text in several])
        # All units, every word that stands in a table, and the stop words; the units first.
        entries = pl.concat([*texts, words, pl.Series(sorted(ENGLISH))]).drop_nulls().unique(maintain_order=True)
        vocabulary = _vocabulary(entries, names=names, frequencies=frequencies, recommendations=recommendations)
        counts = np.zeros(len(names), np.int64)
        has_unit = vocabulary.unit >= 0
        counts[vocabulary.unit[has_unit]] = vocabulary.counts[has_unit]
        rows = categories.join(pl.DataFrame({"unit": names}).with_row_index("place"), on="unit")
        weights = np.zeros((len(names), len(CATEGORIES)), np.float32)
        weights[rows["place"].to_numpy(), rows["category"].to_numpy()] = rows["weight"].to_numpy()
        own = np.where(weights.max(axis=1, initial=0) > 0, weights.argmax(axis=1), -1).astype(np.int8)
        nearby = nearby_words(entries, vocabulary=vocabulary)
        return cls(names=names, weights=weights, category=own, counts=counts, vocabulary=vocabulary, nearby=nearby)

    def find(self, queries: pl.Series, *, reads_corrected: bool = True) -> Units:
        """Return the units of queries; see `match_units`."""
        words = byte_words(queries)
        reading = _word_kernels.resolve(words, self.vocabulary, self.nearby, MIN_SPLIT_COUNT)
        return _unit_kernels.match_units(words, reading, self.vocabulary, reads_corrected)

    def texts(self, units: Units, chosen: Int64s) -> pl.Series:
        """Return the chosen units as texts, null for -1: as the table has them, or an unknown word itself."""
        unit = np.append(units.unit, np.int32(-1))[chosen]
        texts = self.names.gather(pl.Series(unit).replace(-1, None)).rename("main_unit")
        unknown = np.flatnonzero((chosen >= 0) & (unit < 0))
        if not len(unknown):
            return texts
        word = units.first[chosen[unknown]]
        data, starts, ends = units.data, units.starts[word], units.ends[word]
        own = [bytes(data[a:b]).decode(errors="replace") for a, b in zip(starts, ends, strict=True)]
        return texts.scatter(unknown, own)

    def __repr__(self) -> str:
        return f"UnitTable(n_units={len(self.names)})"


def _vocabulary(
    entries: pl.Series, *, names: pl.Series, frequencies: pl.DataFrame, recommendations: pl.DataFrame
) -> Vocabulary:
    words = byte_words(entries)
    hashes = _word_kernels.hash_units(words)
    keys, values = place_hashes(hashes, np.arange(len(hashes), dtype=np.int32))

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


_SHAPE_SCALE = np.float32(32)


class Kind(StrEnum):
    """How a query's category is found: by all its units together, or as in the paper by the rarest one alone."""

    EVIDENCE = "evidence"
    PAPER = "paper"


def _read_table(*paths: str | Path | None) -> UnitTable:
    """Read frequencies, recommendations and categories; None is the package's own."""
    frequencies, recommendations = read_frequencies(paths[0]), read_recommendations(paths[1])
    categories = read_categories(paths[2])
    return UnitTable.build(frequencies=frequencies, recommendations=recommendations, categories=categories)


@cache
def _default_table() -> UnitTable:
    return _read_table(None, None, None)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Classification:
    """The category of each query, as its place in `CATEGORIES` (-1: none), and the unit that decided (null: none)."""

    category: Int8s
    main_unit: pl.Series

    @property
    def names(self) -> pl.Series:
        """The categories by name; `Unclassified` for none."""
        place = np.where(self.category < 0, len(CATEGORIES), self.category)
        return pl.Series("category", [*CATEGORIES, UNCLASSIFIED]).gather(place)

    def __repr__(self) -> str:
        # Privacy: units are words of queries, so they stay out of it.
        n_none = int((self.category == _unit_kernels.NO_CATEGORY).sum())
        return f"Classification(n_queries={len(self.category)}, n_unclassified={n_none})"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Classifier:
    """Put queries into the 16 top categories of the Open Directory Project.

    >>> found = Classifier().classify(pl.Series(["european soccer barcelona players", "artic monkeys", "1999"]))
    >>> found.names.to_list()
    ['Sports', 'Arts', 'Unclassified']
    >>> found.main_unit.to_list()
    ['european soccer', 'arctic monkeys', None]
    """

    kind: Kind | str = Kind.EVIDENCE
    table: UnitTable = field(default_factory=_default_table)

    def __post_init__(self) -> None:
        if self.kind not in list(Kind):
            raise BadParameter("classifier", self.kind, allowed=" or ".join(Kind))

    @classmethod
    def from_tables(
        cls,
        *,
        frequencies: str | Path | None = None,
        recommendations: str | Path | None = None,
        categories: str | Path | None = None,
        kind: Kind | str = Kind.EVIDENCE,
    ) -> Classifier:
        """Take a search engine's own tables in place of those in the package."""
        paths = (frequencies, recommendations, categories)
        return cls(kind=kind) if paths == (None, None, None) else cls(kind=kind, table=_read_table(*paths))

    def classify(self, queries: pl.Series) -> Classification:
        """Return the category and the main unit of each query."""
        # Differs: the paper takes the rarest unit alone; here all of a query's units are weighed, and units of several
        # words are also found among corrected ones. `kind="paper"` is the paper's way.
        units = self.table.find(queries, reads_corrected=self.kind == Kind.EVIDENCE)
        if self.kind == Kind.EVIDENCE:
            category, main = _unit_kernels.weigh_all(units, self.table.weights, shapes())
        else:
            category, main = _unit_kernels.take_rarest(units, self.table.counts, self.table.category)
        return Classification(category=category, main_unit=self.table.texts(units, main))


@cache
def shapes() -> Float32s:
    """Read what runs of letters say about the words that are in no table."""
    with (resources.files("queryveil.text") / "data" / "shapes.npz").open("rb") as file, np.load(file) as table:
        return np.asarray(table["shapes"].astype(np.float32) / _SHAPE_SCALE, np.float32)
