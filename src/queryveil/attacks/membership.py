"""Membership attack by all terms of a person, after Homer et al.: is the person in the release?"""

from dataclasses import dataclass

import numpy as np
import polars as pl

from queryveil.attacks import _scoring
from queryveil.attacks.attacker import AuxiliaryData, Exposure, Reasons, Seeker, Surest
from queryveil.data import Floats, Groups, Int64s, Tallies
from queryveil.data.rows import Rows
from queryveil.guarantees import DifferentialPrivacy, SwapAnonymity
from queryveil.kernels import njit
from queryveil.pairing import Pair
from queryveil.release import Release
from queryveil.rng import generator
from queryveil.text.histories import Histories


def gains(population: Floats, *, released: Floats) -> Floats:
    """Return the gain of each term for somebody who has it: released - pop, divided by the mean of both."""
    # Differs: Homer et al. have frequencies near a half, all of which vary alike; most terms are rare.
    pooled = (population + released) / 2
    return np.asarray((released - population) / np.where(pooled > 0, pooled, 1.0), np.float64)


def statistic(histories: Histories, *, users: Int64s, gain: Floats) -> Floats:
    """Return the sum of the gains of each user's terms, divided by the square root of their number."""
    own = np.bincount(histories.entry_user, weights=gain[histories.terms], minlength=histories.n_users)[users]
    return np.asarray(own / np.sqrt(np.maximum(1, histories.user_terms.lengths[users])), np.float64)


def released_share(pair: Pair, *, vocabulary: pl.Series, population: Floats) -> Floats:
    """Return the share of the release that has each term; noisy counts are scaled to those of the `population`."""
    data, after, n_terms = pair.release.data, pair.after, len(vocabulary)
    if isinstance(data, Tallies) or isinstance(pair.release.promise, DifferentialPrivacy):
        # The counts of the queries with each term, or the number of made-up users who have it.
        weight = data.frame["count"].to_numpy() if isinstance(data, Tallies) else np.ones(pair.n_candidates)
        counts = np.bincount(after.terms, weights=weight[after.entry_user], minlength=n_terms)
        return scaled(np.maximum(0.0, counts), population=population)
    if isinstance(data, Groups):
        places = pl.DataFrame({"term": vocabulary, "place": np.arange(n_terms)})
        found = _scoring.group_holders(data).join(places, on="term")
        n_holders = np.bincount(found["place"].to_numpy(), weights=found["n"].to_numpy(), minlength=n_terms)
        return np.asarray(np.minimum(1.0, n_holders / data.n_members), np.float64)
    return np.asarray(np.bincount(after.terms, minlength=n_terms) / pair.n_candidates, np.float64)


def scaled(counts: Floats, *, population: Floats) -> Floats:
    """Return counts as shares with the same sum as in the population; a term without a count has its share there.

    How many people noisy counts are of, and how many queries of each, is not told.

    >>> scaled(np.array([30.0, 10.0, 0.0]), population=np.array([0.2, 0.2, 0.1])).round(2).tolist()
    [0.3, 0.1, 0.1]
    """
    there = counts > 0
    total = float(counts[there].sum())
    share = counts * (float(population[there].sum()) / total if total else 0.0)
    return np.where(there, np.minimum(1.0, share), population)


@njit(cache=True, nogil=True)
def most_like(own: Rows[np.int64], holders: Rows[np.int32], gain: Floats, handicap: Floats, least: float) -> Floats:
    """Return the highest score that a candidate reaches for each person, `least` where none shares anything.

    A candidate's score is its `handicap` and the gains, all above 0, of what it shares with the person.
    """
    score, touched = np.zeros(len(handicap)), np.empty(len(handicap), np.int32)
    best = np.full(len(own.ptr) - 1, least)
    for person in range(len(best)):
        things = own.values[own.ptr[person] : own.ptr[person + 1]]
        n_touched = _scoring.add_up(things, holders, gain, score, touched)
        for candidate in touched[:n_touched]:
            best[person] = max(best[person], score[candidate] + handicap[candidate])
            score[candidate] = 0.0
    return best


_FOREIGN, _FOREIGN_IF_ADDED = 0.001, 0.5
"""The share of what a candidate has that is somebody else's, where nothing was added and where something was."""
_LOST, _LOST_IF_ADDED = 0.02, 0.2
"""The least share of a person's terms that is gone, of terms that are all still in the release."""
_LEAST_KEPT = 0.001
_NEARLY_NOTHING = 1e-6
_NOBODY = -1e6


class Likeness:
    """Logarithms of likelihood ratios for a candidate being a person, rather than anybody else.

    How far a term is kept is told by how common it is in the release, and outside: of `n_people` `n_holders` have it.
    """

    def __init__(self, release: Release, *, after: Histories, n_holders: Int64s, n_people: int) -> None:
        was_added = bool(release.manifest.changed.get("rows_added")) or isinstance(release.promise, SwapAnonymity)
        foreign, at_least = (_FOREIGN_IF_ADDED, _LOST_IF_ADDED) if was_added else (_FOREIGN, _LOST)
        n_released = np.bincount(after.terms, minlength=len(n_holders)) / max(1, after.n_users) * n_people
        overall = min(1.0, n_released.sum() / max(1, n_holders.sum()))
        # As if one more person had had the term, and kept it as often as terms are kept.
        kept = np.minimum(1.0, (n_released + overall * (n_released > 0)) / (n_holders + 1))
        self._holders = after.user_terms.transpose(len(n_holders))
        # Lost is a term that only the person has, a gain one that both have, the handicap is for a candidate's terms.
        self._lost = np.log(1 - (1 - at_least) * kept)
        rare = -np.log(np.maximum(n_holders, 0.5) / n_people)
        gain = rare + np.log(np.maximum(kept, _LEAST_KEPT)) - self._lost - np.log(foreign)
        self._gain = np.maximum(gain, _NEARLY_NOTHING)
        self._handicap = after.user_terms.lengths * np.log(foreign)

    def of_each(self, own: Rows[np.int64]) -> Floats:
        """Return the likeness of the most similar candidate to each person, given the terms of each."""
        best = most_like(own, self._holders, self._gain, self._handicap, least=_NOBODY)
        lost = np.bincount(own.row_of_entry, weights=self._lost[own.values], minlength=len(best))
        return np.asarray(best + lost, np.float64)


FALSE_POSITIVES = 0.01
"""Allowed false positive rate."""
LEAST_NON_MEMBERS, MOST_NON_MEMBERS = 100, 3000
"""One in a hundred cannot be told from fewer, and more take time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership(Seeker):
    """Know the whole history of a person and how common each term is, and tell whether the person is in the release.

    Where rows are one person's, in logs and transactions, the statistic is the likelihood ratio that the most similar
    candidate is this person: shared terms count by their rarity, terms of only one of the two count against it (those
    of the candidate less if rows were added or change hands, those of the person by how often the release keeps them).
    Of groups and noisy counts only frequencies are compared: the sum of (released - pop) / their mean over the person's
    terms, divided by the square root of the number of terms. `released` is the share of the members that have a term;
    of noisy counts of queries its part of all counts, scaled so that the released terms are as common in all as in the
    public log.
    One half of the public log's users, drawn at random, gives `pop`; up to 3,000 of the other half are known not to be
    in the release, and the threshold is such that 1 in 100 of these is above it. Targets are people of the original;
    found are those above.

    - `n_targets`, `seed`: as for every attacker that draws targets.
    """

    name = "membership"
    knows = "all terms of a person, and how common they are"

    def reasons(self, pair: Pair, *, auxiliary: AuxiliaryData) -> Reasons:
        yield from _scoring.unreadable(pair)
        if auxiliary.public is None:
            yield "needs a public log of the same kind: --public FILE"
        elif auxiliary.public.n_users < 2 * LEAST_NON_MEMBERS:
            yield f"needs a public log of {2 * LEAST_NON_MEMBERS} people or more"
        if not pair.n_users or not pair.n_candidates:
            yield "the release is empty"

    def attack(self, pair: Pair, *, auxiliary: AuxiliaryData) -> Exposure:
        rng = generator(self.seed)
        public, vocabulary = _scoring.public_histories(pair, auxiliary.public or pair.log)
        known, others = np.split(rng.permutation(public.n_users), [public.n_users // 2])
        targets = _scoring.draw_targets(np.arange(pair.n_users), n_targets=self.n_targets, rng=rng)
        outside = others[:MOST_NON_MEMBERS]
        if not any(_scoring.no_people(pair)):
            generalisations = None if pair.ancestors is None else pair.ancestors.items_for(vocabulary)
            items = _scoring.as_items(public.terms_of(known), generalisations=generalisations)
            n_holders = np.bincount(items.values, minlength=len(vocabulary))
            like = Likeness(pair.release, after=pair.after, n_holders=n_holders, n_people=len(known))
            of_outside, of_targets = (
                like.of_each(_scoring.as_items(own, generalisations=generalisations))
                for own in (public.terms_of(outside), pair.before.terms_of(targets))
            )
        else:
            n_holders = np.bincount(public.terms_of(known).values, minlength=len(vocabulary))
            population = np.asarray(n_holders / max(1, len(known)), np.float64)
            released = released_share(pair, vocabulary=vocabulary, population=population)
            gain = gains(population, released=released)
            of_outside = statistic(public, users=outside, gain=gain)
            of_targets = statistic(pair.before, users=targets, gain=gain)
        # Members and others in equal numbers: whoever names the surest of both names some who are not in the release.
        n_each = min(len(of_targets), len(of_outside))
        both = np.concatenate([of_targets[:n_each], of_outside[:n_each]])
        return self.exposure(
            n_targets=len(targets),
            n_found=int((of_targets > above(of_outside)).sum()),
            # Whoever may accuse one in a hundred of others finds, blindly, one in a hundred.
            n_by_chance=FALSE_POSITIVES * len(targets),
            surest=Surest.of(np.repeat([1.0, 0.0], n_each), confidence=both),
        )


def above(outside: Floats) -> float:
    """Return the lowest value that no more than 1 in 100 of those outside is above."""
    return float(np.sort(outside)[::-1][int(FALSE_POSITIVES * len(outside))])
