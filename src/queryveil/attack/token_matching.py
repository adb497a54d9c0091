"""Which hashed term is which public one: counts laid beside counts, the surest matches helping the others.

Kumar et al. match by frequency and then by what stands beside terms that are matched already. Here nothing is settled
before the end: each hashed term has a chance of being each public one, and these chances are sharpened in rounds.
"""

from __future__ import annotations

import numpy as np

from queryveil.attack.token_counts import TokenCounts
from queryveil.kernels.arrays import Float32s, Int64s

_N_ROUNDS = 10
_FIRST_TEMPERATURE, _LAST_TEMPERATURE = 8.0, 1.0
"""A difference in score counts by its ratio to this: little at first, when anchors are few."""
_PSEUDO = 0.3
_USES = (1.0, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5)
_BAND, _TOGETHER, _APART = 0.5, 0.5, 0.05
_BAND_AT_FIRST = 0.3
"""From the first round on bands count so much less, and ever less: terms stand in for their bands."""
_EXPECTED, _BLIND_ROUNDS = 0.2, 3
"""How much rare neighbours weigh, and for how many rounds they do not: while anchors are few they mislead."""
_N_BALANCINGS = 10


def by_rank(hashed: TokenCounts, *, public: TokenCounts) -> Int64s:
    """Take each hashed term for the public one of the same rank, -1 if there is none."""
    place = np.arange(len(hashed.terms))
    return np.where(place < len(public.terms), place, -1)


def by_company(hashed: TokenCounts, *, public: TokenCounts) -> Int64s:
    """Take each hashed term for the public one that it most likely is, by how it is used and beside what."""
    if not len(hashed.terms) or not len(public.terms):
        return np.full(len(hashed.terms), -1, np.int64)
    scale = np.float32(hashed.n_people / public.n_people)
    uses = -_apart(hashed.uses, public.uses * scale, weights=np.array(_USES, np.float32))
    bands = -_apart(hashed.bands, public.bands * scale, weights=np.float32(_BAND))
    chances = _balanced(uses + bands, temperature=_FIRST_TEMPERATURE / 2)
    for n in range(_N_ROUNDS):
        done = n / (_N_ROUNDS - 1)
        score = uses + _BAND_AT_FIRST * (1 - n / _N_ROUNDS) * bands
        # Public counts are blurred as much as the chances blur the hashed ones, or certainty would count as likeness.
        mass = chances.sum(axis=0)
        blur = (chances / np.maximum(mass, 1e-9)).T @ chances
        for one, other, weight in (
            (hashed.together, public.together, _TOGETHER),
            (hashed.apart, public.apart, _APART),
        ):
            ours, theirs = one @ chances, (other * np.minimum(mass, 1)) @ blur * scale
            score = score - _apart(ours, theirs, weights=np.float32(weight))
            if one is hashed.together and n >= _BLIND_ROUNDS:
                score = score + _EXPECTED * _as_expected(ours, theirs)
        temperature = _FIRST_TEMPERATURE * (_LAST_TEMPERATURE / _FIRST_TEMPERATURE) ** done
        chances = _balanced(score, temperature=temperature)
    return np.asarray(chances.argmax(axis=1), np.int64)


def _apart(ours: Float32s, theirs: Float32s, *, weights: Float32s | np.float32) -> Float32s:
    """Give how far each row of counts is from each other row; square roots of counts all vary alike."""
    width = np.sqrt(weights)
    x, y = np.sqrt(ours + _PSEUDO) * width, np.sqrt(theirs + _PSEUDO) * width
    return np.asarray((x * x).sum(axis=1)[:, None] + (y * y).sum(axis=1) - 2 * (x @ y.T), np.float32)


def _as_expected(ours: Float32s, theirs: Float32s) -> Float32s:
    """Give the log-likelihood of each of our rows of counts if it has the lifts of each of theirs.

    A lift is how many times as often two terms stand together as if they knew nothing of each other. Square roots of
    small counts tell little; here a rare pair that both have tells much.
    """
    lift = (theirs + 1) / (_independent(theirs) + 1)
    return np.asarray(ours @ np.log(lift).T - _independent(ours) @ (lift - 1).T, np.float32)


def _independent(counts: Float32s) -> Float32s:
    total = max(float(counts.sum()), 1e-9)
    return np.asarray(np.outer(counts.sum(axis=1), counts.sum(axis=0)) / np.float32(total), np.float32)


def _balanced(score: Float32s, *, temperature: float) -> Float32s:
    """Turn scores into chances: each hashed term is one public term, each public term at most one hashed."""
    chances = np.exp((score - score.max(axis=1, keepdims=True)) / np.float32(temperature))
    for _ in range(_N_BALANCINGS):
        chances /= chances.sum(axis=1, keepdims=True)
        chances /= np.maximum(chances.sum(axis=0, keepdims=True), 1)
    return np.asarray(chances / chances.sum(axis=1, keepdims=True), np.float32)
