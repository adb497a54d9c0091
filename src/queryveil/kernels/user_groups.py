"""Groups of users who have alike shares: the nearest are found by the cells that they have in common."""

from __future__ import annotations

import numpy as np
from numba import njit

from queryveil.kernels.arrays import Floats, Int32s, Int64s


@njit(cache=True, nogil=True)
def form_groups(
    order: Int64s,
    ptr: Int64s,
    cells: Int32s,
    counts: Int64s,
    n_rows: Int64s,
    post_ptr: Int64s,
    posts: Int64s,
    k: int,
) -> tuple[Int32s, Int64s]:
    """Give each user's group and each group's seed; users left over, fewer than k, have the group -1.

    By falling number of rows, the `order`, each user that is still free is a seed and takes the k-1 free users nearest
    to it. Users who have no cell in common with the seed are equally far: of these it takes the ones with most rows,
    which have no more than it has. `posts` are the places in `cells` of each cell and are used up.
    """
    n_users = len(order)
    entry_user = np.empty(len(cells), np.int64)
    for user in range(n_users):
        entry_user[ptr[user] : ptr[user + 1]] = user
    post_end = post_ptr[1:].copy()
    group_of = np.full(n_users, -1, np.int32)
    seeds = np.empty(n_users // k, np.int64)
    overlap = np.zeros(n_users, np.int64)
    touched = np.empty(n_users, np.int64)
    best, best_value = np.empty(k - 1, np.int64), np.empty(k - 1)
    n_groups = 0
    for start in range(n_users):
        seed = order[start]
        if n_groups == len(seeds):
            break
        if group_of[seed] >= 0:
            continue
        seeds[n_groups] = seed
        group_of[seed] = n_groups
        n_touched = 0
        for i in range(ptr[seed], ptr[seed + 1]):
            cell, own = cells[i], counts[i]
            end = post_ptr[cell]
            for j in range(post_ptr[cell], post_end[cell]):
                user = entry_user[posts[j]]
                if group_of[user] >= 0:
                    continue
                posts[end] = posts[j]
                end += 1
                if overlap[user] == 0:
                    touched[n_touched] = user
                    n_touched += 1
                overlap[user] += min(own * n_rows[user], counts[posts[j]] * n_rows[seed])
            post_end[cell] = end
        n_best = 0
        for i in range(n_touched):
            user = touched[i]
            n_best = _insert(user, overlap[user] / n_rows[user], best, best_value, n_best, n_rows)
            overlap[user] = 0
        for i in range(n_best):
            group_of[best[i]] = n_groups
        n_missing = k - 1 - n_best
        place = start
        while n_missing > 0:
            if group_of[order[place]] < 0:
                group_of[order[place]] = n_groups
                n_missing -= 1
            place += 1
        n_groups += 1
    return group_of, seeds


@njit(cache=True, nogil=True)
def _insert(user: int, value: float, best: Int64s, best_value: Floats, n_best: int, n_rows: Int64s) -> int:
    """Keep the best: by falling value, then by falling number of rows, then by number."""
    place = n_best
    while place > 0:
        other = best[place - 1]
        if best_value[place - 1] > value:
            break
        if best_value[place - 1] == value and (
            n_rows[other] > n_rows[user] or (n_rows[other] == n_rows[user] and other < user)
        ):
            break
        place -= 1
    if place == len(best):
        return n_best
    n_best = min(n_best + 1, len(best))
    for i in range(n_best - 1, place, -1):
        best[i], best_value[i] = best[i - 1], best_value[i - 1]
    best[place], best_value[place] = user, value
    return n_best
