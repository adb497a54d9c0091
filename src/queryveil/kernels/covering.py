"""Which released item stands over an original one."""

from __future__ import annotations

import numpy as np
from numba import njit

from queryveil.kernels.arrays import Floats, Int32s, Int64s


@njit(cache=True, nogil=True)
def covering_loss(
    cluster_of: Int32s,
    released_ptr: Int64s,
    released: Int32s,
    row_ptr: Int64s,
    items: Int32s,
    parent: Int32s,
    loss: Floats,
) -> float:
    """Sum over the items the loss of the lowest released item at or above each; 1 where there is none."""
    mark = np.full(len(parent), -1, np.int64)
    total = 0.0
    for row in range(len(row_ptr) - 1):
        for node in released[released_ptr[cluster_of[row]] : released_ptr[cluster_of[row] + 1]]:
            mark[node] = row
        for item in items[row_ptr[row] : row_ptr[row + 1]]:
            node = item
            while node >= 0 and mark[node] != row:
                node = parent[node]
            total += 1.0 if node < 0 else loss[node]
    return total
