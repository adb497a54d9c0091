"""Centroids of groups: not one of the users, but whatever counts cost the group least."""

from __future__ import annotations

import numpy as np
from numba import njit

from queryveil.kernels.arrays import Int32s, Int64s
from queryveil.kernels.group_costs import multiple
from queryveil.kernels.sorting import order_of, sort_in_place

_N_TOTALS = 12
"""How many sums of counts are tried for a group at most."""


@njit(cache=True, nogil=True)
def choose_centroids(
    member_ptr: Int64s, members: Int64s, ptr: Int64s, cells: Int32s, counts: Int64s, n_rows: Int64s
) -> tuple[Int64s, Int32s, Int64s, Int64s]:
    """Give each group's centroid as compressed rows of cells and counts, and the rows to add and to suppress for it.

    Every user gets the multiple of the centroid that comes nearest to its rows. For a given sum of the centroid these
    multiples are known, and what another row in a cell adds to what users can keep becomes less with each one. So
    filling the cells by what they add, most first, keeps most; several sums are tried.
    """
    n_groups = len(member_ptr) - 1
    out_ptr = np.zeros(n_groups + 1, np.int64)
    costs = np.empty(n_groups, np.int64)
    out_cells, out_counts = np.empty(len(cells), np.int32), np.empty(len(cells), np.int64)
    for group in range(n_groups):
        mine = members[member_ptr[group] : member_ptr[group + 1]]
        rows = np.empty(len(mine), np.int64)
        for i in range(len(mine)):
            rows[i] = n_rows[mine[i]]
        owner, cell, count = _entries(mine, ptr, cells, counts)
        best, best_cost = np.zeros(len(cell), np.int64), -1
        for total in _totals(rows):
            found = _fill(total, rows, owner, cell, count)
            if found[0] < 0:
                continue
            cost = _cost(found, rows, owner, cell, count)
            if best_cost < 0 or cost < best_cost:
                best, best_cost = found, cost
        n_out = out_ptr[group]
        for i in range(len(cell)):
            if best[i] > 0:
                out_cells[n_out], out_counts[n_out] = cell[i], best[i]
                n_out += 1
        out_ptr[group + 1], costs[group] = n_out, best_cost
    return out_ptr, out_cells[: out_ptr[n_groups]].copy(), out_counts[: out_ptr[n_groups]].copy(), costs


@njit(cache=True, nogil=True)
def _entries(mine: Int64s, ptr: Int64s, cells: Int32s, counts: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """Give who of the group has how many rows in which cell, by cell."""
    n = 0
    for user in mine:
        n += ptr[user + 1] - ptr[user]
    owner, cell, count = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    n = 0
    for i in range(len(mine)):
        for j in range(ptr[mine[i]], ptr[mine[i] + 1]):
            owner[n], cell[n], count[n] = i, cells[j], counts[j]
            n += 1
    order = order_of(cell)
    return owner[order], cell[order], count[order]


@njit(cache=True, nogil=True)
def _totals(rows: Int64s) -> Int64s:
    """Give the sums to try: what members have, from few to many, whole, half and a third of it."""
    sizes = rows.copy()
    sort_in_place(sizes)
    n_sizes = min(len(sizes), _N_TOTALS // 3)
    out = np.empty(3 * n_sizes, np.int64)
    for i in range(n_sizes):
        size = sizes[i * (len(sizes) - 1) // max(1, n_sizes - 1)]
        out[3 * i], out[3 * i + 1], out[3 * i + 2] = size, max(1, size // 2), max(1, size // 3)
    sort_in_place(out)
    n = 0
    for i in range(len(out)):
        if n == 0 or out[i] != out[n - 1]:
            out[n] = out[i]
            n += 1
    return out[:n]


@njit(cache=True, nogil=True)
def _fill(total: int, rows: Int64s, owner: Int64s, cell: Int64s, count: Int64s) -> Int64s:
    """Give the counts of the centroid of this sum that keeps most rows, over their greatest common divisor.

    They stand beside the first entry of each cell. A sum that has no use for all of its rows gives -1 there.
    """
    chosen = np.zeros(len(cell), np.int64)
    times = np.empty(len(rows), np.int64)
    for i in range(len(rows)):
        times[i] = multiple(rows[i], total)
    n_most = 0
    for i in range(len(cell)):
        n_most += min(total, -(-count[i] // times[owner[i]]))
    gains, of_cell = np.empty(n_most, np.int64), np.empty(n_most, np.int64)
    n, first = 0, 0
    while first < len(cell):
        last = first
        while last < len(cell) and cell[last] == cell[first]:
            last += 1
        for n_before in range(total):
            gain = 0
            for i in range(first, last):
                step = times[owner[i]]
                gain += min(count[i], step * (n_before + 1)) - min(count[i], step * n_before)
            if gain == 0:
                break
            gains[n], of_cell[n] = gain, first
            n += 1
        first = last
    if n < total:
        chosen[0] = -1
        return chosen
    order = order_of(-gains[:n])
    for i in range(total):
        chosen[of_cell[order[i]]] += 1
    divisor = 0
    for i in range(len(cell)):
        a, b = divisor, chosen[i]
        while b:
            a, b = b, a % b
        divisor = a
    return chosen // divisor


@njit(cache=True, nogil=True)
def _cost(chosen: Int64s, rows: Int64s, owner: Int64s, cell: Int64s, count: Int64s) -> int:
    """Give the rows to add to and to suppress of the group's users for a centroid."""
    step = chosen.sum()
    cost = 0
    for i in range(len(rows)):
        cost += rows[i] + multiple(rows[i], step) * step
    of_cell = 0
    for i in range(len(cell)):
        if i == 0 or cell[i] != cell[i - 1]:
            of_cell = chosen[i]
        cost -= 2 * min(count[i], multiple(rows[owner[i]], step) * of_cell)
    return int(cost)
