"""Rows of counts handed on to whoever they may belong to."""

from __future__ import annotations

import numpy as np
from numba import njit

from queryveil.kernels.arrays import Floats, Int32s, Int64s


@njit(cache=True, nogil=True)
def spread(counts: Floats, ptr: Int64s, owners: Int32s, n_owners: int) -> Floats:
    """Add each row of counts to its owners, an equal part to each; row r has `owners[ptr[r]:ptr[r + 1]]`.

    There may be hundreds of owners to a row, so that the parts are never written out.
    """
    n_rows, n_columns = counts.shape
    out = np.zeros((n_owners, n_columns))
    for r in range(n_rows):
        n = ptr[r + 1] - ptr[r]
        for e in range(ptr[r], ptr[r + 1]):
            for j in range(n_columns):
                out[owners[e], j] += counts[r, j] / n
    return out
