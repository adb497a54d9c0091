"""Attacks by known search terms of a person: a few random ones, or the two or three that tell most."""

from dataclasses import dataclass

import numpy as np

from queryveil.attacks import _likelihood, _scoring
from queryveil.attacks.attacker import AuxiliaryData, Exposure, Reasons, Seeker
from queryveil.data import Int64s, Transactions
from queryveil.data.rows import Rows
from queryveil.kernels import njit
from queryveil.pairing import Pair, distinct_bags
from queryveil.rng import generator
from queryveil.settings import setting
from queryveil.text.histories import Histories

ECCENTRICITY = 1.5
"""Standard deviations between best and second."""
_MOST_DRAWS = 100


def _with_terms(pair: Pair, *, at_least: int) -> Int64s:
    """Return the users of the original with so many terms."""
    return np.flatnonzero(np.diff(pair.before.user_terms.ptr) >= at_least)


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownTerms(Seeker):
    """Know random terms of a person's history, and seek who has most of them (Narayanan and Shmatikov's scoring).

    Every candidate scores 1/log of a term's support for each term it has; the best is named if it stands 1.5 standard
    deviations of all scores above the second. Targets are people of the original with enough terms, in the release or
    not. Where items moved up in a taxonomy, a term is sought as all that may stand for it.

    - `n_targets`, `seed`: as for every attacker that draws targets.
    - `n_known`: how many terms of the person are known.
    - `n_wrong`: how many terms come on top that the person never used, common ones drawn more often.
    - `cautious`: whether nobody is named if the best does not stand out. If not, the likeliest to have these terms and
      not many others is always named: where many share every few terms, that is still right quite often.

    >>> KnownTerms(n_known=4).name, KnownTerms(cautious=False).name
    ('known_terms', 'likely_terms')
    """

    n_known: int = setting(4, at_least=1, help="How many terms are known.")
    n_wrong: int = setting(0, at_least=0, help="How many wrong terms come on top.")
    cautious: bool = True

    @property
    def name(self) -> str:
        return "known_terms" if self.cautious else "likely_terms"

    @property
    def knows(self) -> str:
        wrong = f" and {self.n_wrong} that are not" if self.n_wrong else ""
        return f"{self.n_known} random terms of a person's history{wrong}"

    def reasons(self, pair: Pair, *, auxiliary: AuxiliaryData) -> Reasons:  # noqa: ARG002 - as every attacker
        yield from _scoring.no_terms(pair)
        if not len(_with_terms(pair, at_least=self.n_known)):
            yield f"nobody in the log has {self.n_known} terms"

    def attack(self, pair: Pair, *, auxiliary: AuxiliaryData) -> Exposure:  # noqa: ARG002 - as every attacker
        rng = generator(self.seed)
        eligible = _with_terms(pair, at_least=self.n_known)
        targets = _scoring.draw_targets(eligible, n_targets=self.n_targets, rng=rng)
        known, holders, n = self._known(pair.before, targets, rng), pair.holders, pair.n_candidates
        if self.cautious:
            known = _scoring.as_items(known, generalisations=pair.generalisations)
            guesses = _scoring.guess_candidates(known, holders=holders, n_candidates=n, eccentricity=ECCENTRICITY)
        else:
            once, items = np.ones(len(holders.values), np.int64), pair.generalisations
            guesses = _likelihood.guess_likeliest_candidates(
                known, holders=holders, n_candidates=n, counts=once, rng=rng, generalisations=items
            )
        right = pair.identity.chance(guesses.candidate, user=targets)
        n_by_chance = _scoring.found_by_chance(pair, users=targets, among=eligible)
        return self.people_found(right, confidence=guesses.confidence, n_by_chance=n_by_chance)

    def _known(self, before: Histories, targets: Int64s, rng: np.random.Generator) -> Rows[np.int64]:
        """Draw what is known of each target, true terms first."""
        drawn = _scoring.draw_each(before.user_terms, of=targets, n=self.n_known, rng=rng)
        if not self.n_wrong:
            return Rows(drawn.ptr, drawn.values.astype(np.int64))
        wrong = _wrong_terms(before, targets, n=self.n_wrong, rng=rng)
        known = np.column_stack([drawn.values.reshape(len(targets), self.n_known), wrong]).astype(np.int64)
        ptr = np.arange(len(targets) + 1, dtype=np.int64) * known.shape[1]
        # Where everybody has everything, fewer wrong ones can be had: -1 stands for them.
        return Rows(ptr, known.ravel()).keep(known.ravel() >= 0)


def _wrong_terms(before: Histories, targets: Int64s, *, n: int, rng: np.random.Generator) -> Int64s:
    """Draw terms that the targets never used, all different; -1 where none was found."""
    wrong = np.full((len(targets), n), -1, np.int64)
    terms, n_terms = before.terms, before.n_terms
    entry_key = before.entry_user.astype(np.int64) * n_terms + terms
    for i in range(n):
        for _ in range(_MOST_DRAWS):
            open_ = np.flatnonzero(wrong[:, i] < 0)
            if not len(open_):
                break
            drawn = terms[rng.integers(0, len(terms), len(open_))].astype(np.int64)
            key = targets[open_] * n_terms + drawn
            place = np.minimum(np.searchsorted(entry_key, key), len(entry_key) - 1)
            fits = (entry_key[place] != key) & ~(wrong[open_, :i] == drawn[:, None]).any(axis=1)
            wrong[open_[fits], i] = drawn[fits]
    return wrong


MOST_TERMS = 60
"""Of a longer history only so many terms are tried, those that fewest of the release have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RarePair(Seeker):
    """Know the best two or three terms of a person's history that can be known (Arnold and Lilburn).

    A person is found if some pair or triple of the terms that this person really asked for is in the history of one
    candidate only, and that is the person. Of a history of more than 60 terms only the 60 rarest are tried. Targets are
    people of the original with at least two terms.

    - `n_targets`, `seed`: as for every attacker that draws targets.
    """

    name = "rare_pair"
    knows = "the two or three terms of a person that tell most"

    def reasons(self, pair: Pair, *, auxiliary: AuxiliaryData) -> Reasons:  # noqa: ARG002 - as every attacker
        yield from _scoring.no_terms(pair)
        if not len(_with_terms(pair, at_least=2)):
            yield "nobody in the log has two terms"

    def attack(self, pair: Pair, *, auxiliary: AuxiliaryData) -> Exposure:  # noqa: ARG002 - as every attacker
        eligible = _with_terms(pair, at_least=2)
        targets = _scoring.draw_targets(eligible, n_targets=self.n_targets, rng=generator(self.seed))
        alone = alone_with_own(pair, users=targets)
        row = alone.row_of_entry
        found = np.zeros(len(targets))
        np.maximum.at(found, row, pair.identity.chance(alone.values, user=targets[row]))
        # Different pairs may lead to different candidates, and one is enough; a blind guesser has as many guesses.
        n_guesses = np.maximum(1, alone.lengths)
        n_by_chance = _scoring.found_by_chance(pair, users=targets, among=eligible, n_guesses=n_guesses)
        # Whom all pairs lead to is sure; where they lead to several, each of them may be the person.
        return self.people_found(found, confidence=(alone.lengths > 0) / n_guesses, n_by_chance=n_by_chance)


def alone_with_own(pair: Pair, *, users: Int64s) -> Rows[np.int64]:
    """Return for each user the candidates who alone have some pair or triple of the user's own terms."""
    if isinstance(pair.release.data, Transactions) and (np.bincount(distinct_bags(pair.after)[0]) > 1).all():
        # Each bag is there more than once, so that nobody is alone with anything.
        return Rows(np.zeros(len(users) + 1, np.int64), np.empty(0, np.int64))
    # The rarest of all that may stand for the terms of each user in the release.
    support = pair.holders.lengths
    items = _scoring.as_items(pair.before.terms_of(users), generalisations=pair.generalisations)
    items = items.keep(support[items.values] > 0)
    order = np.lexsort((support[items.values], items.row_of_entry))
    rarest = Rows(items.ptr, items.values[order]).keep(items.place_in_row < MOST_TERMS)
    ptr, alone = alone_with_few(rarest, pair.holders, pair.n_candidates)
    return Rows(ptr, alone.astype(np.int64))


@njit(cache=True, nogil=True)
def alone_with_few(own: Rows[np.int64], holders: Rows[np.int32], n_candidates: int) -> Rows[np.int32]:
    """Return the candidates who alone hold some pair or triple of a target's own terms.

    Own terms are at most 64 for each target. A pair is counted as a triple with its second term twice.
    """
    n_targets = len(own.ptr) - 1
    mask, touched = np.zeros(n_candidates, np.uint64), np.empty(n_candidates, np.int32)
    n_by_triple, by_triple = np.zeros((64, 64, 64), np.int32), np.empty((64, 64, 64), np.int32)
    marked_for, has = np.full(n_candidates, -1, np.int64), np.empty(64, np.int64)
    found_ptr, found = np.zeros(n_targets + 1, np.int64), np.empty(max(16, n_targets), np.int32)
    n_found = 0
    for target in range(n_targets):
        terms = own.values[own.ptr[target] : own.ptr[target + 1]]
        n_own = len(terms)
        n_by_triple[:n_own, :n_own, :n_own] = 0
        n_touched = 0
        for i in range(n_own):
            for candidate in holders.values[holders.ptr[terms[i]] : holders.ptr[terms[i] + 1]]:
                if mask[candidate] == 0:
                    touched[n_touched] = candidate
                    n_touched += 1
                mask[candidate] |= np.uint64(1) << np.uint64(i)
        for t in range(n_touched):
            candidate = touched[t]
            n_has = 0
            for i in range(n_own):
                if mask[candidate] >> np.uint64(i) & np.uint64(1):
                    has[n_has] = i
                    n_has += 1
            mask[candidate] = 0
            for a in range(n_has):
                for b in range(a + 1, n_has):
                    for c in range(b, n_has):
                        n_by_triple[has[a], has[b], has[c]] += 1
                        by_triple[has[a], has[b], has[c]] = candidate
        for a in range(n_own):
            for b in range(a + 1, n_own):
                for c in range(b, n_own):
                    candidate = by_triple[a, b, c]
                    if n_by_triple[a, b, c] == 1 and marked_for[candidate] != target:
                        marked_for[candidate] = target
                        if n_found == len(found):
                            found = np.concatenate((found, np.empty(len(found), np.int32)))
                        found[n_found] = candidate
                        n_found += 1
        found_ptr[target + 1] = n_found
    return Rows(found_ptr, found[:n_found].copy())
