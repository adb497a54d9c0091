"""What all users of a group have whole, chosen so that they keep many rows."""

from __future__ import annotations

import numpy as np
from numba import njit

from queryveil.kernels.arrays import Int32s, Int64s
from queryveil.kernels.sorting import order_of


@njit(cache=True, nogil=True)
def choose_profiles(
    member_ptr: Int64s, members: Int64s, ptr: Int64s, cells: Int32s, counts: Int64s, n_cells: int
) -> tuple[Int64s, Int32s, Int64s]:
    """Give each group's profile, counts of cells that each member has once at least, as compressed rows.

    Of three ways it takes the one that keeps most rows: the least counts of the members, each of the cells that they
    have most of once, or one cell alone. A group without a cell in common has an empty profile.
    """
    n_groups = len(member_ptr) - 1
    out_ptr = np.zeros(n_groups + 1, np.int64)
    longest = 0
    for group in range(n_groups):
        first = members[member_ptr[group]] if member_ptr[group] < member_ptr[group + 1] else -1
        longest += ptr[first + 1] - ptr[first] if first >= 0 else 0
    out, amount = np.empty(longest, np.int32), np.empty(longest, np.int64)
    n_sharing, place = np.zeros(n_cells, np.int64), np.empty(n_cells, np.int64)
    n = 0
    for group in range(n_groups):
        mine = members[member_ptr[group] : member_ptr[group + 1]]
        if len(mine):
            shared, table = _table(mine, ptr, cells, counts, n_sharing, place)
            if len(shared):
                profile = _best_profile(table)
                for j in range(len(shared)):
                    if profile[j] > 0:
                        out[n], amount[n] = shared[j], profile[j]
                        n += 1
        out_ptr[group + 1] = n
    return out_ptr, out[:n].copy(), amount[:n].copy()


@njit(cache=True, nogil=True)
def _table(
    mine: Int64s, ptr: Int64s, cells: Int32s, counts: Int64s, n_sharing: Int64s, place: Int64s
) -> tuple[Int32s, Int64s]:
    """Give the cells that all members have, ascending, and each member's counts there."""
    for user in mine:
        for i in range(ptr[user], ptr[user + 1]):
            n_sharing[cells[i]] += 1
    shared = cells[ptr[mine[0]] : ptr[mine[0] + 1]].copy()
    n_shared = 0
    for i in range(len(shared)):
        if n_sharing[shared[i]] == len(mine):
            place[shared[i]] = n_shared
            shared[n_shared] = shared[i]
            n_shared += 1
    table = np.empty((len(mine), n_shared), np.int64)
    for m in range(len(mine)):
        for i in range(ptr[mine[m]], ptr[mine[m] + 1]):
            if n_sharing[cells[i]] == len(mine):
                table[m, place[cells[i]]] = counts[i]
    for user in mine:
        for i in range(ptr[user], ptr[user + 1]):
            n_sharing[cells[i]] = 0
    return shared[:n_shared], table


@njit(cache=True, nogil=True)
def _best_profile(table: Int64s) -> Int64s:
    n_members, n_shared = table.shape
    least, total, divisor = np.empty(n_shared, np.int64), np.zeros(n_shared, np.int64), 0
    for j in range(n_shared):
        least[j] = table[:, j].min()
        total[j] = table[:, j].sum()
        a, b = divisor, least[j]
        while b:
            a, b = b, a % b
        divisor = a
    best = least // divisor
    kept = 0
    for m in range(n_members):
        times = table[m, 0] // best[0]
        for j in range(1, n_shared):
            times = min(times, table[m, j] // best[j])
        kept += times * best.sum()

    times_of = np.full(n_members, 2**62, np.int64)
    by_least = order_of(-least)
    n_ones = 0
    for length in range(1, n_shared + 1):
        kept_now = 0
        for m in range(n_members):
            times_of[m] = min(times_of[m], table[m, by_least[length - 1]])
            kept_now += times_of[m] * length
        if kept_now > kept:
            kept, n_ones = kept_now, length
    alone = np.argmax(total)
    if total[alone] > kept:
        best[:] = 0
        best[alone] = 1
    elif n_ones:
        best[:] = 0
        for i in range(n_ones):
            best[by_least[i]] = 1
    return best
