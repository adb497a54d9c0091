"""Attack by known search terms of a person, and by how often this person's queries have each of them."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from queryveil.attacks import _likelihood, _scoring
from queryveil.attacks.attacker import AuxiliaryData, Exposure, Reasons, Seeker
from queryveil.attacks.known_terms import KnownTerms
from queryveil.data import Floats, Transactions
from queryveil.data.rows import Rows
from queryveil.pairing import Pair, is_generalised
from queryveil.rng import generator
from queryveil.settings import setting

MOST = 63


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedTerms(Seeker):
    """Know random terms of a person and how often this person's queries have each, and name the likeliest candidate.

    As `likely_terms`, with the same targets and terms; but a term speaks for those above all whose released counts are
    likely to come from the known one, going by what became of all counts.

    - `n_targets`, `seed`: as for every attacker that draws targets.
    - `n_known`: how many terms of the person are known.
    """

    name = "counted_terms"
    n_known: int = setting(3, at_least=1, help="How many terms are known.")

    @property
    def knows(self) -> str:
        return f"{self.n_known} random terms of a person's history, and how often the person's queries have each"

    def reasons(self, pair: Pair, *, auxiliary: AuxiliaryData) -> Reasons:
        yield from KnownTerms(n_known=self.n_known).reasons(pair, auxiliary=auxiliary)
        yield from _scoring.swapped(pair)
        if isinstance(pair.release.data, Transactions) or is_generalised(pair.release):
            yield "what the release counts is not how often a person used a term"

    def attack(self, pair: Pair, *, auxiliary: AuxiliaryData) -> Exposure:  # noqa: ARG002 - as every attacker
        rng, before, after, holders = generator(self.seed), pair.before, pair.after, pair.holders
        eligible = np.flatnonzero(before.user_terms.lengths >= self.n_known)
        targets = _scoring.draw_targets(eligible, n_targets=self.n_targets, rng=rng)
        entries = Rows(before.user_terms.ptr, np.arange(len(before.terms)))
        known = _scoring.draw_each(entries, of=targets, n=self.n_known, rng=rng)
        chances, pick = chance_of_counts(pair), rng.random(len(targets))
        released = np.minimum(after.counts, MOST)[np.argsort(after.terms, kind="stable")]
        # As without counts: nine in ten known terms are drawn from the candidate's own, one from anybody's.
        odds = (1 / _likelihood.BY_ACCIDENT - 1) * len(released) / after.user_terms.lengths[holders.values]
        candidate, confidence = np.empty(len(targets), np.int64), np.empty(len(targets))
        for some in np.array_split(np.arange(len(targets)), len(targets) // 100 + 1):
            ptr, entry = known.take(some)
            held, each = holders.entries(before.terms[entry]), np.arange(len(entry) + 1)
            row = held.row_of_entry
            chance = chances[released[held.values], np.minimum(before.counts[entry], MOST)[row]]
            weight = odds[held.values] * chance / np.bincount(row, weights=chance)[row]
            terms, things = Rows(each, each[:-1]), Rows(held.ptr, holders.values[held.values])
            guesses = _likelihood.guess_likeliest(ptr, terms, things, weight, pair.n_candidates, pick[some])
            candidate[some], confidence[some] = guesses
        n_by_chance = _scoring.found_by_chance(pair, users=targets, among=eligible)
        right = pair.identity.chance(candidate, user=targets)
        return self.people_found(right, confidence=confidence, n_by_chance=n_by_chance)


def chance_of_counts(pair: Pair) -> Floats:
    """Return for each released count (a row) of a term the chance of each in the original, both up to MOST."""
    user = pair.identity.sole_user()[pair.after.entry_user]
    before, after = (
        pl.DataFrame({"user": user, "term": each.terms, "n": np.minimum(each.counts, MOST)})
        for each, user in ((pair.before, pair.before.entry_user.astype(np.int64)), (pair.after, user))
    )
    n = np.full((MOST + 1, MOST + 1), 1 / (MOST + 1))
    np.add.at(n, tuple(before.join(after, on=["user", "term"])["n_right", "n"].to_numpy().T), 1)
    chances: Floats = n / n.sum(axis=1, keepdims=True)
    return chances
