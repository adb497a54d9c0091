"""What attackers who seek people share: whom they seek, how they score, and what a blind guesser finds."""

from __future__ import annotations

import numpy as np

from queryveil.attack.postings import Postings
from queryveil.guarantees import DifferentialPrivacy
from queryveil.kernels.arrays import Int64s
from queryveil.kernels.naming import name_best
from queryveil.log import QueryLog
from queryveil.paired import Paired
from queryveil.transactions import Transactions


def no_people(paired: Paired) -> str | None:
    """Say why nobody can be sought in a release; None if people can."""
    if not isinstance(paired.release.data, QueryLog | Transactions):
        return "the release has no rows that are one person's"
    if isinstance(paired.release.promise, DifferentialPrivacy):
        return "the users of the release are made up"
    return None


def draw_targets(eligible: Int64s, *, n_targets: int, rng: np.random.Generator) -> Int64s:
    """Draw some of those who may be sought; all, if there are few."""
    return np.sort(rng.choice(eligible, size=min(n_targets, len(eligible)), replace=False))


def draw_each(row_ptr: Int64s, *, rows: Int64s, n: int, rng: np.random.Generator) -> tuple[Int64s, Int64s]:
    """Draw up to n entries of each of some compressed rows; give them as compressed rows, by their places.

    >>> ptr, entries = draw_each(np.array([0, 2, 3]), rows=np.array([0, 1]), n=2, rng=np.random.default_rng(1))
    >>> ptr.tolist(), sorted(entries.tolist())
    ([0, 2, 3], [0, 1, 2])
    """
    row, entries = spread(row_ptr, rows=rows)
    order = np.lexsort((rng.random(len(entries)), row))
    lengths = row_ptr[rows + 1] - row_ptr[rows]
    rank = np.arange(len(row)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return np.concatenate([[0], np.cumsum(np.minimum(lengths, n))]).astype(np.int64), entries[order][rank < n]


def spread(row_ptr: Int64s, *, rows: Int64s) -> tuple[Int64s, Int64s]:
    """Give the place of each entry of some compressed rows, and beside it which of the rows it is in.

    >>> [part.tolist() for part in spread(np.array([0, 2, 3, 5]), rows=np.array([2, 0]))]
    [[0, 0, 1, 1], [3, 4, 0, 1]]
    """
    lengths = row_ptr[rows + 1] - row_ptr[rows]
    row = np.repeat(np.arange(len(rows)), lengths)
    return row, np.arange(len(row)) + np.repeat(row_ptr[rows] - (np.cumsum(lengths) - lengths), lengths)


def name_candidates(known_ptr: Int64s, *, known: Int64s, postings: Postings, eccentricity: float) -> Int64s:
    """Name the candidate who fits best what is known of each target, -1 for none.

    What few hold counts more: the weight of a thing is 1/log of how many hold it. The best must stand out by
    `eccentricity` standard deviations; if that is 0, whoever holds least besides is the best of equals.
    """
    # Paper: Narayanan and Shmatikov 2008, section 4. Differs: what one holds weighs as much as what two hold, since
    # log 1 is 0.
    weight = 1 / np.log(np.maximum(2, postings.support))
    return name_best(
        known_ptr, known.astype(np.int64), postings.ptr, postings.holders, weight, postings.sizes, eccentricity
    )


def found_by_chance(paired: Paired, *, users: Int64s, n_guesses: Int64s | None = None) -> float:
    """Say how many users a blind guesser finds on average, who names a random candidate for each, or so many."""
    chances = paired.who.candidates_of(paired.n_users)[users] / max(1, paired.n_candidates)
    return float(np.minimum(1.0, chances if n_guesses is None else chances * n_guesses).sum())
