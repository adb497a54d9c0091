"""Attack on plink by some terms of a person: the attacker of Zhu and Xiong, who wants a further one."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from queryveil.attacks import _scoring
from queryveil.attacks.attacker import AuxiliaryData, Exposure, Seeker
from queryveil.data import Floats, Int64s
from queryveil.data.rows import Rows
from queryveil.pairing import Pair
from queryveil.release import Release
from queryveil.rng import generator
from queryveil.text.taxonomy.tree import places

_PRIOR = 5.0
"""As if so many more people had each term, and others as often as anybody has them: of rare terms little is known."""


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Association:
    """How terms go together in a public log.

    - `people`: the terms of each person of it.
    - `n_terms`: the number of distinct terms.
    """

    people: Rows[np.int64]
    n_terms: int

    @cached_property
    def support(self) -> Int64s:
        """The number of people who have each term."""
        return np.bincount(self.people.values, minlength=self.n_terms)

    @cached_property
    def share(self) -> Floats:
        """The share of people who have each term, above 0 and below 1."""
        return np.asarray((self.support + 0.5) / (self.people.n_rows + 1), np.float64)

    @cached_property
    def _holders(self) -> Rows[np.int32]:
        return self.people.transpose(self.n_terms)

    def ratios(self, known: Int64s) -> Floats:
        """Return how many times as likely all known terms are of people who have each term as of those who have not.

        Known terms count as independent of each other. Of a term that nobody has the ratio is about 1.
        """
        ratio = np.ones(self.n_terms)
        for term in known.tolist():
            holders = self._holders.row(term)
            both = np.bincount(self.people.take(holders).values, minlength=self.n_terms)
            anybody = _PRIOR * self.share[term]
            with_it = (both + anybody) / (self.support + _PRIOR)
            without = (len(holders) - both + anybody) / (self.people.n_rows - self.support + _PRIOR)
            ratio *= with_it / without
        return ratio


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class GroupShares:
    """The share of a group's members who have a term.

    - `vocabulary`: the terms that any group lists, by number.
    - `terms`, `shares`: the terms that each group lists, and beside them the share of its members who have each.
    - `n_told`, `n_held`: for each term, the members of groups that list it, and those of them who have it.
    - `n_members`: the members of all groups.
    """

    vocabulary: pl.Series
    terms: Rows[np.int64]
    shares: Floats
    n_told: Floats
    n_held: Floats
    n_members: int

    @classmethod
    def of(cls, release: Release) -> "GroupShares":
        """Read the groups of a release."""
        frame = release.groups.frame.with_row_index("row")
        listed = _listed(frame, release).with_columns(pl.col("term").str.replace_all(r"\s", "_"))
        vocabulary = listed["term"].unique(maintain_order=True)
        place = pl.DataFrame({"term": vocabulary, "place": np.arange(len(vocabulary))})
        listed = listed.join(place, on="term", maintain_order="left")
        members = listed["members"].to_numpy()
        # That all members have a term is near to certainty, and odds need a number.
        shares = np.clip(listed["share"].to_numpy(), 1e-6, 1 - 0.5 / members)
        terms = Rows.from_entries(listed["row"].to_numpy(), listed["place"].to_numpy(), n_rows=frame.height)
        told, held = (
            np.bincount(terms.values, each, len(vocabulary)).astype(np.float64) for each in (members, shares * members)
        )
        n_members = release.groups.n_members
        return cls(vocabulary=vocabulary, terms=terms, shares=shares, n_told=told, n_held=held, n_members=n_members)

    def odds(self, group: int, *, population: Floats) -> Floats:
        """Return the odds that any member of a group has each term.

        Of terms that a group does not list it may be that too many have them: as many as are missing in all such groups
        to the share of the `population` who have the term.
        """
        n_missing = np.maximum(0.0, population * self.n_members - self.n_held)
        shares = (n_missing + 0.5) / (np.maximum(n_missing, self.n_members - self.n_told) + 1)
        entries = slice(self.terms.ptr[group], self.terms.ptr[group + 1])
        shares[self.terms.values[entries]] = self.shares[entries]
        return np.asarray(shares / (1 - shares), np.float64)


def _listed(frame: pl.DataFrame, release: Release) -> pl.DataFrame:
    """Return the columns row, members, term and share; where nothing tells how many have a term, the group's mean."""
    some, members = frame.filter(pl.col("terms").list.len() > 0), pl.col("members")
    if not frame["holders"].null_count():
        held = some.explode("terms", "holders")
        return held.select("row", "members", term="terms", share=pl.col("holders") / members)
    if _scoring.weights_are_shares(release):
        return some.explode("terms", "weights").select("row", "members", term="terms", share="weights")
    mean = pl.col("size") / (members * pl.col("terms").list.len())
    return some.select("row", "members", mean.alias("share"), term="terms").explode("term")


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownProfile(Seeker):
    """Know the group of a person, some of its terms that the person has and how terms go together, and name another.

    The odds that any member of the group has a term are multiplied by how much likelier people with this term have the
    known ones, in the public log; named is the term with the highest. Found are people who have it. By chance is what
    the same attacker finds without the release, by how many of the public have a term. Terms that no group lists are
    not named: stop words are in no profile.

    - `n_targets`, `seed`: as for every attacker that draws targets.
    - `n_known`: how many terms of a person are known.
    """

    name = "known_profile"

    n_known: int = 3

    def skip_reason(self, pair: Pair, *, auxiliary: AuxiliaryData) -> str | None:
        if reason := _scoring.no_groups(pair) or _scoring.no_membership(auxiliary):
            return reason
        return "needs a public log of the same kind: --public FILE" if auxiliary.public is None else None

    def attack(self, pair: Pair, *, auxiliary: AuxiliaryData) -> Exposure:
        """Name a term of each target with the release and without it, and count those that are right."""
        # Paper: section 3.1, P(t in V | V_b, G). Differs: the paper takes the prior as 0 and the posterior as equal for
        # all members of a group; whoever has another log knows better.
        rng = generator(self.seed)
        told = GroupShares.of(pair.release)
        public, vocabulary = _scoring.public_histories(pair, auxiliary.public or pair.log)
        place = places(vocabulary, table=told.vocabulary).astype(np.int64)
        people, own = (_renumbered(each, place) for each in (public.user_terms, pair.before.user_terms))
        association = Association(people=people, n_terms=len(told.vocabulary))
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
        return Exposure(
            attacker=self.name,
            knows=f"the group and {self.n_known} terms of a person, and a log by other people",
            what="terms",
            n_known=self.n_known,
            n_targets=len(targets),
            n_found=n_found,
            n_by_chance=n_without,
        )


def _renumbered(rows: Rows[np.int32], place: Int64s) -> Rows[np.int64]:
    """Return rows in other numbers, without what has none."""
    values = place[rows.values]
    return Rows(rows.ptr, values).keep(values >= 0)
