"""Histories with their terms renumbered."""

from __future__ import annotations

import numpy as np
from numba import njit

from queryveil.kernels.arrays import Int32s, Int64s
from queryveil.kernels.sorting import sort_in_place


@njit(cache=True, nogil=True)
def relabel(row_ptr: Int64s, terms: Int32s, label: Int32s) -> tuple[Int64s, Int32s, Int32s, Int64s]:
    """Write the rows in labels, ascending; a term whose label is -1 is left out.

    Gives the new row pointers, labels, users, and the place in `terms` that each entry came from.
    """
    n_users = len(row_ptr) - 1
    n_kept = 0
    for t in terms:
        n_kept += label[t] >= 0
    new_ptr = np.zeros(n_users + 1, np.int64)
    keys = np.empty(n_kept, np.int64)
    users = np.empty(n_kept, np.int32)
    n = 0
    for user in range(n_users):
        for j in range(row_ptr[user], row_ptr[user + 1]):
            if label[terms[j]] >= 0:
                # The low half remembers the place within the row, so that one sort carries both.
                keys[n] = (np.int64(label[terms[j]]) << 32) | (j - row_ptr[user])
                users[n] = user
                n += 1
        new_ptr[user + 1] = n
        sort_in_place(keys[new_ptr[user] : n])
    labels = np.empty(n_kept, np.int32)
    source = np.empty(n_kept, np.int64)
    for i in range(n_kept):
        labels[i] = keys[i] >> 32
        source[i] = row_ptr[users[i]] + (keys[i] & 0xFFFFFFFF)
    return new_ptr, labels, users, source
