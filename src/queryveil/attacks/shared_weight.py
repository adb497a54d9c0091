"""Attack on plink by equal weights: terms of a group that have the same weight are taken for one person's."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from queryveil.attacks import _scoring
from queryveil.attacks.attacker import AuxiliaryData, Exposure, Seeker
from queryveil.pairing import Pair
from queryveil.rng import generator


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedWeight(Seeker):
    """Know the group of a person and one of its terms that the person has, and name another of the same weight.

    Where profiles were scaled to one length, the terms that one person brings into a group have the same weight.
    Targets are people whose group has another term of that weight; of several one is drawn. Found are those who have
    it. By chance is what is found by naming the term that most members have, or any other where that is not told.

    - `n_targets`, `seed`: as for every attacker that draws targets.
    """

    name = "shared_weight"

    def skip_reason(self, pair: Pair, *, auxiliary: AuxiliaryData) -> str | None:
        return _scoring.no_groups(pair) or _scoring.no_membership(auxiliary)

    def attack(self, pair: Pair, *, auxiliary: AuxiliaryData) -> Exposure:
        """Name a term of each target, by its weight and by how many have it, and count those that are right."""
        assert auxiliary.membership is not None
        rng = generator(self.seed)
        listed = _listed(pair)
        texts = {"user": pair.users.gather(pair.before.entry_user), "term": pair.vocabulary.gather(pair.before.terms)}
        own = pl.DataFrame(texts).join(auxiliary.membership.select("user", "group"), on="user")
        own = own.join(listed, on=["group", "term"])
        known = _one_of_each(own, rng).rename({"term": "known", "weight": "known_weight"}).drop("holders")
        others = known.join(listed, on="group").filter(pl.col("term") != pl.col("known"))
        others = others.join(own.select("user", "term", is_own=pl.lit(value=True)), on=["user", "term"], how="left")
        named = _one_of_each(others.filter(pl.col("weight") == pl.col("known_weight")), rng)
        named = named[: self.n_targets]
        rest = others.join(named.select("user"), on="user", how="semi")
        blind = _one_of_each(rest, rng, most="holders")
        return Exposure(
            attacker=self.name,
            knows="the group and one term of a person",
            what="terms",
            n_targets=named.height,
            n_found=named["is_own"].count(),
            n_by_chance=blind["is_own"].count(),
        )


def _listed(pair: Pair) -> pl.DataFrame:
    """Return the columns group, term, weight and holders, which are 0 where they are not told."""
    frame = pair.release.groups.frame.filter(pl.col("terms").list.len() > 0)
    told = pl.col("holders").fill_null(pl.lit(0).repeat_by(pl.col("terms").list.len()))
    lists = frame.select("group", told, term=pl.col("terms"), weight="weights")
    return lists.explode("holders", "term", "weight").with_columns(pl.col("term").str.replace_all(r"\s", "_"))


def _one_of_each(frame: pl.DataFrame, rng: np.random.Generator, *, most: str | None = None) -> pl.DataFrame:
    """Return one row of each user, in random order: of those with the most of something, or of all, one is drawn."""
    drawn = frame.sort("user", "term").with_columns(draw=rng.random(frame.height))
    by = ["draw"] if most is None else [most, "draw"]
    return drawn.sort(by, descending=True).unique("user", keep="first", maintain_order=True).drop("draw")
