"""Find the terms to keep: delete as the paper does, build up in better orders, and take the best outcome."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from queryveil.histories import Histories
from queryveil.kernels.arrays import Bools, Floats, Int64s
from queryveil.kernels.combinations import count_in_frequent
from queryveil.methods.km_deletion import Labelled, build, delete, label, restore
from queryveil.methods.km_targets import VALUE_COLUMNS, Target
from queryveil.methods.km_whole import delete_whole, restore_whole


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Wish:
    """What should be kept: the target, what one occurrence of each term is worth to it, and whether to give back."""

    target: Target
    worth: Floats
    restore: bool = True


def choose(histories: Histories, wish: Wish, *, k: int, m: int | None, rng: np.random.Generator) -> Bools:
    """Say for each entry whether it stays, so that (k, m)-anonymity holds.

    Without `restore` the paper's greedy deletion decides; with it the outcome is worth no less, usually more.
    """
    # One stream for the deletion, with and without restore: the same seed gives the same greedy outcome.
    deleting, ordering = rng.spawn(2)
    liking = _liking(histories, wish.target, wish.worth, k=k, m=m)
    at_random = wish.target is Target.RANDOM
    rarest_first = label(histories, histories.support().astype(np.float64), k=k)
    mine = liking[rarest_first.label_term]
    n = len(histories.terms)
    if m is None:
        alive = delete_whole(rarest_first, deleting.random(len(mine)) if at_random else mine, k=k, rng=deleting)
        if wish.restore:
            alive = restore_whole(rarest_first, alive, mine, k=k, rng=ordering)
        return rarest_first.marks(alive, n)
    if not wish.restore:
        return rarest_first.marks(delete(rarest_first, mine, k=k, m=m, rng=deleting, at_random=at_random), n)
    # The kernels let go of Python's lock, so both ways run side by side.
    with ThreadPoolExecutor(max_workers=1) as pool:
        greedy = pool.submit(delete, rarest_first, mine, k=k, m=m, rng=deleting, at_random=at_random)
        outcomes = [_build(histories, order, k=k, m=m) for order in _orders(histories, liking, wish, ordering)]
        alive = greedy.result()
    best = max(outcomes, key=lambda kept: _value(histories, kept, wish))
    if _value(histories, rarest_first.marks(alive, n), wish) > _value(histories, best, wish):
        best = rarest_first.marks(restore(rarest_first, alive, mine, k=k, m=m), n)
    return best


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
    labelled = label(histories, histories.support().astype(np.float64), k=k)
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


def _orders(histories: Histories, liking: Floats, wish: Wish, rng: np.random.Generator) -> Iterator[Floats]:
    """Give keys to build up by, lowest first; ties are broken by the generator."""
    shuffle = rng.permutation(histories.n_terms)
    if wish.target is Target.RANDOM:
        yield shuffle.astype(np.float64)
        return
    yield _ranks(-liking, shuffle)
    if wish.target in VALUE_COLUMNS:
        # What a release is worth is the sum over the occurrences it keeps, so what one occurrence is worth is often
        # a better guide than the paper's value times frequency.
        yield _ranks(-wish.worth, -histories.frequency(), shuffle)


def _ranks(*keys: Floats | Int64s) -> Floats:
    """Rank the terms by the first key, then by the next ones."""
    ranks = np.empty(len(keys[0]))
    ranks[np.lexsort(keys[::-1])] = np.arange(len(ranks))
    return ranks


def _build(histories: Histories, order: Floats, *, k: int, m: int) -> Bools:
    labelled: Labelled = label(histories, order, k=k)
    return labelled.marks(build(labelled, k=k, m=m), len(histories.terms))


def _value(histories: Histories, kept: Bools, wish: Wish) -> float:
    """Give what the outcome is worth to the target."""
    if wish.target is Target.USERS:
        return float((np.diff(np.concatenate([[0], np.cumsum(kept)])[histories.row_ptr]) > 0).sum())
    return float((histories.counts[kept] * wish.worth[histories.terms[kept]]).sum())
