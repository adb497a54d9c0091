"""Attack on plink by some terms of a person: the attacker of Zhu and Xiong, who wants a further one."""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import polars as pl

from queryveil.attacks import _scoring
from queryveil.attacks._learning import learned_choices
from queryveil.attacks.attacker import AuxiliaryData, Exposure, Reasons, Seeker
from queryveil.data import Floats, Int64s
from queryveil.data.rows import Rows
from queryveil.pairing import Pair
from queryveil.release import Release
from queryveil.rng import generator
from queryveil.text.taxonomy.tree import places
from queryveil.text.tokens import encode

_PRIOR = 10.0
"""As if so many more people had each term, and others as often as anybody has them: of rare terms little is known."""
_N_COMMON, _N_DIMENSIONS, _N_OTHERS = 500, 20, 40
_MOST_PEOPLE = 4000
"""The attacker learns from half of so many people, or of the targets if these are more."""


class Association:
    """How terms go together in a public log of people; `share` is the share with each term, above 0 and below 1."""

    def __init__(self, people: Rows[np.int64], *, n_terms: int) -> None:
        self._people, self._holders = people, people.transpose(n_terms)
        self._support = self._holders.lengths
        self.share: Floats = (self._support + 0.5) / (people.n_rows + 1)
        self._of_one = lru_cache(maxsize=1000)(self._of_term)

    def log_ratios(self, terms: Int64s, *, of: Int64s | None = None) -> Floats:
        """Return how many times as likely a term is of people who have each other one as of those who have not (log).

        A row for each of the `terms`, and a column for each term, or for those that are asked for. Of a term with
        itself, and about of one that nobody has, it is 0.
        """
        asked = slice(None) if of is None else of
        found = [self._of_one(term)[asked] for term in terms.tolist()]
        return np.array(found).reshape(len(terms), len(self._support) if of is None else len(of))

    def _of_term(self, term: int) -> Floats:
        people = self._people.take(self._holders.row(term))
        both = np.bincount(people.values, minlength=len(self._support)) + _PRIOR * self.share[term]
        without = people.n_rows + 2 * _PRIOR * self.share[term] - both
        ratios = both / (self._support + _PRIOR) / without * (self._people.n_rows - self._support + _PRIOR)
        ratios[term] = 1.0
        return np.asarray(np.log(ratios), np.float64)

    @cached_property
    def directions(self) -> Floats:
        """A vector of length 1 of each term, similar for terms that go with the same ones, by the most common terms."""
        common = np.argsort(-self._support, kind="stable")[:_N_COMMON]
        together = np.maximum(0, self.log_ratios(common)).T
        # The principal components of largest variance.
        vectors = together @ np.linalg.eigh(together.T @ together)[1][:, -_N_DIMENSIONS:]
        return np.asarray(vectors / (np.linalg.norm(vectors, axis=1, keepdims=True) + 1e-9), np.float64)

    def looks(self, known: Int64s, *, told: "GroupShares", group: int) -> tuple[Int64s, Floats]:
        """Return the terms that may be named, and what is seen of each: how it goes with known and with other terms.

        They are those that are `listed` in the group and the likeliest others. The first that is seen are the log odds
        of a person with the known terms, if these are independent of each other.
        """
        odds, listed = told.odds(group, population=self.share)
        chance = np.log(odds) + self.log_ratios(known).sum(axis=0)
        rest = np.setdiff1d(listed, known)
        is_other = np.ones(len(odds), np.bool_)
        is_other[listed] = is_other[known] = False
        terms = np.concatenate([rest, likeliest(chance, among=np.flatnonzero(is_other))])
        sizes = len(rest), len(listed) - len(rest), told.members[group]
        seen = [np.ones(len(terms)), np.log(odds[terms]), *(np.full(len(terms), size) for size in sizes)]
        for some in (known, rest):
            likeness = self.directions[some] @ self.directions[terms].T * (some[:, None] != terms)
            for each in (self.log_ratios(some, of=terms), likeness):
                seen += [each.sum(axis=0) / max(1, len(some)), each.max(0, initial=-9.0), each.min(0, initial=9.0)]
        n, table = len(rest), np.column_stack(seen)
        # What counts of a term that the group lists, and of another, is learned apart.
        apart = np.concatenate([np.kron([1, 0], table[:n]), np.kron([0, 1], table[n:])])
        return terms, np.column_stack([chance[terms], apart])


def likeliest(chance: Floats, *, among: Int64s) -> Int64s:
    """Return the likeliest terms, the first ones first, and of equals those of the lowest number.

    >>> likeliest(np.array([0.1, 0.3, 0.2, 0.3]), among=np.array([0, 1, 3])).tolist()
    [1, 3, 0]
    """
    falling = -chance[among]
    if len(among) > _N_OTHERS:
        # Few of many are sorted.
        some = np.flatnonzero(falling <= np.partition(falling, _N_OTHERS - 1)[_N_OTHERS - 1])
        among, falling = among[some], falling[some]
    return among[np.argsort(falling, kind="stable")[:_N_OTHERS]]


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
        self.members = np.append(release.groups.frame["members"].to_numpy(), 0)
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

    def odds(self, group: int, *, population: Floats) -> tuple[Floats, Int64s]:
        """Return the odds that any member of a group has each term, and the terms it lists; -1 is no group.

        A term that a group does not list is held by as many as all such groups lack to the share of the `population`.
        """
        if group < 0:
            return population / (1 - population), self._terms.values[:0]
        n_missing = np.maximum(0.0, population * self._n_members - self._n_held)
        shares = (n_missing + 0.5) / (np.maximum(n_missing, self._n_members - self._n_told) + 1)
        entries = slice(self._terms.ptr[group], self._terms.ptr[group + 1])
        listed = self._terms.values[entries]
        shares[listed] = self._shares[entries]
        return np.asarray(shares / (1 - shares), np.float64), listed


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownProfile(Seeker):
    """Know the group of a person, some of its terms that the person has and how terms go together, and name another.

    The odds that any member of the group has a term are multiplied by how much likelier people with this term have the
    known ones, in the public log. A term that goes with others of the group is likelier another member's. How much that
    counts is learned from half of the people, whose terms are known; the halves take turns. Named is the likeliest term
    of those that any group lists, found are people who have it. By chance is what the same attacker finds without the
    release, by how many of the public have a term; it learns from the same people.

    - `n_targets`, `seed`: as for every attacker that draws targets.
    - `n_known`: how many terms of a person are known.
    """

    name = "known_profile"
    what = "terms"

    n_known: int = 3

    @property
    def knows(self) -> str:
        return f"the group and {self.n_known} terms of a person, those of half of the others, and a log by other people"

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
        if len(eligible) < 2:
            return self.exposure(n_targets=0, n_found=0, n_by_chance=0)
        known = _scoring.draw_each(own, of=np.arange(own.n_rows), n=self.n_known, rng=rng)
        halves = np.array_split(rng.permutation(eligible)[: max(self.n_targets, _MOST_PEOPLE)], 2)
        n_of_half = [min(len(half), (self.n_targets + i) // 2) for half, i in zip(halves, (1, 0), strict=True)]

        def n_found(groups: Int64s) -> int:
            seen = [[association.looks(known.row(i), told=told, group=groups[i]) for i in half] for half in halves]
            views = [
                [(looks, np.isin(terms, own.row(i))) for i, (terms, looks) in zip(*each, strict=True)]
                for each in zip(halves, seen, strict=True)
            ]
            n_right = 0
            for taught, judged, n in zip(views[::-1], views, n_of_half, strict=True):
                chosen = learned_choices(taught, of=[looks for looks, _ in judged[:n]])
                n_right += sum(int(truth[best]) for (_, truth), best in zip(judged, chosen, strict=False))
            return n_right

        nowhere = np.full(len(group_of), -1)
        return self.exposure(n_targets=sum(n_of_half), n_found=n_found(group_of), n_by_chance=n_found(nowhere))
