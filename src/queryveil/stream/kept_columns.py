"""Columns that travel with a query: inside they have other names, as `category` and `arrival` mean something there."""

from __future__ import annotations

import polars as pl

_MARK = "kept "


def mark_kept(events: pl.DataFrame, *, keep: tuple[str, ...]) -> pl.DataFrame:
    """Give the columns to keep names that nothing else has."""
    return events.rename({name: _MARK + name for name in keep}) if keep else events


def unmark_kept(released: pl.DataFrame, *, keep: tuple[str, ...]) -> pl.DataFrame:
    """Give what may leave: user, query and the columns to keep, under the names they came with.

    >>> events = mark_kept(pl.DataFrame({"user": ["a"], "query": ["q"], "category": ["wines"]}), keep=("category",))
    >>> unmark_kept(events.with_columns(category=14), keep=("category",)).rows()
    [('a', 'q', 'wines')]
    """
    return released.select("user", "query", *(pl.col(_MARK + name).alias(name) for name in keep)) if keep else released
