"""What it costs to give users the shares of a centroid, and which centroid is nearest."""

from __future__ import annotations

import numpy as np
from numba import njit

from queryveil.kernels.arrays import Int32s, Int64s


@njit(cache=True, nogil=True)
def multiple(n_rows: int, step: int) -> int:
    """Give how many times `step` comes nearest to `n_rows`, once at least; of two equally near the fewer."""
    times = n_rows // step
    if 2 * (n_rows - times * step) > step:
        times += 1
    return max(1, times)


@njit(cache=True, nogil=True)
def steps_of(ptr: Int64s, counts: Int64s) -> Int64s:
    """Give each user's greatest common divisor of counts."""
    out = np.ones(len(ptr) - 1, np.int64)
    for user in range(len(out)):
        divisor = 0
        for i in range(ptr[user], ptr[user + 1]):
            a, b = divisor, counts[i]
            while b:
                a, b = b, a % b
            divisor = a
        out[user] = max(1, divisor)
    return out


@njit(cache=True, nogil=True)
def spread(row: int, ptr: Int64s, cells: Int32s, counts: Int64s, dense: Int64s) -> int:
    """Write the counts of a row into `dense`; give their sum."""
    step = 0
    for i in range(ptr[row], ptr[row + 1]):
        dense[cells[i]] = counts[i]
        step += counts[i]
    return step


@njit(cache=True, nogil=True)
def clear(row: int, ptr: Int64s, cells: Int32s, dense: Int64s) -> None:
    """Undo `spread`."""
    for i in range(ptr[row], ptr[row + 1]):
        dense[cells[i]] = 0


@njit(cache=True, nogil=True)
def edits(user: int, step: int, ptr: Int64s, cells: Int32s, counts: Int64s, n_rows: Int64s, dense: Int64s) -> int:
    """Give the rows to add to and to suppress of a user, in `exact`, towards the centroid in `dense`."""
    times = multiple(n_rows[user], step)
    shared = 0
    for i in range(ptr[user], ptr[user + 1]):
        shared += min(counts[i], times * dense[cells[i]])
    return int(n_rows[user] + times * step - 2 * shared)


@njit(cache=True, nogil=True)
def nearest_centroids(
    users: Int64s, seeds: Int64s, ptr: Int64s, cells: Int32s, counts: Int64s, n_rows: Int64s, n_cells: int
) -> Int32s:
    """Give the place of each user's nearest seed; of those equally near one with as many rows, then the first."""
    found = np.full(len(users), -1, np.int32)
    value, apart = np.zeros(len(users)), np.zeros(len(users), np.int64)
    dense = np.zeros(n_cells, np.int64)
    for group in range(len(seeds)):
        seed = seeds[group]
        step = spread(seed, ptr, cells, counts, dense)
        for i in range(len(users)):
            user = users[i]
            shared = 0
            for j in range(ptr[user], ptr[user + 1]):
                shared += min(counts[j] * step, dense[cells[j]] * n_rows[user])
            new = -shared / step
            differs = abs(n_rows[user] - n_rows[seed])
            if found[i] < 0 or new < value[i] or (new == value[i] and differs < apart[i]):
                found[i], value[i], apart[i] = group, new, differs
        clear(seed, ptr, cells, dense)
    return found
