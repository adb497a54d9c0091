"""Attacks on plink by the known group of a person: the term that most members have, and terms of equal weight."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from queryveil.attacks import _scoring
from queryveil.attacks.attacker import Attacker, AuxiliaryData, Exposure, Reasons, Seeker, Surest
from queryveil.data import Groups, Int64s
from queryveil.pairing import Pair
from queryveil.rng import generator


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedTerm(Attacker):
    """Know the group of a person, and attribute to this person the term that most members of the group have.

    Found are the members who do have it, by `holders`, or by the weights if these are shares: the centroid of binary
    profiles. A group without a term gives no guess. A blind guesser, who knows no group, attributes to everybody the
    released term that most people of the original used.
    """

    name = "shared_term"
    knows = "the group of a person"

    def reasons(self, pair: Pair, *, auxiliary: AuxiliaryData) -> Reasons:  # noqa: ARG002 - as every attacker
        yield from _scoring.no_groups(pair)
        if not _scoring.tells_holders(pair.release.groups) and not _scoring.weights_are_shares(pair.release):
            yield "the release does not tell how many members of a group have a term"

    def attack(self, pair: Pair, *, auxiliary: AuxiliaryData) -> Exposure:  # noqa: ARG002 - as every attacker
        groups = pair.release.groups
        n_found, members = n_with_commonest(groups), groups.frame["members"].to_numpy()
        shares = np.repeat(n_found / np.maximum(1, members), members)
        # A term that no group tells of is not one to guess: stop words are in no profile.
        supports = pair.before.support()[pair.after.support() > 0]
        return self.exposure(
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


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedWeight(Seeker):
    """Know the group of a person and one of its terms that the person has, and name another of the same weight.

    Where profiles were scaled to one length, the terms that one person brings into a group weigh the same. Targets are
    people whose group has another term of that weight, found are those who have it; of several one is drawn. By chance
    is what is found by naming the term that most members have, or any other where that is not told.

    - `n_targets`, `seed`: as for every attacker that draws targets.
    """

    name = "shared_weight"
    knows = "the group and one term of a person"
    what = "terms"

    def reasons(self, pair: Pair, *, auxiliary: AuxiliaryData) -> Reasons:
        yield from _scoring.no_groups(pair)
        yield from _scoring.no_membership(auxiliary)

    def attack(self, pair: Pair, *, auxiliary: AuxiliaryData) -> Exposure:
        assert auxiliary.membership is not None
        rng = generator(self.seed)
        terms = _scoring.group_terms(pair.release.groups)
        listed = terms.select("group", "term", "weight", pl.col("holders").fill_null(0))
        texts = {"user": pair.users.gather(pair.before.entry_user), "term": pair.vocabulary.gather(pair.before.terms)}
        groups = auxiliary.membership.select("user", "group")
        own = pl.DataFrame(texts).join(groups, on="user").join(listed, on=["group", "term"])
        known = _one_of_each(own, rng).rename({"term": "known", "weight": "known_weight"}).drop("holders")
        others = known.join(listed, on="group").filter(pl.col("term") != pl.col("known"))
        others = others.join(own.select("user", "term", is_own=pl.lit(value=True)), on=["user", "term"], how="left")
        named = _one_of_each(others.filter(pl.col("weight") == pl.col("known_weight")), rng)[: self.n_targets]
        rest = others.join(named.select("user"), on="user", how="semi")
        blind = _one_of_each(rest, rng, most="holders")
        n_found, n_by_chance = named["is_own"].count(), blind["is_own"].count()
        return self.exposure(n_targets=named.height, n_found=n_found, n_by_chance=n_by_chance)


def _one_of_each(frame: pl.DataFrame, rng: np.random.Generator, *, most: str | None = None) -> pl.DataFrame:
    """Return one row of each user, in random order: of those with the most of something, or of all, one is drawn."""
    drawn = frame.sort("user", "term").with_columns(draw=rng.random(frame.height))
    by = ["draw"] if most is None else [most, "draw"]
    return drawn.sort(by, descending=True).unique("user", keep="first", maintain_order=True).drop("draw")
