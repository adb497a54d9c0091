"""Somebody with a phone book: people look for their own name and town, Jones et al. 2008."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from queryveil.attack.directory import Entry, entries_of_people, entries_of_tables
from queryveil.attack.exposure import Exposure
from queryveil.attack.ports import Given
from queryveil.attack.postings import Postings
from queryveil.attack.scoring import covering_of, found_by_chance, no_terms
from queryveil.attack.seeking import Seeker
from queryveil.paired import Paired
from queryveil.rng import generator


@dataclass(frozen=True, slots=True, kw_only=True)
class Vanity(Seeker):
    """Know a directory of names and towns, and seek who has both in the same history.

    A candidate is named if no other has all the words of a name and of its town; where nobody has and items moved up in
    a taxonomy, if no other has an item above each word that is gone. The directory is what is given as
    `people`. Without it the names and American towns of one word that come with the package stand in for a phone book:
    sought are people of the original whose own queries hold one of each, by their three rarest pairs.

    >>> Vanity().name
    'vanity'
    """

    @property
    def name(self) -> str:
        """What the attacker is called."""
        return "vanity"

    def misses(self, paired: Paired, *, given: Given) -> str | None:
        """Say why it cannot attack this release."""
        if reason := no_terms(paired):
            return reason
        if self._directory(paired, given):
            return None
        if given.people:
            return "none of the people given is one user of the log"
        return "nobody in the log has a name and a town among their terms; give a directory: --people FILE"

    def attack(self, paired: Paired, *, given: Given) -> Exposure:
        """Look everybody up, and count those who are found."""
        directory = self._directory(paired, given)
        source = "a directory of people" if given.people else "a phone book"
        users = np.unique(np.array([entry.user for entry in directory], np.int64))
        return Exposure.counted(
            attacker=self.name,
            knows=f"{source}: names and towns",
            what="people",
            n_targets=len(users),
            n_found=round(_found(directory, paired)),
            n_by_chance=found_by_chance(paired, users=users),
        )

    def _directory(self, paired: Paired, given: Given) -> Sequence[Entry]:
        rng = generator(self.seed)
        if given.people:
            return entries_of_people(paired, people=given.people, n_targets=self.n_targets, rng=rng)
        return entries_of_tables(paired, n_targets=self.n_targets, rng=rng)


def _found(directory: Sequence[Entry], paired: Paired) -> float:
    """Add up the chances that the candidates who are alone with an entry are the people sought."""
    postings, covering = Postings.of(paired.after), covering_of(paired)
    named = np.full(len(directory), -1, np.int64)
    for i, entry in enumerate(directory):
        holders = postings.of_all(entry.terms) if len(entry.terms) else entry.terms
        if not len(holders) and covering is not None and len(entry.terms):
            holders = postings.of_all_in_any([covering[1][covering[0][t] : covering[0][t + 1]] for t in entry.terms])
        if len(holders) == 1:
            named[i] = holders[0]
    users = np.array([entry.user for entry in directory], np.int64)
    chances = pl.DataFrame({"user": users, "chance": paired.who.chance(named, user=users)})
    # A person with several entries is found by the best of them.
    return float(chances.group_by("user").agg(pl.col("chance").max())["chance"].sum())
