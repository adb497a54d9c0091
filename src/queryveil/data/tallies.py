"""Noisy counts of queries and of the URLs clicked for them, as dp releases them; no rows of users."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import polars as pl

from queryveil.data.frames import Framed
from queryveil.data.log import Layout
from queryveil.errors import BadInput
from queryveil.html_tables import facts

TALLIES_SCHEMA: Mapping[str, pl.DataType] = {"query": pl.String(), "count": pl.Int64()}
"""The columns of counted queries and their types."""
CLICKS_SCHEMA: Mapping[str, pl.DataType] = {"query": pl.String(), "url": pl.String(), "count": pl.Int64()}
"""The columns of counted clicks and their types."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Tallies(Framed):
    """Noisy counts of the users per query; immutable.

    - `frame`: the columns `query` (unique) and `count`.
    - `clicks`: the columns `query`, `url` and `count`, where counts of clicks are released.
    - `layout`: the layout of the log that was counted.

    >>> Tallies(frame=pl.DataFrame({"query": ["jaguar", "red wine"], "count": [40, 31]}))
    Tallies(n_queries=2, n_clicks=0)
    """

    kind: ClassVar[str] = "queries"
    noun: ClassVar[str] = "queries with counts"

    frame: pl.DataFrame
    clicks: pl.DataFrame | None = None
    layout: Layout = field(default_factory=Layout)

    def __post_init__(self) -> None:
        _check(self.frame, TALLIES_SCHEMA, keys=["query"], what="queries")
        if self.clicks is not None:
            _check(self.clicks, CLICKS_SCHEMA, keys=["query", "url"], what="clicks")

    @property
    def n_queries(self) -> int:
        """The number of queries."""
        return self.frame.height

    @property
    def n_clicks(self) -> int:
        """The number of pairs of a query and a URL."""
        return 0 if self.clicks is None else self.clicks.height

    def __repr__(self) -> str:
        # Privacy: a frame's own repr would show queries.
        return f"Tallies(n_queries={self.n_queries}, n_clicks={self.n_clicks})"

    def _repr_html_(self) -> str:
        return facts([("queries", self.n_queries), ("queries with URLs", self.n_clicks)], caption="Tallies")


def _check(frame: pl.DataFrame, schema: Mapping[str, pl.DataType], *, keys: list[str], what: str) -> None:
    if frame.schema != pl.Schema(schema):
        raise BadInput(f"tallied {what} have the columns {', '.join(schema)}")
    if frame.null_count().sum_horizontal().sum():
        raise BadInput(f"tallied {what} have values that are missing")
    if frame.select(keys).is_duplicated().any():
        raise BadInput(f"tallied {what} name one of them twice")
