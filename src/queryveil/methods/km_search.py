"""Find the terms to keep: delete by one or more orders, give back, and take the best outcome."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from queryveil.histories import Histories
from queryveil.kernels.arrays import Bools, Floats, Int8s
from queryveil.kernels.combinations import count_in_frequent
from queryveil.methods.km_deletion import Labelled, delete, label, marks_of, restore
from queryveil.methods.km_targets import VALUE_COLUMNS, Target
from queryveil.methods.km_whole import delete_whole, restore_whole


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Wish:
    """What should be kept: the target, what one occurrence of each term is worth to it, and whether to give back."""

    target: Target
    worth: Floats
    restore: bool = True


def choose(histories: Histories, wish: Wish, *, k: int, m: int | None, rng: np.random.Generator) -> Bools:
    """Say for each entry whether it stays, so that (k, m)-anonymity holds."""
    labelled = label(histories, k=k)
    counts = histories.counts[labelled.source].astype(np.float64)
    frequency = np.bincount(labelled.terms, weights=counts, minlength=labelled.n_labels)
    worth = wish.worth[labelled.label_term]
    best, best_value = np.zeros(len(labelled.terms), np.int8), -1.0
    for liking in _orders(labelled, frequency, worth, wish, k=k, m=m):
        alive = _outcome(labelled, liking, worth * frequency, wish, k=k, m=m, rng=rng)
        value = _value(labelled, alive, counts * worth[labelled.terms], wish.target)
        if value > best_value:
            best, best_value = alive, value
    return marks_of(labelled, best, len(histories.terms))


def _orders(
    labelled: Labelled, frequency: Floats, worth: Floats, wish: Wish, *, k: int, m: int | None
) -> list[Floats]:
    """Give the likings to delete by; the first is the paper's."""
    users = np.diff(labelled.posting_ptr).astype(np.float64)
    if wish.target is Target.USERS:
        return [users]
    if wish.target is Target.FIS:
        return [_by_frequent_combinations(labelled, k=k, m=m)]
    if wish.target not in VALUE_COLUMNS:
        return [frequency]
    # A term's value times its frequency is the paper's liking. What the release is worth is the sum over what is
    # kept, so the value of one occurrence is often the better guide: both are tried.
    return [worth * frequency, worth] if wish.restore else [worth * frequency]


def _by_frequent_combinations(labelled: Labelled, *, k: int, m: int | None) -> Floats:
    """Rank the terms by how often they stand in frequent combinations of size m, then m-1, ... down to 1."""
    # Paper: example 10. Differs: it recounts after every deletion, we count once.
    sizes = 1 if m is None else m
    counts = count_in_frequent(
        labelled.row_ptr, labelled.terms, labelled.entry_user, labelled.posting_ptr, labelled.postings, k, sizes
    )
    _, rank = np.unique(counts[:, ::-1], axis=0, return_inverse=True)
    return rank.reshape(-1).astype(np.float64)


def _outcome(
    labelled: Labelled, liking: Floats, worth: Floats, wish: Wish, *, k: int, m: int | None, rng: np.random.Generator
) -> Int8s:
    at_random = wish.target is Target.RANDOM
    if m is None:
        alive = delete_whole(labelled, rng.random(len(liking)) if at_random else liking, k=k, rng=rng)
        return restore_whole(labelled, alive, worth, k=k, rng=rng) if wish.restore else alive
    alive = delete(labelled, liking, k=k, m=m, rng=rng, at_random=at_random)
    return restore(labelled, alive, worth, k=k, m=m) if wish.restore else alive


def _value(labelled: Labelled, alive: Int8s, entry_worth: Floats, target: Target) -> float:
    """Give what the outcome is worth to the target."""
    if target is Target.USERS:
        return float(len(np.unique(labelled.entry_user[alive == 1])))
    return float(entry_worth[alive == 1].sum())
