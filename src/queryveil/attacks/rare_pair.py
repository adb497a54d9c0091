"""Attack by two or three terms that only one person has together: Arnold and Lilburn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from queryveil.attacks._naming_kernels import alone_with_few
from queryveil.attacks.attacker import Given, Seeker
from queryveil.attacks.exposure import Exposure
from queryveil.attacks.scoring import Postings, as_items, covering_of, draw_targets, found_by_chance, no_terms
from queryveil.data import Int64s, Transactions
from queryveil.data.rows import Rows
from queryveil.pairing import Paired
from queryveil.pairing.identity import distinct_bags
from queryveil.rng import generator
from queryveil.text.histories import Histories

MOST_TERMS = 60
"""Of a longer history only so many terms are tried, those that fewest of the release have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RarePair(Seeker):
    """Know the best two or three terms of a person's history that can be known, and seek who has them all.

    A person is found if some pair or triple of the terms that this person really asked for stands in the history of
    one candidate only, and that is the person. Of a history of more than 60 terms only the 60 rarest are tried.
    Targets are people of the original with at least two terms.

    >>> RarePair().name
    'rare_pair'
    """

    @property
    def name(self) -> str:
        """What the attacker is called."""
        return "rare_pair"

    def misses(self, paired: Paired, *, given: Given) -> str | None:  # noqa: ARG002 - as every attacker
        """Return why it cannot attack this release."""
        return no_terms(paired) or (None if len(_eligible(paired)) else "nobody in the log has two terms")

    def attack(self, paired: Paired, *, given: Given) -> Exposure:  # noqa: ARG002 - as every attacker
        """Look for a pair or triple that gives each target away."""
        targets = draw_targets(_eligible(paired), n_targets=self.n_targets, rng=generator(self.seed))
        alone = alone_with_own(paired, users=targets)
        row = alone.row_of_entry
        found = np.zeros(len(targets))
        np.maximum.at(found, row, paired.who.chance(alone.values, user=targets[row]))
        return Exposure.counted(
            attacker=self.name,
            knows="the two or three terms of a person that tell most",
            what="people",
            n_targets=len(targets),
            n_found=round(float(found.sum())),
            # Different pairs may lead to different candidates, and one is enough; a blind guesser has as many guesses.
            n_by_chance=found_by_chance(paired, users=targets, n_guesses=np.maximum(1, alone.lengths)),
        )


def alone_with_own(paired: Paired, *, users: Int64s) -> Rows[np.int64]:
    """Return for each user the candidates who alone have some pair or triple of the user's own terms."""
    if isinstance(paired.release.data, Transactions) and _all_have_twins(paired.after):
        return Rows(np.zeros(len(users) + 1, np.int64), np.empty(0, np.int64))
    postings = Postings.of(paired.after)
    ptr, alone = alone_with_few(*_rarest(paired, postings, users), *postings.by_thing, paired.n_candidates)
    return Rows(ptr, alone.astype(np.int64))


def _all_have_twins(after: Histories) -> bool:
    """Return whether each bag is there more than once, so that nobody is alone with anything."""
    number, _ = distinct_bags(after)
    return bool((np.bincount(number) > 1).all())


def _eligible(paired: Paired) -> Int64s:
    return np.flatnonzero(paired.before.user_terms.lengths >= 2)


def _rarest(paired: Paired, postings: Postings, users: Int64s) -> Rows[np.int64]:
    """Return the rarest of all that may stand for the terms of each user in the release."""
    items = as_items(paired.before.terms_of(users), covering=covering_of(paired))
    items = items.keep(postings.support[items.values] > 0)
    order = np.lexsort((postings.support[items.values], items.row_of_entry))
    return Rows(items.ptr, items.values[order]).keep(items.place_in_row < MOST_TERMS)
