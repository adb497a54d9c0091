"""Is somebody among the candidates? How much likelier the one most like a person is this person than anybody else."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from queryveil.attack.postings import Postings
from queryveil.guarantees import SwapAnonymity
from queryveil.histories import Histories
from queryveil.kernels.arrays import Floats, Int64s
from queryveil.kernels.likeness import most_like
from queryveil.release import Release

_FOREIGN, _FOREIGN_IF_ADDED = 0.001, 0.5
"""How much of what a candidate has is somebody else's, where nothing was added and where something was."""
_LOST, _LOST_IF_ADDED = 0.02, 0.2
"""At least so much of what a person had is gone, of the terms that are all still there."""
_LEAST_KEPT = 0.001
_NEARLY_NOTHING = 1e-6
_NOBODY = -1e6


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Likeness:
    """What each term says of a candidate and a person: that both have it (`gain`), or only the person (`lost`).

    Terms that only the candidate has are in its `handicap`. All are logarithms of how many times likelier that is if
    the two are one.
    """

    postings: Postings
    gain: Floats
    lost: Floats
    handicap: Floats

    @classmethod
    def of(cls, release: Release, *, after: Histories, n_holders: Int64s, n_people: int) -> Likeness:
        """Take what the release shows, and that of `n_people` others `n_holders` have each term.

        How much of a term is still there is how common it is in the release, beside how common it is.
        """
        was_added = bool(release.manifest.changed.get("rows_added")) or isinstance(release.promise, SwapAnonymity)
        foreign, at_least = (_FOREIGN_IF_ADDED, _LOST_IF_ADDED) if was_added else (_FOREIGN, _LOST)
        n_released = np.bincount(after.terms, minlength=len(n_holders)) / max(1, after.n_users) * n_people
        overall = min(1.0, n_released.sum() / max(1, n_holders.sum()))
        # As if one more person had had the term, and kept it as often as terms are kept.
        kept = np.minimum(1.0, (n_released + overall * (n_released > 0)) / (n_holders + 1))
        lost = np.log(1 - (1 - at_least) * kept)
        rare = -np.log(np.maximum(n_holders, 0.5) / n_people)
        gain = rare + np.log(np.maximum(kept, _LEAST_KEPT)) - lost - np.log(foreign)
        return cls(
            postings=Postings.of(_widened(after, n_terms=len(n_holders))),
            gain=np.maximum(gain, _NEARLY_NOTHING),
            lost=lost,
            handicap=np.diff(after.row_ptr) * np.log(foreign),
        )

    def of_each(self, own_ptr: Int64s, *, own: Int64s) -> Floats:
        """Give the likeness of the most similar candidate to each person, whose terms come as compressed rows."""
        best = most_like(
            own_ptr, own, self.postings.ptr, self.postings.holders, self.gain, self.handicap, least=_NOBODY
        )
        row = np.repeat(np.arange(len(own_ptr) - 1), np.diff(own_ptr))
        return np.asarray(best + np.bincount(row, weights=self.lost[own], minlength=len(best)), np.float64)

    def __repr__(self) -> str:
        return f"Likeness(n_candidates={len(self.handicap)})"


def _widened(histories: Histories, *, n_terms: int) -> Histories:
    return Histories(row_ptr=histories.row_ptr, terms=histories.terms, counts=histories.counts, n_terms=n_terms)
