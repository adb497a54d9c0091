"""Delete terms until every combination of up to m has k users, then restore what can come back."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from queryveil import progress
from queryveil.data import Bools, Floats, Int8s, Int32s, Int64s
from queryveil.errors import BadInput, BadParameter
from queryveil.methods.km._pivot_kernels import build_up, delete_around, restore_around
from queryveil.methods.km.combinations import Index, index_terms, relabel
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
    n = labelled.n_labels
    # Differs: the paper breaks each tie at random; we draw one order of the terms, so that users give up the same one.
    ranks = np.empty(n, np.int32)
    ranks[np.lexsort((rng.permutation(n), scores))] = np.arange(n, dtype=np.int32)
    random_state = np.array([rng.integers(1, 2**63) if at_random else 0], np.uint64)
    alive = np.ones(len(labelled.source), np.int8)
    work = np.zeros((2, n), np.int32)
    unsettled = np.ones(n, np.int8)
    n_passes = 0
    while unsettled.any():
        pivots = np.flatnonzero(unsettled).astype(np.int32)
        unsettled = np.zeros(n, np.int8)
        n_passes += 1
        for batch in _batches(pivots, f"deleting, pass {n_passes}"):
            delete_around(batch, labelled.index, alive, ranks, k, m, random_state, work, unsettled)
    return alive


def _batches(pivots: Int32s, doing: str) -> Iterator[Int32s]:
    """Yield the pivots in parts, each with a report of progress."""
    for i, batch in enumerate(np.array_split(pivots, _N_STEPS)):
        progress.step(doing, i / _N_STEPS)
        yield batch


def build(histories: Histories, order: Int32s, *, k: int, m: int) -> Bools:
    """Start from nothing and grant each term in turn to as many of its users as can have it; mark what they got.

    A term that comes later is never the reason why an earlier one must go: one pass is enough, and nothing can be
    restored after it.
    """
    index = index_terms(histories.user_terms, n_terms=histories.n_terms)
    built = np.empty(len(histories.terms), np.int32)
    length = np.zeros(histories.n_users, np.int32)
    work = np.zeros((2, histories.n_terms), np.int32)
    kept = np.zeros(len(histories.terms), np.int8)
    for pivots in _batches(order[np.diff(index.posting_ptr)[order] >= k], "building up"):
        build_up(pivots, index, k, m, built, length, work, kept)
    return kept.astype(np.bool_)


def restore(labelled: Labelled, alive: Int8s, worth: Floats, *, k: int, m: int) -> Int8s:
    """Restore deleted terms, the most valuable first, until none can come back; the promise still holds."""
    alive = alive.copy()
    work = np.zeros((2, labelled.n_labels), np.int32)
    order = np.argsort(-worth, kind="stable").astype(np.int32)
    unsettled = np.ones(labelled.n_labels, np.int8)
    n_rounds = 0
    while unsettled.any():
        pivots = order[unsettled[order] == 1]
        unsettled = np.zeros(labelled.n_labels, np.int8)
        n_rounds += 1
        for batch in _batches(pivots, f"giving back, round {n_rounds}"):
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
    check_values(target, values)
    needed = VALUE_COLUMNS.get(target)
    if needed is None or values is None:
        return np.ones(len(vocabulary)), 0
    return worth_of_terms(vocabulary, values=values, columns=needed)
