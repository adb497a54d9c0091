"""Attack by two or three terms that only one person has together: Arnold and Lilburn."""

from dataclasses import dataclass

import numpy as np

from queryveil.attacks._naming_kernels import alone_with_few
from queryveil.attacks.attacker import AuxiliaryData, Seeker
from queryveil.attacks.exposure import Exposure
from queryveil.attacks.scoring import Postings, as_items, draw_targets, found_by_chance, no_terms
from queryveil.data import Int64s, Transactions
from queryveil.data.rows import Rows
from queryveil.pairing import Pair, distinct_bags
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

    def skip_reason(self, pair: Pair, *, auxiliary: AuxiliaryData) -> str | None:  # noqa: ARG002 - as every attacker
        """Return why it cannot attack this release."""
        return no_terms(pair) or (None if len(_eligible(pair)) else "nobody in the log has two terms")

    def attack(self, pair: Pair, *, auxiliary: AuxiliaryData) -> Exposure:  # noqa: ARG002 - as every attacker
        """Look for a pair or triple that gives each target away."""
        targets = draw_targets(_eligible(pair), n_targets=self.n_targets, rng=generator(self.seed))
        alone = alone_with_own(pair, users=targets)
        row = alone.row_of_entry
        found = np.zeros(len(targets))
        np.maximum.at(found, row, pair.identity.chance(alone.values, user=targets[row]))
        return Exposure.counted(
            attacker=self.name,
            knows="the two or three terms of a person that tell most",
            what="people",
            n_targets=len(targets),
            n_found=round(float(found.sum())),
            # Different pairs may lead to different candidates, and one is enough; a blind guesser has as many guesses.
            n_by_chance=found_by_chance(pair, users=targets, n_guesses=np.maximum(1, alone.lengths)),
        )


def alone_with_own(pair: Pair, *, users: Int64s) -> Rows[np.int64]:
    """Return for each user the candidates who alone have some pair or triple of the user's own terms."""
    if isinstance(pair.release.data, Transactions) and _all_have_twins(pair.after):
        return Rows(np.zeros(len(users) + 1, np.int64), np.empty(0, np.int64))
    postings = Postings.of(pair.after)
    ptr, alone = alone_with_few(*_rarest(pair, postings, users), *postings.by_thing, pair.n_candidates)
    return Rows(ptr, alone.astype(np.int64))


def _all_have_twins(after: Histories) -> bool:
    """Return whether each bag is there more than once, so that nobody is alone with anything."""
    number, _ = distinct_bags(after)
    return bool((np.bincount(number) > 1).all())


def _eligible(pair: Pair) -> Int64s:
    return np.flatnonzero(pair.before.user_terms.lengths >= 2)


def _rarest(pair: Pair, postings: Postings, users: Int64s) -> Rows[np.int64]:
    """Return the rarest of all that may stand for the terms of each user in the release."""
    items = as_items(pair.before.terms_of(users), generalisations=pair.generalisations)
    items = items.keep(postings.support[items.values] > 0)
    order = np.lexsort((postings.support[items.values], items.row_of_entry))
    return Rows(items.ptr, items.values[order]).keep(items.place_in_row < MOST_TERMS)
