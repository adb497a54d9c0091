"""The few things of each person that count."""

from __future__ import annotations

import numpy as np
from numba import njit

from queryveil.kernels.arrays import Bools, Int64s, UInt64s


@njit(cache=True, nogil=True)
def take_largest(row_ptr: Int64s, keys: UInt64s, most: int) -> Bools:
    """Mark the `most` largest keys of each row; of equal ones the first."""
    taken = np.zeros(len(keys), np.bool_)
    best = np.empty(most, np.int64)
    for row in range(len(row_ptr) - 1):
        begin, end = row_ptr[row], row_ptr[row + 1]
        if end - begin <= most:
            taken[begin:end] = True
            continue
        n_best = 0
        for place in range(begin, end):
            key = keys[place]
            if n_best == most:
                if key <= keys[best[most - 1]]:
                    continue
                n_best -= 1
            slot = n_best
            while slot > 0 and keys[best[slot - 1]] < key:
                best[slot] = best[slot - 1]
                slot -= 1
            best[slot] = place
            n_best += 1
        for slot in range(most):
            taken[best[slot]] = True
    return taken
