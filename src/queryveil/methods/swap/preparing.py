"""Prepare events for the pools: remove identifiers, drop empty queries, assign categories."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from queryveil.data import Int64s
from queryveil.errors import BadParameter
from queryveil.methods.settings import SwapSettings
from queryveil.settings import settings_of
from queryveil.text.classifier import CATEGORIES, UNCLASSIFIED, Classifier, Kind
from queryveil.text.identifiers import remove_identifiers

CATEGORY_NAMES = (*CATEGORIES, UNCLASSIFIED)
"""The categories by the number that stands in the column `category`."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Prepared:
    """Events with cleaned queries and a column `category`, and what became of the others.

    `rows` are their rows in the input. `n_empty` had no query from the start, `n_emptied` held nothing but identifiers,
    `n_unclassified_dropped` had no category and were not wanted. `identifiers` counts what was removed by kind,
    `by_rule` by rule, and `category_counts` has how many of `frame` are in each category.
    """

    frame: pl.DataFrame
    rows: Int64s
    n_empty: int
    n_emptied: int
    n_unclassified_dropped: int
    identifiers: dict[str, int]
    by_rule: dict[str, int]
    category_counts: dict[str, int]

    def __repr__(self) -> str:
        # Privacy: the texts stay out of it.
        return f"Prepared(n_rows={self.frame.height}, n_empty={self.n_empty}, n_emptied={self.n_emptied})"


def check_unclassified(unclassified: str) -> None:
    """Raise if this cannot be done with queries that have no category."""
    settings_of(SwapSettings)["unclassified"].check(unclassified)


def check_classifier(chosen: object) -> None:
    """Raise if this is neither a classifier nor the name of a kind; no table is loaded."""
    if not isinstance(chosen, Classifier) and chosen not in (None, *Kind):
        raise BadParameter("classifier", chosen, allowed=f"{' or '.join(Kind)}, or a Classifier")


def classifier_of(chosen: Classifier | Kind | str | None) -> Classifier:
    """Return the classifier, or one of a kind with the tables of the package."""
    return chosen if isinstance(chosen, Classifier) else Classifier(kind=chosen or Kind.EVIDENCE)


def prepare(frame: pl.DataFrame, *, classifier: Classifier, unclassified: str = "pool") -> Prepared:
    """Remove identifiers from the queries of a frame, drop those that are empty then, and classify the others.

    A query without a category goes to a pool of its own, or is dropped with `unclassified="drop"`.

    >>> frame = pl.DataFrame({"user": ["a", "b", "c"], "query": ["champions league final", "219-09-9999", " "]})
    >>> prepared = prepare(frame, classifier=Classifier())
    >>> prepared.frame["query"].to_list(), prepared.category_counts, prepared.rows.tolist()
    (['champions league final'], {'Sports': 1}, [0])
    >>> prepared
    Prepared(n_rows=1, n_empty=1, n_emptied=1)
    """
    check_unclassified(unclassified)
    queries = frame["query"].cast(pl.String).fill_null("")
    rows = np.flatnonzero(_has_text(queries))
    n_empty = frame.height - len(rows)
    cleaned = remove_identifiers(queries.gather(rows) if n_empty else queries)
    texts, rows = _without(cleaned.queries, rows, _has_text(cleaned.queries))
    n_emptied = frame.height - n_empty - len(rows)
    found = classifier.classify(texts).category
    stays = (found >= 0) | (unclassified != "drop")
    texts, rows = _without(texts, rows, stays)
    found = found[stays]
    category = np.where(found < 0, len(CATEGORIES), found).astype(np.int8)
    kept = frame if len(rows) == frame.height else frame[pl.Series(rows)]
    counts = np.bincount(category, minlength=len(CATEGORY_NAMES)).tolist()
    return Prepared(
        frame=kept.with_columns(query=texts, category=pl.Series(category, dtype=pl.Int8)),
        rows=rows,
        n_empty=n_empty,
        n_emptied=n_emptied,
        n_unclassified_dropped=int((~stays).sum()),
        identifiers=cleaned.counts,
        by_rule=cleaned.by_rule,
        category_counts={name: n for name, n in zip(CATEGORY_NAMES, counts, strict=True) if n},
    )


def _has_text(queries: pl.Series) -> np.ndarray:
    return (queries.str.strip_chars() != "").to_numpy()


def _without(texts: pl.Series, rows: Int64s, stays: np.ndarray) -> tuple[pl.Series, Int64s]:
    return (texts, rows) if stays.all() else (texts.filter(pl.Series(stays)), rows[stays])


def increments(released: pl.DataFrame) -> pl.DataFrame:
    """Count released rows by user and category (by its name), to be added to the profiles.

    >>> released = pl.DataFrame({"user": ["a", "a"], "category": [14, 14]}, schema_overrides={"category": pl.Int8})
    >>> increments(released).rows()
    [('a', 'Sports', 2)]
    """
    counts = released.group_by("user", "category", maintain_order=True).agg(n=pl.len().cast(pl.Int64))
    names = pl.Series(CATEGORY_NAMES, dtype=pl.String)
    return counts.with_columns(category=names.gather(counts["category"].cast(pl.UInt32)))


def shares(counts: Mapping[str, int]) -> dict[str, float]:
    """Return the percentages of a profile, the largest first, equal ones by name.

    >>> shares({"Health": 10, "Arts": 30, "News": 0})
    {'Arts': 75.0, 'Health': 25.0, 'News': 0.0}
    """
    total = sum(counts.values())
    in_order = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    return {category: 100 * n / total if total else 0.0 for category, n in in_order}
