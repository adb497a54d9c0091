"""Profiles of users, and groups of profiles (released by plink)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import polars as pl

from queryveil.data.frames import Framed, to_frame
from queryveil.data.log import Reading
from queryveil.errors import BadInput

PROFILES_SCHEMA: Mapping[str, pl.DataType] = {
    "user": pl.String(),
    "terms": pl.List(pl.String()),
    "weights": pl.List(pl.Float64()),
}
"""The columns of profiles and their types."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Profiles(Framed):
    """User profiles, one row per user; immutable.

    - `frame`: the columns `user`, `terms` and `weights`. Users are unique, terms are unique within a profile, weights
      are above 0. A profile may have no terms.
    - `reading`: counts of the rows that needed care when the profiles were read.

    Examples
    --------
    >>> Profiles.from_dicts({"u1": {"kitten": 1.0, "riding": 0.8}, "u2": {"pup": 0.6}})
    Profiles(n_users=2, n_entries=3)
    """

    caption: ClassVar[str] = "Profiles"
    shown: ClassVar[Mapping[str, str]] = {"users": "n_users", "terms in all": "n_entries"}

    reading: Reading = field(default_factory=Reading)

    def __post_init__(self) -> None:
        if self.frame.schema != pl.Schema(PROFILES_SCHEMA):
            raise BadInput(
                "profiles have the columns user (text), terms (lists of text) and weights (lists of numbers)"
            )
        if self.frame.null_count().sum_horizontal().sum():
            raise BadInput("a user, a list of terms or a list of weights is missing; an empty profile has empty lists")
        if self.frame["user"].is_duplicated().any() or (self.frame["user"] == "").any():
            raise BadInput("every user has one profile and an id that is not empty")
        _check_weighted(self.frame, what="profile")

    @classmethod
    def from_frame(cls, data: Any) -> Self:
        """Return the profiles in a Polars, pandas or Arrow frame with the columns user, terms and weights."""
        frame = to_frame(data, what="a set of profiles")
        missing = [name for name in PROFILES_SCHEMA if name not in frame.columns]
        if missing:
            raise BadInput(f"the frame has no column {missing[0]}; profiles have user, terms and weights")
        try:
            frame = frame.select(pl.col(name).cast(dtype) for name, dtype in PROFILES_SCHEMA.items())
        except pl.exceptions.PolarsError:
            # Privacy: the cause would quote the values, so it is dropped.
            raise BadInput("users must be text, terms lists of text, and weights lists of numbers") from None
        return cls(frame=frame)

    @classmethod
    def from_dicts(cls, profiles: Mapping[str, Mapping[str, float]]) -> Self:
        """Return the profiles in a dict of weights by term for each user."""
        columns = {
            "user": list(profiles),
            "terms": [list(weights) for weights in profiles.values()],
            "weights": [[float(weight) for weight in weights.values()] for weights in profiles.values()],
        }
        return cls(frame=pl.DataFrame(columns, schema=PROFILES_SCHEMA))

    @property
    def n_users(self) -> int:
        """The number of users."""
        return self.frame.height

    @property
    def n_entries(self) -> int:
        """The total number of terms of all profiles."""
        return int(self.frame["terms"].list.len().sum())


def _check_weighted(frame: pl.DataFrame, *, what: str) -> None:
    """Raise unless every list of terms has distinct texts and as many weights, finite and above 0."""
    terms, weights = frame["terms"], frame["weights"]
    if (terms.list.len() != weights.list.len()).any():
        raise BadInput(f"a {what} has another number of terms than of weights")
    if (terms.list.n_unique() != terms.list.len()).any():
        raise BadInput(f"a term stands twice in a {what}; add its weights up")
    all_terms, all_weights = terms.explode(empty_as_null=False), weights.explode(empty_as_null=False)
    if all_terms.null_count() or (all_terms == "").any():
        raise BadInput(f"a term of a {what} is missing or empty; leave it out")
    if all_weights.null_count() or not ((all_weights > 0) & all_weights.is_finite()).all():
        raise BadInput(f"a weight of a {what} is not a number above 0; leave such terms out")


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
        _check_weighted(frame, what="group")
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
