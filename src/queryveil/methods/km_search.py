"""Find the terms to keep: delete as the paper does, build up in better orders, and take the best outcome."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from queryveil.histories import Histories
from queryveil.kernels.arrays import Bools, Floats, Int32s, Int64s
from queryveil.kernels.combinations import count_in_frequent
from queryveil.methods.km_deletion import build, delete, label, restore
from queryveil.methods.km_targets import VALUE_COLUMNS, Target
from queryveil.methods.km_whole import delete_whole, restore_whole


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Wish:
    """What should be kept: the target, what one occurrence of each term is worth to it, and whether to give back."""

    target: Target
    worth: Floats
    restore: bool = True


_COMPARE_UP_TO = 100_000
"""Up to this many user-terms the paper's deletion runs too and the better outcome wins: chance decides on small logs.

On larger ones building up was worth more in each of 60 cases tried (three logs, five targets, four k and m), and
deleting as well would more than double the time.
"""


def choose(histories: Histories, wish: Wish, *, k: int, m: int | None, rng: np.random.Generator) -> Bools:
    """Say for each entry whether it stays, so that (k, m)-anonymity holds.

    Without `restore` the paper's greedy deletion decides; with it the best of several outcomes does.
    """
    if m is not None:
        # A longer combination than any history has is in none of them.
        m = max(1, min(m, int(np.diff(histories.row_ptr).max(initial=1))))
    # One stream for the deletion, with and without restore: the same seed gives the same greedy outcome.
    deleting, ordering = rng.spawn(2)
    liking = _liking(histories, wish.target, wish.worth, k=k, m=m)
    if m is None:
        return _choose_whole(histories, liking, wish, k=k, deleting=deleting, ordering=ordering)
    if not wish.restore:
        return _delete(histories, liking, wish, k=k, m=m, rng=deleting)
    frequency = histories.frequency()
    outcomes = [
        build(histories, order, k=k, m=m) for order in orders(liking, frequency=frequency, wish=wish, rng=ordering)
    ]
    if len(histories.terms) <= _COMPARE_UP_TO:
        outcomes.append(_delete(histories, liking, wish, k=k, m=m, rng=deleting, give_back=True))
    return max(outcomes, key=lambda kept: _value(histories, kept, wish))


def _choose_whole(
    histories: Histories,
    liking: Floats,
    wish: Wish,
    *,
    k: int,
    deleting: np.random.Generator,
    ordering: np.random.Generator,
) -> Bools:
    labelled = label(histories, k=k)
    mine = deleting.random(labelled.n_labels) if wish.target is Target.RANDOM else liking[labelled.label_term]
    alive = delete_whole(labelled, mine, k=k, rng=deleting)
    if wish.restore:
        alive = restore_whole(labelled, alive, mine, k=k, rng=ordering)
    return labelled.marks(alive, len(histories.terms))


def _delete(
    histories: Histories,
    liking: Floats,
    wish: Wish,
    *,
    k: int,
    m: int,
    rng: np.random.Generator,
    give_back: bool = False,
) -> Bools:
    labelled = label(histories, k=k)
    mine = liking[labelled.label_term]
    alive = delete(labelled, mine, k=k, m=m, rng=rng, at_random=wish.target is Target.RANDOM)
    if give_back:
        alive = restore(labelled, alive, mine, k=k, m=m)
    return labelled.marks(alive, len(histories.terms))


def _liking(histories: Histories, target: Target, worth: Floats, *, k: int, m: int | None) -> Floats:
    """Say how much each term is liked: the paper's target functions."""
    if target is Target.USERS:
        return histories.support().astype(np.float64)
    if target is Target.FIS:
        return _by_frequent_combinations(histories, k=k, m=m)
    return worth * histories.frequency()


def _by_frequent_combinations(histories: Histories, *, k: int, m: int | None) -> Floats:
    """Rank the terms by how often they stand in frequent combinations of size m, then m-1, ... down to 1."""
    # Paper: example 10. Differs: it recounts after every deletion, we count once.
    labelled = label(histories, k=k)
    counts = count_in_frequent(
        labelled.row_ptr,
        labelled.terms,
        labelled.entry_user,
        labelled.posting_ptr,
        labelled.postings,
        k,
        1 if m is None else m,
    )
    _, rank = np.unique(counts[:, ::-1], axis=0, return_inverse=True)
    liking = np.zeros(histories.n_terms)
    liking[labelled.label_term] = rank.reshape(-1) + 1.0
    return liking


def orders(liking: Floats, *, frequency: Int64s, wish: Wish, rng: np.random.Generator) -> Iterator[Int32s]:
    """Give orders to build up by; ties are broken by the generator."""
    shuffle = rng.permutation(len(liking)).astype(np.int32)
    if wish.target is Target.RANDOM:
        yield shuffle
        return
    yield np.lexsort((shuffle, -liking)).astype(np.int32)
    if wish.target is Target.USERS:
        # A user's first term is always granted while its other users can have it too: rare terms first leave fewer
        # users with nothing.
        yield np.lexsort((shuffle, liking)).astype(np.int32)
    if wish.target in VALUE_COLUMNS:
        # What a release is worth is the sum over the occurrences it keeps, so what one occurrence is worth is often
        # a better guide than the paper's value times frequency.
        yield np.lexsort((shuffle, -frequency, -wish.worth)).astype(np.int32)


def _value(histories: Histories, kept: Bools, wish: Wish) -> float:
    """Give what the outcome is worth to the target."""
    if wish.target is Target.USERS:
        n_kept = np.diff(np.concatenate([[0], np.cumsum(kept)])[histories.row_ptr])
        # Among outcomes with the same users the one with more terms.
        return float((n_kept > 0).sum() + n_kept.sum() / (len(kept) + 1))
    return float((histories.counts[kept] * wish.worth[histories.terms[kept]]).sum())
