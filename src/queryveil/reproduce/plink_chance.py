"""Groups by chance, as large as given ones: what grouping by similarity is to be compared with."""

from __future__ import annotations

import numpy as np
import polars as pl

from queryveil.groups import SCHEMA, Groups
from queryveil.profiles import Profiles


def by_chance(profiles: Profiles, *, membership: pl.DataFrame, rng: np.random.Generator) -> tuple[Groups, pl.DataFrame]:
    """Deal users out to groups of the same sizes at random; gives the groups' centroids and who is in which.

    >>> people = Profiles.from_dicts({"u1": {"pear": 1.0}, "u2": {"pear": 1.0, "plum": 1.0}})
    >>> together = pl.DataFrame({"user": ["u1", "u2"], "group": [1, 1]})
    >>> groups, _ = by_chance(people, membership=together, rng=np.random.default_rng(0))
    >>> groups.frame.select("terms", "weights").rows()
    [(['pear', 'plum'], [1.0, 0.5])]
    """
    dealt = membership.with_columns(user=membership["user"].gather(rng.permutation(membership.height)))
    entries = profiles.frame.join(dealt, on="user").explode("terms", "weights", empty_as_null=False)
    members = dealt.group_by("group").agg(members=pl.len().cast(pl.Int64))
    by_term = (
        entries.group_by("group", "terms")
        .agg(pl.col("weights").sum(), holders=pl.len().cast(pl.Int64))
        .join(members, on="group")
        .with_columns(weights=pl.col("weights") / pl.col("members"))
        .sort("group", "terms")
    )
    frame = by_term.group_by("group", maintain_order=True).agg(
        pl.col("members").first(), pl.col("holders").sum().alias("size"), "terms", "weights"
    )
    return Groups(frame=frame.with_columns(holders=pl.lit(None, SCHEMA["holders"])).select(list(SCHEMA))), dealt
