"""Find the terms to keep: delete as the paper does, build up in better orders, and take the best outcome.

Times can be items too: the days, weeks or four weeks of a user count like terms, and stay where k users share them.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

import numpy as np
import polars as pl

from queryveil import progress
from queryveil.data import Bools, Floats, Int8s, Int32s, Int64s
from queryveil.data.rows import Rows
from queryveil.errors import BadInput, BadParameter
from queryveil.methods.km._pivot_kernels import build_up, delete_around, restore_around
from queryveil.methods.km.combinations import Index, count_in_frequent, index_terms, relabel
from queryveil.methods.settings import Target
from queryveil.text.histories import Histories
from queryveil.text.tokens import worth_of_terms

_N_STEPS = 16
"""How often a pass reports its progress."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Labelled:
    """Histories over labels: the terms, rarest first, without those that fewer than k users have.

    `source` is the entry of the original histories that each entry came from, `label_term` the term of each label.
    """

    index: Index
    source: Int64s
    label_term: Int32s

    @property
    def n_labels(self) -> int:
        """The number of terms that at least k users have."""
        return len(self.label_term)

    def marks(self, alive: Int8s, n_entries: int) -> Bools:
        """Return for each entry of the original histories whether it is still there."""
        kept = np.zeros(n_entries, np.bool_)
        kept[self.source[alive == 1]] = True
        return kept


def label(histories: Histories, *, k: int) -> Labelled:
    """Renumber the terms, rarest first, and index the entries of each."""
    support = histories.support()
    order = np.argsort(support, kind="stable")
    label_term = order[support[order] >= k].astype(np.int32)
    labels = np.full(histories.n_terms, -1, np.int32)
    labels[label_term] = np.arange(len(label_term), dtype=np.int32)
    rows, source = relabel(histories.user_terms, labels)
    return Labelled(index=index_terms(rows, n_terms=len(label_term)), source=source, label_term=label_term)


def delete(
    labelled: Labelled, scores: Floats, *, k: int, m: int, rng: np.random.Generator, at_random: bool = False
) -> Int8s:
    """Delete the term of lowest score from each combination with fewer than k users; mark the entries that are left.

    `scores` has a number for each label; ties are broken by the generator.
    """
    # Paper: algorithm 1. Differs: it goes from user to user; we go from term to term, rarest first, and visit the
    # combinations whose rarest term it is, in all users at once.
    ranks = _ranks(scores, rng)
    random_state = np.array([rng.integers(1, 2**63) if at_random else 0], np.uint64)
    alive = np.ones(len(labelled.source), np.int8)
    work = np.zeros((2, labelled.n_labels), np.int32)
    for batch, unsettled in _until_settled(np.arange(labelled.n_labels), "deleting, pass"):
        delete_around(batch, labelled.index, alive, ranks, k, m, random_state, work, unsettled)
    return alive


def _ranks(scores: Floats, rng: np.random.Generator) -> Int32s:
    # Differs: the paper breaks each tie at random; we draw one order of the terms, so that users give up the same one.
    ranks = np.empty(len(scores), np.int32)
    ranks[np.lexsort((rng.permutation(len(scores)), scores))] = np.arange(len(scores), dtype=np.int32)
    return ranks


def _batches(pivots: Int32s, doing: str) -> Iterator[Int32s]:
    """Yield the pivots in parts, each with a report of progress."""
    for i, batch in enumerate(np.array_split(pivots, _N_STEPS)):
        progress.step(doing, i / _N_STEPS)
        yield batch


def _until_settled(order: Int64s, doing: str) -> Iterator[tuple[Int32s, Int8s]]:
    """Yield the pivots in parts, by `order`, and where to mark those that must be visited again in another round."""
    unsettled = np.ones(len(order), np.int8)
    for n_rounds in count(1):
        pivots = order[unsettled[order] == 1].astype(np.int32)
        if not len(pivots):
            return
        unsettled = np.zeros(len(order), np.int8)
        for batch in _batches(pivots, f"{doing} {n_rounds}"):
            yield batch, unsettled


def build(histories: Histories, order: Int32s, *, k: int, m: int) -> Bools:
    """Start from nothing and grant each term in turn to as many of its users as can have it; mark what they got.

    A later term is never the reason why an earlier one must go: one pass is enough, and nothing can be restored after.
    """
    index = index_terms(histories.user_terms, n_terms=histories.n_terms)
    built = np.empty(len(histories.terms), np.int32)
    length = np.zeros(histories.n_users, np.int32)
    work = np.zeros((2, histories.n_terms), np.int32)
    kept = np.zeros(len(histories.terms), np.int8)
    is_open = np.ones(histories.n_terms, np.int8)
    for pivots in _batches(order[np.diff(index.posting_ptr)[order] >= k], "building up"):
        build_up(pivots, index, is_open, k, m, built, length, work, kept)
    return kept.astype(np.bool_)


def restore(labelled: Labelled, alive: Int8s, worth: Floats, *, k: int, m: int) -> Int8s:
    """Restore deleted terms, the most valuable first, until none can come back; the promise still holds."""
    alive = alive.copy()
    work = np.zeros((2, labelled.n_labels), np.int32)
    for batch, unsettled in _until_settled(np.argsort(-worth, kind="stable"), "giving back, round"):
        restore_around(batch, labelled.index, alive, k, m, work, unsettled)
    return alive


VALUE_COLUMNS = {
    Target.BID: ("bid",),
    Target.CLICKS: ("clicks",),
    Target.IMPRESSIONS: ("impressions",),
    Target.REVENUE: ("bid", "clicks"),
}
"""The columns of the table of term values that a money target multiplies."""


def check_values(target: Target, values: pl.DataFrame | None) -> None:
    """Raise if the target needs a table of term values, or columns of it, that are not there."""
    needed = VALUE_COLUMNS.get(target)
    if needed is None:
        return
    if values is None:
        raise BadParameter("values", "none", allowed=f"a table with the columns term, {', '.join(needed)} for {target}")
    missing = [name for name in ("term", *needed) if name not in values.columns]
    if missing:
        # Privacy: the table may be a log without a header, so its own names are not quoted.
        raise BadInput(
            f"the table of term values has no column {', '.join(missing)}, which the target {target} needs; "
            f"its first line must name its columns"
        )


def term_values(vocabulary: pl.Series, *, target: Target, values: pl.DataFrame | None) -> tuple[Floats, int]:
    """Return what one occurrence of each term is worth, and how many terms the table has no value for."""
    needed = VALUE_COLUMNS.get(target)
    if needed is None or values is None:
        return np.ones(len(vocabulary)), 0
    return worth_of_terms(vocabulary, values=values, columns=needed)


def delete_whole(labelled: Labelled, scores: Floats, *, k: int, rng: np.random.Generator) -> Int8s:
    """Take the term of lowest score from every history that fewer than k users share, the longest first."""
    ranks = _ranks(scores, rng)
    # Each row from its highest to its lowest score: what is left of a history is always a head of its row.
    index = labelled.index
    by_score = np.lexsort((-ranks[index.terms], index.entry_user))
    heads = _heads(labelled, by_score)
    first, length = index.ptr[:-1], np.diff(index.ptr)
    for size in range(int(length.max(initial=0)), 0, -1):
        users = np.flatnonzero(length == size)
        _, group, n_sharing = np.unique(heads[first[users] + size - 1], return_inverse=True, return_counts=True)
        length[users[n_sharing[group] < k]] -= 1
    alive = np.zeros(len(index.terms), np.int8)
    place = np.arange(len(index.terms)) - first[index.entry_user]
    alive[by_score[place < length[index.entry_user]]] = 1
    return alive


def _heads(labelled: Labelled, by_score: Int64s) -> Int64s:
    """Number the heads of the rows: two places get one number if the rows agree up to there."""
    row_ptr, terms, *_ = labelled.index
    terms = terms[by_score].astype(np.int64)
    heads = np.full(len(terms), -1, np.int64)
    first, length = row_ptr[:-1], np.diff(row_ptr)
    n_heads = 0
    for depth in range(int(length.max(initial=0))):
        places = first[length > depth] + depth
        parents = heads[places - 1] if depth else np.zeros(len(places), np.int64)
        _, number = np.unique(parents * labelled.n_labels + terms[places], return_inverse=True)
        heads[places] = n_heads + number
        n_heads += int(number.max()) + 1
    return heads


def restore_whole(labelled: Labelled, alive: Int8s, worth: Floats, *, k: int, rng: np.random.Generator) -> Int8s:
    """Restore a term for the users of one set who lost it, where both they and those left behind stay k or more."""
    _, _, entry_user, posting_ptr, postings = labelled.index
    alive = alive.copy()
    classes = _Classes(labelled, alive, k=k, rng=rng)
    order = np.argsort(-worth, kind="stable")
    n_rounds, n_restored = 0, 1
    while n_restored:
        n_restored, n_rounds = 0, n_rounds + 1
        for i, pivot in enumerate(order):
            if i % 1000 == 0:
                progress.step(f"giving back, round {n_rounds}", i / len(order))
            entries = postings[posting_ptr[pivot] : posting_ptr[pivot + 1]]
            lost = entries[alive[entries] == 0]
            chosen = classes.give_back(int(pivot), lost, entry_user[lost])
            alive[chosen] = 1
            n_restored += len(chosen)
    return alive


class _Classes:
    """The users by the set of terms they are left with."""

    def __init__(self, labelled: Labelled, alive: Int8s, *, k: int, rng: np.random.Generator) -> None:
        self.k, self.rng = k, rng
        self.sets: list[tuple[int, ...]] = []
        self.number: dict[tuple[int, ...], int] = {}
        rows = Rows(labelled.index.ptr, labelled.index.terms).keep(alive == 1)
        self.of_user = np.array([self.find(tuple(row)) for row in rows.to_lists()], np.int64)
        self.size = Counter(self.of_user.tolist())

    def find(self, terms: tuple[int, ...]) -> int:
        """Return the number of a set of terms, a new one if need be."""
        if terms not in self.number:
            self.number[terms] = len(self.sets)
            self.sets.append(terms)
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
            if len(movers) == 0 or self.size[self.number.get(larger, -1)] + len(movers) < self.k:
                continue
            new = self.find(larger)
            self.size[old] -= len(movers)
            self.size[new] += len(movers)
            self.of_user[users[movers]] = new
            chosen.append(lost[movers])
        return np.concatenate(chosen)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Objective:
    """What should be kept: the target, what one occurrence of each term is worth to it, and whether to restore."""

    target: Target
    worth: Floats
    restore: bool = True


_COMPARE_UP_TO = 100_000
"""Up to this many user-terms the paper's deletion runs too and the better outcome wins: chance decides on small logs.

On larger ones building up was worth more in each of 60 cases tried (three logs, five targets, four k and m), and
deleting as well would more than double the time.
"""


def choose(histories: Histories, objective: Objective, *, k: int, m: int | None, rng: np.random.Generator) -> Bools:
    """Return for each entry whether it stays, so that (k, m)-anonymity holds.

    Without `restore` the paper's greedy deletion decides; with it the best of several outcomes does.
    """
    if m is not None:
        # A longer combination than any history has is in none of them.
        m = max(1, min(m, int(histories.user_terms.lengths.max(initial=1))))
    # One stream for the deletion, with and without restore: the same seed gives the same greedy outcome.
    rngs = rng.spawn(2)
    scores = _scores_of(histories, objective.target, objective.worth, k=k, m=m)
    if m is None or not objective.restore:
        return _by_deletion(histories, scores, objective, k=k, m=m, rngs=rngs)
    build_orders = orders(scores, frequency=histories.frequency(), objective=objective, rng=rngs[1])
    outcomes = [build(histories, order, k=k, m=m) for order in build_orders]
    if len(histories.terms) <= _COMPARE_UP_TO:
        outcomes.append(_by_deletion(histories, scores, objective, k=k, m=m, rngs=rngs))
    return max(outcomes, key=lambda kept: _value(histories, kept, objective))


def _by_deletion(
    histories: Histories,
    scores: Floats,
    objective: Objective,
    *,
    k: int,
    m: int | None,
    rngs: list[np.random.Generator],
) -> Bools:
    """Delete as the paper does; with `restore` give back what can come back."""
    (deleting, ordering), labelled = rngs, label(histories, k=k)
    worth, at_random = scores[labelled.label_term], objective.target is Target.RANDOM
    if m is None:
        worth = deleting.random(labelled.n_labels) if at_random else worth
        alive = delete_whole(labelled, worth, k=k, rng=deleting)
        alive = restore_whole(labelled, alive, worth, k=k, rng=ordering) if objective.restore else alive
    else:
        alive = delete(labelled, worth, k=k, m=m, rng=deleting, at_random=at_random)
        alive = restore(labelled, alive, worth, k=k, m=m) if objective.restore else alive
    return labelled.marks(alive, len(histories.terms))


def _scores_of(histories: Histories, target: Target, worth: Floats, *, k: int, m: int | None) -> Floats:
    """Return the score of each term: the paper's target functions."""
    if target is Target.USERS:
        return histories.support().astype(np.float64)
    if target is Target.FIS:
        return _by_frequent_combinations(histories, k=k, m=m)
    return worth * histories.frequency()


def _by_frequent_combinations(histories: Histories, *, k: int, m: int | None) -> Floats:
    """Rank the terms by how often they stand in frequent combinations of size m, then m-1, ... down to 1."""
    # Paper: example 10. Differs: it recounts after every deletion, we count once.
    labelled = label(histories, k=k)
    counts = count_in_frequent(labelled.index, k, 1 if m is None else m)
    _, rank = np.unique(counts[:, ::-1], axis=0, return_inverse=True)
    scores = np.zeros(histories.n_terms)
    scores[labelled.label_term] = rank.reshape(-1) + 1.0
    return scores


def orders(scores: Floats, *, frequency: Int64s, objective: Objective, rng: np.random.Generator) -> Iterator[Int32s]:
    """Return orders to build up by; ties are broken by the generator."""
    shuffle = rng.permutation(len(scores)).astype(np.int32)
    if objective.target is Target.RANDOM:
        yield shuffle
        return
    yield np.lexsort((shuffle, -scores)).astype(np.int32)
    if objective.target is Target.USERS:
        # A user's first term is always granted while its other users can have it too: rare terms first leave fewer
        # users with nothing.
        yield np.lexsort((shuffle, scores)).astype(np.int32)
    if objective.target in VALUE_COLUMNS:
        # What a release is worth is the sum over the occurrences it keeps, so what one occurrence is worth is often
        # a better guide than the paper's value times frequency.
        yield np.lexsort((shuffle, -frequency, -objective.worth)).astype(np.int32)


def _value(histories: Histories, kept: Bools, objective: Objective) -> float:
    """Return what the outcome is worth to the target."""
    if objective.target is Target.USERS:
        n_kept = histories.user_terms.keep(kept).lengths
        # Among outcomes with the same users the one with more terms.
        return float((n_kept > 0).sum() + n_kept.sum() / (len(kept) + 1))
    return float((histories.counts[kept] * objective.worth[histories.terms[kept]]).sum())


LEAST_DATED = 0.5
"""In the released unit at least so many of the rows keep their time."""


def share_times(
    owners: Int32s, starts: dict[str, pl.Series], *, terms: Histories, k: int, m: int
) -> tuple[str | None, pl.Series]:
    """Return the finest unit in which half of the rows keep their time, and the times; None, and no time, if none does.

    - `owners`: the user of each row
    - `starts`: by unit, the start of the stretch of time that each row is in
    - `terms`: the released terms, which are (k, m)-anonymous; all of them stay
    """
    for unit, times in starts.items():
        number = times.rank("dense").fill_null(0).cast(pl.Int64).to_numpy() - 1
        is_kept = _kept(owners, number, terms=terms, k=k, m=m)
        if is_kept.sum() >= LEAST_DATED * max(1, len(owners)):
            return unit, times.set(pl.Series(~is_kept), None)
    return None, next(iter(starts.values())).clear(len(owners))


def _kept(owners: Int32s, number: Int64s, *, terms: Histories, k: int, m: int) -> np.ndarray:
    """Return which rows keep their time, given its number, or -1 if it has none."""
    n_items = terms.n_terms + int(number.max(initial=-1)) + 1
    is_timed, item = number >= 0, terms.n_terms + number
    users = np.concatenate([terms.entry_user, owners[is_timed]])
    items = np.concatenate([terms.terms, item[is_timed]])
    both, entry = Histories.of_pairs(users, items, n_users=terms.n_users, n_terms=n_items)
    # Terms come first, so that no time is the reason why one would have to go; among times those of most users.
    is_time, support = np.arange(n_items) >= terms.n_terms, both.support()
    order = np.lexsort((-support, is_time)).astype(np.int32)
    kept = build(both, order, k=k, m=max(1, min(m, int(both.user_terms.lengths.max(initial=1)))))
    assert kept[both.terms < terms.n_terms].all(), "released terms are anonymous already"
    is_timed[is_timed] = kept[entry[len(terms.terms) :]]
    return is_timed
