"""Attack on plink by some terms of a person: the attacker of Zhu and Xiong, who wants a further one."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from queryveil.attacks import _scoring
from queryveil.attacks.attacker import AuxiliaryData, Exposure, Reasons, Seeker
from queryveil.data import Floats, Int64s
from queryveil.data.rows import Rows
from queryveil.pairing import Pair
from queryveil.release import Release
from queryveil.rng import generator
from queryveil.text.taxonomy.tree import places
from queryveil.text.tokens import encode

_PRIOR = 5.0
"""As if so many more people had each term, and others as often as anybody has them: of rare terms little is known."""


class Association:
    """How terms go together in a public log of people; `share` is the share with each term, above 0 and below 1."""

    def __init__(self, people: Rows[np.int64], *, n_terms: int) -> None:
        self._people, self._holders = people, people.transpose(n_terms)
        self._support = self._holders.lengths
        self.share: Floats = (self._support + 0.5) / (people.n_rows + 1)

    def ratios(self, known: Int64s) -> Floats:
        """Return how many times as likely all known terms are of people who have each term as of those who have not.

        Known terms count as independent of each other. Of a term that nobody has the ratio is about 1.
        """
        ratio = np.ones(len(self._support))
        for term in known.tolist():
            holders = self._holders.row(term)
            both = np.bincount(self._people.take(holders).values, minlength=len(ratio))
            anybody = _PRIOR * self.share[term]
            with_it = (both + anybody) / (self._support + _PRIOR)
            without = (len(holders) - both + anybody) / (self._people.n_rows - self._support + _PRIOR)
            ratio *= with_it / without
        return ratio


class GroupShares:
    """The share of a group's members who have a term; `vocabulary` has the terms that any group lists, by number."""

    def __init__(self, release: Release) -> None:
        share = pl.col("size") / (pl.col("members") * pl.col("n_terms"))
        if _scoring.tells_holders(release.groups):
            share = pl.col("holders") / pl.col("members")
        elif _scoring.weights_are_shares(release):
            share = pl.col("weight")
        # Where nothing tells, it is the mean of the group.
        listed = _scoring.group_terms(release.groups).with_columns(share=share)
        place, self.vocabulary = encode(listed["term"])
        members = listed["members"].to_numpy()
        # That all members have a term is near to certainty, and odds need a number.
        shares = np.clip(listed["share"].to_numpy(), 1e-6, 1 - 0.5 / members)
        n_groups, n_terms = release.groups.n_groups, len(self.vocabulary)
        self._terms = Rows.from_entries(listed["row"].to_numpy(), place.astype(np.int64), n_rows=n_groups)
        self._shares, self._n_members = shares, release.groups.n_members
        # Of each term, the members of groups that list it, and those of them who have it.
        self._n_told, self._n_held = (
            np.bincount(place, each, n_terms).astype(np.float64) for each in (members, shares * members)
        )

    def odds(self, group: int, *, population: Floats) -> Floats:
        """Return the odds that any member of a group has each term.

        A term that a group does not list is held by as many as all such groups lack to the share of the `population`.
        """
        n_missing = np.maximum(0.0, population * self._n_members - self._n_held)
        shares = (n_missing + 0.5) / (np.maximum(n_missing, self._n_members - self._n_told) + 1)
        entries = slice(self._terms.ptr[group], self._terms.ptr[group + 1])
        shares[self._terms.values[entries]] = self._shares[entries]
        return np.asarray(shares / (1 - shares), np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownProfile(Seeker):
    """Know the group of a person, some of its terms that the person has and how terms go together, and name another.

    The odds that any member of the group has a term are multiplied by how much likelier people with this term have the
    known ones, in the public log; named is the term with the highest, if any group lists it. Found are people who have
    it. By chance is what the same attacker finds without the release, by how many of the public have a term.

    - `n_targets`, `seed`: as for every attacker that draws targets.
    - `n_known`: how many terms of a person are known.
    """

    name = "known_profile"
    what = "terms"

    n_known: int = 3

    @property
    def knows(self) -> str:
        return f"the group and {self.n_known} terms of a person, and a log by other people"

    def reasons(self, pair: Pair, *, auxiliary: AuxiliaryData) -> Reasons:
        yield from _scoring.no_groups(pair)
        yield from _scoring.no_membership(auxiliary)
        if auxiliary.public is None:
            yield "needs a public log of the same kind: --public FILE"

    def attack(self, pair: Pair, *, auxiliary: AuxiliaryData) -> Exposure:
        # Paper: section 3.1, P(t in V | V_b, G). Differs: the paper takes the prior as 0 and the posterior as equal for
        # all members of a group; whoever has another log knows better.
        rng = generator(self.seed)
        told = GroupShares(pair.release)
        public, vocabulary = _scoring.public_histories(pair, auxiliary.public or pair.log)
        place = places(vocabulary, table=told.vocabulary).astype(np.int64)
        # In other numbers, without what has none.
        renumbered = (Rows(each.ptr, place[each.values]) for each in (public.user_terms, pair.before.user_terms))
        people, own = (each.keep(each.values >= 0) for each in renumbered)
        association = Association(people, n_terms=len(told.vocabulary))
        group_of = _scoring.group_of_users(pair, auxiliary)
        eligible = np.flatnonzero((own.lengths > self.n_known) & (group_of >= 0))
        targets = _scoring.draw_targets(eligible, n_targets=self.n_targets, rng=rng)
        known = _scoring.draw_each(own, of=targets, n=self.n_known, rng=rng)
        without = association.share / (1 - association.share)
        n_found = n_without = 0
        for i, target in enumerate(targets.tolist()):
            ratios = association.ratios(known.row(i))
            ratios[known.row(i)] = 0.0
            odds = told.odds(int(group_of[target]), population=association.share)
            n_found += int(np.argmax(odds * ratios)) in own.row(target)
            n_without += int(np.argmax(without * ratios)) in own.row(target)
        return self.exposure(n_targets=len(targets), n_found=n_found, n_by_chance=n_without)
