"""Groups of profiles as plink releases them, without their membership."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import polars as pl

from queryveil.data.frames import Framed
from queryveil.data.profiles import check_weighted
from queryveil.errors import BadInput
from queryveil.html_tables import facts

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

    frame: pl.DataFrame

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

    def __repr__(self) -> str:
        # Privacy: a frame's own repr would show terms.
        return f"Groups(n_groups={self.n_groups}, n_members={self.n_members})"

    def _repr_html_(self) -> str:
        # Privacy: counts only, as above.
        return facts([("groups", self.n_groups), ("members", self.n_members)], caption="Groups of profiles")
