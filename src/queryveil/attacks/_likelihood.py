"""Likelihoods of candidates, for attackers who take what they know as drawn from all that somebody did."""

from math import exp, log1p
from typing import NamedTuple

import numpy as np

from queryveil.data import Floats, Int32s, Int64s
from queryveil.data.rows import Rows
from queryveil.kernels import njit

BY_ACCIDENT = 0.1
"""Share of known facts assumed wrong or missing."""
_NEARLY = 1e-9


class Guesses(NamedTuple):
    """The candidate guessed for each target, -1 for none, and how sure the attacker is of it."""

    candidate: Int64s
    confidence: Floats


@njit(cache=True, nogil=True)
def add_log_odds(
    things: Rows[np.int64], holders: Rows[np.int32], odds: Floats, score: Floats, touched: Int32s, part: Floats
) -> int:
    """Add log(1 + odds) of each thing to the scores of its holders, 0 before; return how many are listed in `touched`.

    A thing, a row, may appear as any of its items. `odds`, beside the holders, are above 0; those of the items of one
    thing add up in `part`, 0 before and after.
    """
    n_touched, n_candidates = 0, len(score)
    for i in range(len(things.ptr) - 1):
        # Behind the candidates of all things so far stand those of this one.
        n_partly = 0
        for item in things.values[things.ptr[i] : things.ptr[i + 1]]:
            for j in range(holders.ptr[item], holders.ptr[item + 1]):
                candidate = holders.values[j]
                if part[candidate] == 0.0:
                    touched[n_candidates + n_partly] = candidate
                    n_partly += 1
                part[candidate] += odds[j]
        for candidate in touched[n_candidates : n_candidates + n_partly]:
            if score[candidate] == 0.0:
                touched[n_touched] = candidate
                n_touched += 1
            score[candidate] += log1p(part[candidate])
            part[candidate] = 0.0
    return n_touched


@njit(cache=True, nogil=True)
def guess_likeliest(
    known_ptr: Int64s, items: Rows[np.int64], holders: Rows[np.int32], odds: Floats, n_candidates: int, pick: Floats
) -> Guesses:
    """Return the likeliest candidate for each target, -1 where nobody holds anything that is known, and how likely.

    A known thing may appear as any of its `items`; a candidate's score is the sum of log(1 + odds) over the things. Of
    several with the best score `pick`, from 0 up to 1, chooses one. The confidence is the chance of this candidate,
    were all as likely before.
    """
    n_targets = len(known_ptr) - 1
    score, part, touched = np.zeros(n_candidates), np.zeros(n_candidates), np.empty(2 * n_candidates, np.int32)
    guessed, confidence = np.full(n_targets, -1, np.int64), np.zeros(n_targets)
    for target in range(n_targets):
        things = Rows(items.ptr[known_ptr[target] : known_ptr[target + 1] + 1], items.values)
        n_touched, best = add_log_odds(things, holders, odds, score, touched, part), 0.0
        for candidate in touched[:n_touched]:
            best = max(best, score[candidate])
        n_best, total = 0, (n_candidates - n_touched) * exp(-best)
        for i in range(n_touched):
            candidate = touched[i]
            total += exp(score[candidate] - best)
            if score[candidate] > best - _NEARLY:
                touched[n_best] = candidate
                n_best += 1
            score[candidate] = 0.0
        if n_best > 0:
            guessed[target] = touched[int(pick[target] * n_best)]
            confidence[target] = 1 / total
    return Guesses(guessed, confidence)


@njit(cache=True, nogil=True)
def mean_of_likely(
    known_ptr: Int64s, items: Rows[np.int64], holders: Rows[np.int32], odds: Floats, values: Floats
) -> Floats:
    """Return for each target the mean of the candidates' values, weighted by how likely each candidate is the target.

    Candidates are as likely as in `guess_likeliest`; a row of `values` for each of them. The last column is the chance
    of the likeliest.
    """
    n_targets, n_candidates, n_values = len(known_ptr) - 1, len(values), values.shape[1]
    score, part, touched = np.zeros(n_candidates), np.zeros(n_candidates), np.empty(2 * n_candidates, np.int32)
    means, of_all = np.zeros((n_targets, n_values + 1)), np.zeros(n_values)
    for candidate in range(n_candidates):
        of_all += values[candidate]
    for target in range(n_targets):
        things = Rows(items.ptr[known_ptr[target] : known_ptr[target + 1] + 1], items.values)
        n_touched, best = add_log_odds(things, holders, odds, score, touched, part), 0.0
        for candidate in touched[:n_touched]:
            best = max(best, score[candidate])
        # Whoever holds nothing that is known scores 0.
        total, means[target, :n_values] = n_candidates * exp(-best), of_all * exp(-best)
        for candidate in touched[:n_touched]:
            more = exp(score[candidate] - best) - exp(-best)
            total += more
            for value in range(n_values):
                means[target, value] += more * values[candidate, value]
            score[candidate] = 0.0
        means[target, n_values] = 1.0
        means[target] /= total
    return means


class Odds(NamedTuple):
    """The items that each known thing may appear as, and the odds that beside each holder of an item it was them."""

    items: Rows[np.int64]
    odds: Floats


def odds_of(
    things: Int64s,
    *,
    holders: Rows[np.int32],
    n_candidates: int,
    counts: Int64s | Floats,
    generalisations: Rows[np.int64] | None = None,
    by_accident: float = BY_ACCIDENT,
) -> Odds:
    """Return the odds of things that are known, taken as drawn from all that somebody did.

    They are the likelier from a candidate the less else that one did; a part of them is anybody's, `by_accident`.
    `counts` says how often each holder did each thing. With `generalisations` an item stands for each thing below it as
    often as that is asked.
    """
    by_candidate = np.bincount(holders.values, weights=counts, minlength=n_candidates)
    n_things, thing = len(holders.ptr) - 1, holders.row_of_entry
    by_thing = np.bincount(thing, weights=counts, minlength=n_things)
    if generalisations is None:
        items = Rows(np.arange(len(things) + 1), things)
    else:
        below = by_thing[generalisations.row_of_entry]
        by_thing = np.bincount(generalisations.values, weights=below, minlength=n_things)
        items = generalisations.take(things)
    own, anybody = counts / by_candidate[holders.values], by_thing[thing] / max(1, counts.sum())
    return Odds(items, (1 - by_accident) * own / (by_accident * anybody))


def guess_likeliest_candidates(
    known: Rows[np.int64],
    *,
    holders: Rows[np.int32],
    n_candidates: int,
    counts: Int64s,
    rng: np.random.Generator,
    generalisations: Rows[np.int64] | None = None,
) -> Guesses:
    """Return the candidate who is the likeliest source of what is known of each target; ties are drawn."""
    items, odds = odds_of(
        known.values, holders=holders, n_candidates=n_candidates, counts=counts, generalisations=generalisations
    )
    return guess_likeliest(known.ptr, items, holders, odds, n_candidates, rng.random(known.n_rows))
