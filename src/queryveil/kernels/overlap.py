"""Which rows of one set resemble which rows of another most."""

from __future__ import annotations

import numpy as np
from numba import njit

from queryveil.kernels.arrays import Floats, Int32s, Int64s


@njit(cache=True, nogil=True)
def _shared_weight(cells: Int64s, others: Int64s, weight: Floats) -> float:
    """Sum the weights of what two ascending lists have in common."""
    total, i, j = 0.0, 0, 0
    while i < len(cells) and j < len(others):
        if cells[i] == others[j]:
            total += weight[cells[i]]
            i += 1
            j += 1
        elif cells[i] < others[j]:
            i += 1
        else:
            j += 1
    return total


@njit(cache=True, nogil=True)
def most_alike(
    row_ptr: Int64s,
    cells: Int64s,
    other_ptr: Int64s,
    other_cells: Int64s,
    posting_ptr: Int64s,
    postings: Int32s,
    weight: Floats,
    most_looked_at: int,
) -> tuple[Int64s, Int32s]:
    """Give, for each row, the other rows that share the most weight with it, as compressed rows.

    A row is compared with those that share its rarest cell, and with those of its next rarest cells as long as no more
    than `most_looked_at` come together, or until nobody else can share as much. Cells of a row are ascending;
    `posting_ptr` and `postings` give the others by cell. A row without a cell in common has none.
    """
    n_rows, n_others = len(row_ptr) - 1, len(other_ptr) - 1
    seen_by = np.full(n_others, -1, np.int64)
    best = np.empty(n_others, np.int32)
    found_ptr = np.zeros(n_rows + 1, np.int64)
    found = np.empty(max(16, n_rows), np.int32)
    for row in range(n_rows):
        mine = cells[row_ptr[row] : row_ptr[row + 1]]
        taken = np.zeros(len(mine), np.bool_)
        n_looked_at, n_best, highest, left = 0, 0, 0.0, 0.0
        for cell in mine:
            if posting_ptr[cell + 1] > posting_ptr[cell]:
                left += weight[cell]
        while True:
            rarest, size = -1, 0
            for i in range(len(mine)):
                holders = posting_ptr[mine[i] + 1] - posting_ptr[mine[i]]
                if not taken[i] and holders > 0 and (rarest < 0 or holders < size):
                    rarest, size = i, holders
            if rarest < 0 or (n_looked_at > 0 and n_looked_at + size > most_looked_at):
                break
            # Whoever was not looked at has none of the cells taken so far.
            if left < highest - 1e-9:
                break
            taken[rarest] = True
            left -= weight[mine[rarest]]
            n_looked_at += size
            for j in range(posting_ptr[mine[rarest]], posting_ptr[mine[rarest] + 1]):
                other = postings[j]
                if seen_by[other] == row:
                    continue
                seen_by[other] = row
                alike = _shared_weight(mine, other_cells[other_ptr[other] : other_ptr[other + 1]], weight)
                if n_best == 0 or alike > highest + 1e-9:
                    highest, n_best = alike, 0
                if alike > highest - 1e-9:
                    best[n_best] = other
                    n_best += 1
        while found_ptr[row] + n_best > len(found):
            found = np.concatenate((found, np.empty(len(found), np.int32)))
        found[found_ptr[row] : found_ptr[row] + n_best] = best[:n_best]
        found_ptr[row + 1] = found_ptr[row] + n_best
    return found_ptr, found[: found_ptr[-1]].copy()
