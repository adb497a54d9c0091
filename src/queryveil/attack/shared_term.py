"""Somebody who knows that a person is in a group: what all members have, this person has."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from queryveil.attack.exposure import Exposure
from queryveil.attack.ports import Given
from queryveil.groups import Groups
from queryveil.kernels.arrays import Bools
from queryveil.paired import Paired
from queryveil.release import Manifest

_ROUNDING = 1e-9
"""The weight of a term that all members have is 1, whatever digits it is rounded to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedTerm:
    """Know the group of a person, and take from it a term that every member has.

    A member of a group with such a term is found: no doubt is left that this person used it. How many members have a
    term is told by `holders`, or by the weights if these are shares: the centroid of binary profiles. A blind guesser
    says of everybody the released term that most people of the original used.

    >>> SharedTerm().name
    'shared_term'
    """

    @property
    def name(self) -> str:
        """What the attacker is called."""
        return "shared_term"

    def misses(self, paired: Paired, *, given: Given) -> str | None:  # noqa: ARG002 - as every attacker
        """Say why it cannot attack this release."""
        data = paired.release.data
        if not isinstance(data, Groups):
            return "the release has no groups"
        if not data.n_groups:
            return "the release is empty"
        if data.frame["holders"].null_count() and not _has_shares(paired.release.manifest):
            return "the release does not tell how many members of a group have a term"
        return None

    def attack(self, paired: Paired, *, given: Given) -> Exposure:  # noqa: ARG002 - as every attacker
        """Count the members of groups that have a term in common."""
        groups = paired.release.groups
        is_open = has_shared_term(groups)
        members = groups.frame["members"].to_numpy()
        # A term that no group tells of is not one to guess: stop words are in no profile.
        supports = paired.before.support()[paired.after.support() > 0]
        share = int(supports.max(initial=0)) / max(1, paired.n_users)
        return Exposure.counted(
            attacker=self.name,
            knows="the group of a person",
            what="people",
            n_targets=groups.n_members,
            n_found=int(members[is_open].sum()),
            n_by_chance=share * groups.n_members,
        )


def has_shared_term(groups: Groups) -> Bools:
    """Tell which groups have a term that every member has, by their holders, or else by their weights as shares.

    >>> from queryveil.groups import SCHEMA
    >>> rows = [(1, 3, 4, ["kitten", "pup"], [1.0, 0.3], None), (2, 3, 2, ["pup"], [0.666667], None)]
    >>> has_shared_term(Groups(frame=pl.DataFrame(rows, schema=SCHEMA, orient="row"))).tolist()
    [True, False]
    """
    by_count = pl.col("holders").list.max() == pl.col("members")
    by_share = pl.col("weights").list.max() >= 1 - _ROUNDING
    found = groups.frame.select(pl.when(pl.col("holders").is_null()).then(by_share).otherwise(by_count)).to_series()
    return np.asarray(found.fill_null(False).to_numpy(), np.bool_)


def _has_shares(manifest: Manifest) -> bool:
    """Tell whether the weight of a term is the share of the members who have it."""
    return (manifest.parameters.get("representative"), manifest.parameters.get("weights")) == ("centroid", "binary")
