"""Attack on plink by the known group of a person: attribute the term that most members have."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from queryveil.attacks.attacker import AuxiliaryData
from queryveil.attacks.exposure import Exposure
from queryveil.data import Groups, Int64s
from queryveil.pairing import Pair
from queryveil.release import Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedTerm:
    """Know the group of a person, and say of this person the term that most members of the group have.

    Found are the members of whom that is true: in a group as many as have the term. This is told by `holders`, or by
    the weights if these are shares: the centroid of binary profiles. Of a group without a term nothing is said. A blind
    guesser, who knows no group, says of everybody the released term that most people of the original used.

    >>> SharedTerm().name
    'shared_term'
    """

    @property
    def name(self) -> str:
        """What the attacker is called."""
        return "shared_term"

    def skip_reason(self, pair: Pair, *, auxiliary: AuxiliaryData) -> str | None:  # noqa: ARG002 - as every attacker
        """Return why it cannot attack this release."""
        data = pair.release.data
        if not isinstance(data, Groups):
            return "the release has no groups"
        if not data.n_groups:
            return "the release is empty"
        if data.frame["holders"].null_count() and not _has_shares(pair.release.manifest):
            return "the release does not tell how many members of a group have a term"
        return None

    def attack(self, pair: Pair, *, auxiliary: AuxiliaryData) -> Exposure:  # noqa: ARG002 - as every attacker
        """Count the members who have the term that their group has most."""
        groups = pair.release.groups
        # A term that no group tells of is not one to guess: stop words are in no profile.
        supports = pair.before.support()[pair.after.support() > 0]
        return Exposure.counted(
            attacker=self.name,
            knows="the group of a person",
            what="people",
            n_targets=groups.n_members,
            n_found=int(n_with_commonest(groups).sum()),
            n_by_chance=min(int(supports.max(initial=0)), groups.n_members),
        )


def n_with_commonest(groups: Groups) -> Int64s:
    """Count the members of each group who have its commonest term, by holders, or else by weights as shares.

    >>> from queryveil.data import GROUPS_SCHEMA
    >>> rows = [(1, 3, 4, ["kitten", "pup"], [1.0, 0.3], None), (2, 3, 2, ["pup"], [0.666667], None)]
    >>> n_with_commonest(Groups(frame=pl.DataFrame(rows, schema=GROUPS_SCHEMA, orient="row"))).tolist()
    [3, 2]
    """
    by_count = pl.col("holders").list.max().cast(pl.Float64)
    # The weights are rounded, the numbers that they come from are whole.
    by_share = (pl.col("weights").list.max().clip(0, 1) * pl.col("members")).round()
    found = groups.frame.select(pl.when(pl.col("holders").is_null()).then(by_share).otherwise(by_count)).to_series()
    return found.fill_null(0).to_numpy().astype(np.int64)


def _has_shares(manifest: Manifest) -> bool:
    """Return whether the weight of a term is the share of the members who have it."""
    return (manifest.parameters.get("representative"), manifest.parameters.get("weights")) == ("centroid", "binary")
