"""How much like each of some people the candidate is that is most like them."""

from __future__ import annotations

import numpy as np
from numba import njit

from queryveil.kernels.arrays import Floats, Int32s, Int64s


@njit(cache=True, nogil=True)
def most_like(
    own_ptr: Int64s, own: Int64s, posting_ptr: Int64s, holders: Int32s, gain: Floats, handicap: Floats, least: float
) -> Floats:
    """Give the highest score that a candidate reaches for each person, `least` where none shares anything.

    A candidate's score is its `handicap` and the gains, all above 0, of what it shares with the person.
    """
    n_people, n_candidates = len(own_ptr) - 1, len(handicap)
    score = np.zeros(n_candidates)
    touched = np.empty(n_candidates, np.int32)
    best = np.full(n_people, least)
    for person in range(n_people):
        n_touched = 0
        for thing in own[own_ptr[person] : own_ptr[person + 1]]:
            for j in range(posting_ptr[thing], posting_ptr[thing + 1]):
                candidate = holders[j]
                if score[candidate] == 0.0:
                    touched[n_touched] = candidate
                    n_touched += 1
                score[candidate] += gain[thing]
        for candidate in touched[:n_touched]:
            best[person] = max(best[person], score[candidate] + handicap[candidate])
            score[candidate] = 0.0
    return best
