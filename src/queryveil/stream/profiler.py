"""The profiler: how many released queries each user has in each category, and their shares."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from queryveil.stream.preparing import CATEGORY_NAMES


def increments(released: pl.DataFrame) -> pl.DataFrame:
    """Count released rows by user and category (by its name), to be added to the profiles.

    >>> released = pl.DataFrame({"user": ["a", "a"], "category": [14, 14]}, schema_overrides={"category": pl.Int8})
    >>> increments(released).rows()
    [('a', 'Sports', 2)]
    """
    counts = released.group_by("user", "category", maintain_order=True).agg(pl.len().cast(pl.Int64).alias("n"))
    names = pl.Series(CATEGORY_NAMES, dtype=pl.String)
    return counts.with_columns(category=names.gather(counts["category"].cast(pl.UInt32))).select(
        "user", "category", "n"
    )


def shares(counts: Mapping[str, int]) -> dict[str, float]:
    """Give the percentages of a profile, the largest first, equal ones by name.

    >>> shares({"Health": 10, "Arts": 30, "News": 0})
    {'Arts': 75.0, 'Health': 25.0, 'News': 0.0}
    """
    total = sum(counts.values())
    in_order = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    return {category: 100 * n / total if total else 0.0 for category, n in in_order}
