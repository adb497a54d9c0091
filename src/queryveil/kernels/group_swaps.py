"""Users swapped between groups while the rows to add and to suppress become fewer."""

from __future__ import annotations

import numpy as np
from numba import njit

from queryveil.kernels.arrays import Int32s, Int64s
from queryveil.kernels.group_costs import clear, edits, multiple, spread

_N_TRIED = 4
"""Groups that each user is tried in."""


@njit(cache=True, nogil=True)
def swap_users(
    order: Int64s,
    group_of: Int32s,
    member_ptr: Int64s,
    members: Int64s,
    ptr: Int64s,
    cells: Int32s,
    counts: Int64s,
    n_rows: Int64s,
    centroid_ptr: Int64s,
    centroid_cells: Int32s,
    centroid_counts: Int64s,
    post_ptr: Int64s,
    post_group: Int32s,
    post_count: Int64s,
) -> int:
    """Swap users between groups, in place, where that costs less; centroids stay. Give how many rows it saves.

    The posts are, for each cell, the groups whose centroid has it and its count there. By `order` each user is tried in
    the groups whose centroids would cost it least, in the stead of each of their members.
    """
    n_groups = len(member_ptr) - 1
    place_of = np.empty(len(group_of), np.int64)
    place_of[members] = np.arange(len(members))
    step = np.empty(n_groups, np.int64)
    overlap = np.zeros(n_groups, np.int64)
    touched = np.empty(n_groups, np.int64)
    tried, tried_cost = np.empty(_N_TRIED, np.int64), np.empty(_N_TRIED, np.int64)
    dense = np.zeros(len(post_ptr) - 1, np.int64)
    now = np.zeros(len(group_of), np.int64)
    for group in range(n_groups):
        step[group] = spread(group, centroid_ptr, centroid_cells, centroid_counts, dense)
        for user in members[member_ptr[group] : member_ptr[group + 1]]:
            now[user] = edits(user, step[group], ptr, cells, counts, n_rows, dense)
        clear(group, centroid_ptr, centroid_cells, dense)

    saved = 0
    for user in order:
        home = group_of[user]
        if now[user] == 0:
            continue
        n_touched = 0
        for i in range(ptr[user], ptr[user + 1]):
            for j in range(post_ptr[cells[i]], post_ptr[cells[i] + 1]):
                group = post_group[j]
                if overlap[group] == 0:
                    touched[n_touched] = group
                    n_touched += 1
                overlap[group] += min(counts[i], multiple(n_rows[user], step[group]) * post_count[j])
        n_best = 0
        for i in range(n_touched):
            group = touched[i]
            cost = n_rows[user] + multiple(n_rows[user], step[group]) * step[group] - 2 * overlap[group]
            overlap[group] = 0
            if cost >= now[user] or group == home:
                continue
            place = n_best
            while place > 0 and tried_cost[place - 1] > cost:
                place -= 1
            if place < _N_TRIED:
                n_best = min(n_best + 1, _N_TRIED)
                for m in range(n_best - 1, place, -1):
                    tried[m], tried_cost[m] = tried[m - 1], tried_cost[m - 1]
                tried[place], tried_cost[place] = group, cost
        if n_best == 0:
            continue
        spread(home, centroid_ptr, centroid_cells, centroid_counts, dense)
        best, best_saved, best_cost, best_users = -1, 0, 0, 0
        for i in range(n_best):
            group = tried[i]
            for other in members[member_ptr[group] : member_ptr[group + 1]]:
                gain = now[user] - tried_cost[i] + now[other]
                if gain <= best_saved:
                    continue
                cost = edits(other, step[home], ptr, cells, counts, n_rows, dense)
                if gain - cost > best_saved:
                    best, best_saved, best_cost, best_users = other, gain - cost, cost, tried_cost[i]
        clear(home, centroid_ptr, centroid_cells, dense)
        if best >= 0:
            there = group_of[best]
            group_of[user], group_of[best] = there, home
            members[place_of[user]], members[place_of[best]] = best, user
            place_of[user], place_of[best] = place_of[best], place_of[user]
            now[user], now[best] = best_users, best_cost
            saved += best_saved
    return saved
