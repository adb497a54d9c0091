"""What queries are about: one of 16 categories, and the unit that says so."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from importlib import resources
from pathlib import Path

import numpy as np
import polars as pl

from queryveil.data import Float32s, Int8s
from queryveil.errors import BadParameter
from queryveil.text.classifier import units as tables
from queryveil.text.classifier._unit_kernels import NO_CATEGORY, Evidence, Trust, take_rarest, weigh_all
from queryveil.text.classifier.units import CATEGORIES, UNCLASSIFIED, UnitTable

# As typed, by its singular, recommended, nearby, split, unknown: the further from what was typed, the less it counts.
_BY_READING = np.array([1.0, 1.0, 0.9, 0.6, 0.8, 0.0], np.float32)
TRUST = Trust(_BY_READING, 0.75, 0.1, 0.3)
_SHAPE_SCALE = np.float32(32)


class Kind(StrEnum):
    """How a query's category is found: by all its units together, or as in the paper by the rarest one alone."""

    EVIDENCE = "evidence"
    PAPER = "paper"


@cache
def _default_table() -> UnitTable:
    return UnitTable.build(
        frequencies=tables.read_frequencies(),
        recommendations=tables.read_recommendations(),
        categories=tables.read_categories(),
    )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Classification:
    """The category of each query, as its place in `CATEGORIES` (-1: none), and the unit that decided (null: none)."""

    category: Int8s
    main_unit: pl.Series

    @property
    def names(self) -> pl.Series:
        """The categories by name; `Unclassified` for none."""
        return pl.Series("category", [*CATEGORIES, UNCLASSIFIED]).gather(
            np.where(self.category < 0, len(CATEGORIES), self.category)
        )

    def __repr__(self) -> str:
        # Privacy: units are words of queries, so they stay out of it.
        n_none = int((self.category == NO_CATEGORY).sum())
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
        """Take a search engine's own tables in place of those in the package; see `classifier.units`."""
        if frequencies is None and recommendations is None and categories is None:
            return cls(kind=kind)
        table = UnitTable.build(
            frequencies=tables.read_frequencies(frequencies),
            recommendations=tables.read_recommendations(recommendations),
            categories=tables.read_categories(categories),
        )
        return cls(kind=kind, table=table)

    def classify(self, queries: pl.Series) -> Classification:
        """Return the category and the main unit of each query.

        Differs: the paper takes the rarest unit alone; here all of a query's units are weighed, and units of several
        words are also found among corrected ones. `kind="paper"` is the paper's way.
        """
        units = self.table.find(queries, reads_corrected=self.kind == Kind.EVIDENCE)
        if self.kind == Kind.EVIDENCE:
            category, main = weigh_all(units, Evidence(self.table.weights, shapes(), TRUST))
        else:
            category, main = take_rarest(units, self.table.counts, self.table.category)
        return Classification(category=category, main_unit=self.table.texts(units, main))


@cache
def shapes() -> Float32s:
    """Read what runs of letters say about the words that are in no table."""
    with (resources.files("queryveil.text") / "data" / "shapes.npz").open("rb") as file, np.load(file) as table:
        odds: Float32s = table["shapes"].astype(np.float32) / _SHAPE_SCALE
    return odds
