"""How far the profiles that a stream made are from those of the log that went in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec
import polars as pl

from queryveil.log import QueryLog
from queryveil.stream.preparing import prepare
from queryveil.stream.profile_database import SCHEMA
from queryveil.stream.stores.profile_blocks import NAMES
from queryveil.text.classifier import Classifier

_AFTER: Final = "_after"


class ProfileComparison(msgspec.Struct, frozen=True, kw_only=True):
    """Profiles before and after, beside each other.

    `distance` is the mean over users of both of how much of a profile's shares moved (total variation, 0 the same and
    1 nothing in common). Users with fewer rows have some in the pools still, or lost them.
    """

    n_users_before: int
    n_users_after: int
    n_users_both: int
    n_rows_before: int
    n_rows_after: int
    n_equal: int
    n_with_fewer_rows: int
    n_with_more_rows: int
    distance: float | None


def profiles_of_log(
    log: QueryLog, *, classifier: Classifier, pseudonyms: Callable[[pl.Series], pl.Series], unclassified: str = "pool"
) -> pl.DataFrame:
    """Give the profiles that a log's own users have, under the names that they got on release."""
    frame = prepare(log.frame.select("user", "query"), classifier=classifier, unclassified=unclassified).frame
    columns = ((pl.col("category") == i).sum().cast(pl.Int64).alias(name) for i, name in enumerate(NAMES))
    counted = frame.group_by("user").agg(columns).with_columns(total=pl.sum_horizontal(NAMES))
    return counted.with_columns(pseudonyms(counted["user"]).alias("user")).select(SCHEMA.names()).sort("user")


def compare_profiles(before: pl.DataFrame, *, after: pl.DataFrame) -> ProfileComparison:
    """Compare two tables of profiles by user.

    >>> before = pl.DataFrame({"user": ["ann"], **dict.fromkeys(NAMES, 1), "total": 17})
    >>> compare_profiles(before, after=before).distance
    0.0
    """
    both = before.join(after, on="user", suffix=_AFTER)
    moved = pl.sum_horizontal(
        (pl.col(name) / pl.col("total") - pl.col(name + _AFTER) / pl.col("total" + _AFTER)).abs() for name in NAMES
    )
    equal = pl.all_horizontal(pl.col(name) == pl.col(name + _AFTER) for name in NAMES)
    facts = both.select(
        (moved / 2).mean().alias("distance"),
        equal.sum().alias("n_equal"),
        (pl.col("total" + _AFTER) < pl.col("total")).sum().alias("n_with_fewer_rows"),
        (pl.col("total" + _AFTER) > pl.col("total")).sum().alias("n_with_more_rows"),
    ).row(0, named=True)
    return ProfileComparison(
        n_users_before=len(before),
        n_users_after=len(after),
        n_users_both=len(both),
        n_rows_before=int(before["total"].sum()),
        n_rows_after=int(after["total"].sum()),
        **facts,
    )
