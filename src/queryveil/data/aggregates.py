"""What is released instead of rows of users: groups of profiles (plink), and noisy counts of queries (dp)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import polars as pl

from queryveil.data.frames import Framed
from queryveil.data.log import Layout
from queryveil.data.profiles import check_weighted
from queryveil.errors import BadInput

GROUPS_SCHEMA: Mapping[str, pl.DataType] = {
    "group": pl.Int64(),
    "members": pl.Int64(),
    "size": pl.Int64(),
    "terms": pl.List(pl.String()),
    "weights": pl.List(pl.Float64()),
    "holders": pl.List(pl.Int64()),
}
"""The columns of groups and their types."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Groups(Framed):
    """Released groups of profiles, one row per group; immutable.

    - `frame`: the columns `group` (number), `members` (how many), `size` (the terms in the profiles of all members, a
      term counted once for each member that has it; |G| in the paper), `terms` and `weights` (the profile of the group)
      and `holders` (how many members have each term; null where that is not released).

    Examples
    --------
    >>> Groups(frame=pl.DataFrame([(1, 3, 4, ["kitten", "pup"], [0.6, 0.3], None)], schema=GROUPS_SCHEMA, orient="row"))
    Groups(n_groups=1, n_members=3)
    """

    kind: ClassVar[str] = "groups"
    noun: ClassVar[str] = "groups"
    caption: ClassVar[str] = "Groups of profiles"
    shown: ClassVar[Mapping[str, str]] = {"groups": "n_groups", "members": "n_members"}

    def __post_init__(self) -> None:
        frame = self.frame
        if frame.schema != pl.Schema(GROUPS_SCHEMA):
            raise BadInput(f"groups have the columns {', '.join(GROUPS_SCHEMA)}")
        if frame.drop("holders").null_count().sum_horizontal().sum() or frame["group"].is_duplicated().any():
            raise BadInput("a group has no number, the number of another, or lacks members, size, terms or weights")
        if ((frame["members"] < 1) | (frame["size"] < 0)).any():
            raise BadInput("a group has at least one member, and its size is a count")
        check_weighted(frame, what="group")
        known = frame.filter(pl.col("holders").is_not_null())
        if (known["holders"].list.len() != known["terms"].list.len()).any():
            raise BadInput("a group has another number of terms than of holders")
        if known["holders"].explode(empty_as_null=False).null_count():
            raise BadInput("a group says of some of its terms how many members have them, and not of others")

    @property
    def n_groups(self) -> int:
        """The number of groups."""
        return self.frame.height

    @property
    def n_members(self) -> int:
        """The number of people in all groups."""
        return int(self.frame["members"].sum())


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
    caption: ClassVar[str] = "Tallies"
    shown: ClassVar[Mapping[str, str]] = {"queries": "n_queries", "queries with URLs": "n_clicks"}

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


def _check(frame: pl.DataFrame, schema: Mapping[str, pl.DataType], *, keys: list[str], what: str) -> None:
    if frame.schema != pl.Schema(schema):
        raise BadInput(f"tallied {what} have the columns {', '.join(schema)}")
    if frame.null_count().sum_horizontal().sum():
        raise BadInput(f"tallied {what} have values that are missing")
    if frame.select(keys).is_duplicated().any():
        raise BadInput(f"tallied {what} name one of them twice")
