"""Attack on plink by the known group of a person: attribute the term that most members have."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from queryveil.attacks import _scoring
from queryveil.attacks.attacker import AuxiliaryData, Exposure, Surest
from queryveil.data import Groups, Int64s
from queryveil.pairing import Pair


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedTerm:
    """Know the group of a person, and attribute to this person the term that most members of the group have.

    Found are the members who do have it. Their number is in `holders`, or follows from the weights if these are shares:
    the centroid of binary profiles. A group without a term gives no guess. A blind guesser, who knows no group,
    attributes to everybody the released term that most people of the original used.
    """

    name = "shared_term"

    def skip_reason(self, pair: Pair, *, auxiliary: AuxiliaryData) -> str | None:  # noqa: ARG002 - as every attacker
        if reason := _scoring.no_groups(pair):
            return reason
        has_holders = not pair.release.groups.frame["holders"].null_count()
        if not has_holders and not _scoring.weights_are_shares(pair.release):
            return "the release does not tell how many members of a group have a term"
        return None

    def attack(self, pair: Pair, *, auxiliary: AuxiliaryData) -> Exposure:  # noqa: ARG002 - as every attacker
        """Count the members who have the term that their group has most."""
        groups = pair.release.groups
        n_found, members = n_with_commonest(groups), groups.frame["members"].to_numpy()
        shares = np.repeat(n_found / np.maximum(1, members), members)
        # A term that no group tells of is not one to guess: stop words are in no profile.
        supports = pair.before.support()[pair.after.support() > 0]
        return Exposure(
            attacker=self.name,
            knows="the group of a person",
            what="people",
            n_targets=groups.n_members,
            n_found=int(n_found.sum()),
            n_by_chance=min(int(supports.max(initial=0)), groups.n_members),
            # The release says how many of a group have the term.
            surest=Surest.of(shares, confidence=shares),
        )


def n_with_commonest(groups: Groups) -> Int64s:
    """Count the members of each group who have its commonest term, by holders, or else by weights as shares."""
    by_count = pl.col("holders").list.max().cast(pl.Float64)
    # The weights are rounded, the numbers that they come from are whole.
    by_share = (pl.col("weights").list.max().clip(0, 1) * pl.col("members")).round()
    found = groups.frame.select(pl.when(pl.col("holders").is_null()).then(by_share).otherwise(by_count)).to_series()
    return found.fill_null(0).to_numpy().astype(np.int64)
