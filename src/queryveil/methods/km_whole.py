"""km without a bound on m: delete until every history, as a whole set, is that of at least k users."""

from __future__ import annotations

import numpy as np

from queryveil import progress
from queryveil.kernels.arrays import Floats, Int8s, Int64s
from queryveil.methods.km_deletion import Labelled


def delete_whole(labelled: Labelled, liking: Floats, *, k: int, rng: np.random.Generator) -> Int8s:
    """Take the least liked term from every history that fewer than k users share, the longest first."""
    n = labelled.n_labels
    ranks = np.empty(n, np.int64)
    ranks[np.lexsort((rng.permutation(n), liking))] = np.arange(n)
    # Each row from its most to its least liked term: what is left of a history is always a head of its row.
    by_liking = np.lexsort((-ranks[labelled.terms], labelled.entry_user))
    heads = _heads(labelled, by_liking)
    first, length = labelled.row_ptr[:-1], np.diff(labelled.row_ptr)
    for size in range(int(length.max(initial=0)), 0, -1):
        users = np.flatnonzero(length == size)
        _, group, n_sharing = np.unique(heads[first[users] + size - 1], return_inverse=True, return_counts=True)
        length[users[n_sharing[group] < k]] -= 1
    alive = np.zeros(len(labelled.terms), np.int8)
    place = np.arange(len(labelled.terms)) - first[labelled.entry_user]
    alive[by_liking[place < length[labelled.entry_user]]] = 1
    return alive


def _heads(labelled: Labelled, by_liking: Int64s) -> Int64s:
    """Number the heads of the rows: two places get one number if the rows agree up to there."""
    terms = labelled.terms[by_liking].astype(np.int64)
    heads = np.full(len(terms), -1, np.int64)
    first, length = labelled.row_ptr[:-1], np.diff(labelled.row_ptr)
    n_heads = 0
    for depth in range(int(length.max(initial=0))):
        places = first[length > depth] + depth
        parents = heads[places - 1] if depth else np.zeros(len(places), np.int64)
        _, number = np.unique(parents * labelled.n_labels + terms[places], return_inverse=True)
        heads[places] = n_heads + number
        n_heads += int(number.max()) + 1
    return heads


def restore_whole(labelled: Labelled, alive: Int8s, worth: Floats, *, k: int, rng: np.random.Generator) -> Int8s:
    """Give a term back to the users of one set who lost it, where both they and those left behind stay k or more."""
    alive = alive.copy()
    classes = _Classes(labelled, alive, k=k, rng=rng)
    order = np.argsort(-worth, kind="stable")
    n_rounds, n_restored = 0, 1
    while n_restored:
        n_restored, n_rounds = 0, n_rounds + 1
        for i, pivot in enumerate(order):
            if i % 1000 == 0:
                progress.step(f"giving back, round {n_rounds}", i / len(order))
            entries = labelled.postings[labelled.posting_ptr[pivot] : labelled.posting_ptr[pivot + 1]]
            lost = entries[alive[entries] == 0]
            chosen = classes.give_back(int(pivot), lost, labelled.entry_user[lost])
            alive[chosen] = 1
            n_restored += len(chosen)
    return alive


class _Classes:
    """The users by the set of terms they are left with."""

    def __init__(self, labelled: Labelled, alive: Int8s, *, k: int, rng: np.random.Generator) -> None:
        self.k, self.rng = k, rng
        self.sets: list[tuple[int, ...]] = []
        self.number: dict[tuple[int, ...], int] = {}
        self.size: list[int] = []
        self.of_user = np.empty(len(labelled.row_ptr) - 1, np.int64)
        for user in range(len(self.of_user)):
            row = slice(labelled.row_ptr[user], labelled.row_ptr[user + 1])
            found = self.find(tuple(labelled.terms[row][alive[row] == 1].tolist()))
            self.of_user[user] = found
            self.size[found] += 1

    def find(self, terms: tuple[int, ...]) -> int:
        """Give the number of a set of terms, a new one if need be."""
        if terms not in self.number:
            self.number[terms] = len(self.sets)
            self.sets.append(terms)
            self.size.append(0)
        return self.number[terms]

    def give_back(self, pivot: int, lost: Int64s, users: Int64s) -> Int64s:
        """Choose which of the lost entries come back, and move their users to the larger set."""
        chosen = [np.empty(0, np.int64)]
        mine = self.of_user[users]
        for old in np.unique(mine).tolist():
            movers = np.flatnonzero(mine == old)
            n_left = self.size[old] - len(movers)
            if 0 < n_left < self.k and self.sets[old]:
                movers = self.rng.permutation(movers)[: max(0, self.size[old] - self.k)]
            larger = tuple(sorted((*self.sets[old], pivot)))
            n_there = self.size[self.number[larger]] if larger in self.number else 0
            if len(movers) == 0 or n_there + len(movers) < self.k:
                continue
            new = self.find(larger)
            self.size[old] -= len(movers)
            self.size[new] += len(movers)
            self.of_user[users[movers]] = new
            chosen.append(lost[movers])
        return np.concatenate(chosen)
