"""Kernels of the attacks on swap: pools rebuilt row by row."""

from math import ceil

import numpy as np

from queryveil.data import Floats, Int32s, Int64s
from queryveil.kernels import njit

_RANDOM, _MOST_WAITING, _MOST_SO_FAR = 1, 2, 3
"""The numbers of `Choice`; any other stands for the product."""


@njit(cache=True, nogil=True)
def rebuild(
    category: Int32s,
    pair: Int32s,
    draws: Floats,
    n_categories: int,
    n_pairs: int,
    k: int,
    growth: float,
    choice: int,
    grows: bool,
) -> tuple[Int64s, Int64s, Int64s]:
    """Return the row that each guess takes its user from, the row of its query, and the final k of every category.

    `pair` numbers a row's user and category, so that one user has another number in another category. Each row has two
    draws from [0, 1): for the user, and for the query. Without `grows` a full pool is drawn from even if all its users
    are the same.
    """
    n_rows = len(category)
    k_now = np.full(n_categories, k, np.int64)
    size = np.zeros(n_categories, np.int64)
    n_users = np.zeros(n_categories, np.int64)
    users = [np.empty(k, np.int64) for _ in range(n_categories)]
    queries = [np.empty(k, np.int64) for _ in range(n_categories)]
    waiting, so_far = np.zeros(n_pairs, np.int32), np.zeros(n_pairs, np.int32)
    seen = np.full(n_pairs, -1, np.int64)
    guessed_user, guessed_query = np.empty(n_rows, np.int64), np.empty(n_rows, np.int64)
    n_guessed = 0
    for row in range(n_rows):
        c, who = category[row], pair[row]
        users[c][size[c]], queries[c][size[c]] = row, row
        size[c] += 1
        n_users[c] += waiting[who] == 0
        waiting[who] += 1
        so_far[who] += 1
        # Paper: algorithm 3, line 5. It asks for exactly k; a pool grows by one row at a time, so it is never passed.
        if size[c] < k_now[c]:
            continue
        if grows and n_users[c] < 2:
            k_now[c] = ceil(k_now[c] * growth)
            if k_now[c] > len(users[c]):
                users[c], queries[c] = _longer(users[c], k_now[c]), _longer(queries[c], k_now[c])
            continue
        at = _choose(users[c], size[c], pair, waiting, so_far, seen, row, choice, draws[row, 0])
        query_at = int(draws[row, 1] * size[c])
        taken = users[c][at]
        guessed_user[n_guessed], guessed_query[n_guessed] = taken, queries[c][query_at]
        n_guessed += 1
        waiting[pair[taken]] -= 1
        n_users[c] -= waiting[pair[taken]] == 0
        size[c] -= 1
        users[c][at], queries[c][query_at] = users[c][size[c]], queries[c][size[c]]
    return guessed_user[:n_guessed].copy(), guessed_query[:n_guessed].copy(), k_now


@njit(cache=True, nogil=True)
def _choose(
    users: Int64s,
    size: int,
    pair: Int32s,
    waiting: Int32s,
    so_far: Int32s,
    seen: Int64s,
    row: int,
    choice: int,
    draw: float,
) -> int:
    """Return the place of the user that is taken; ties are decided by the draw, each user as likely."""
    if choice == _RANDOM:
        return int(draw * size)
    places = np.empty(size, np.int64)
    best, n_best = -1, 0
    for i in range(size):
        who = pair[users[i]]
        if seen[who] == row:
            continue
        seen[who] = row
        score = 1 if choice == _MOST_SO_FAR else int(waiting[who])
        score *= 1 if choice == _MOST_WAITING else int(so_far[who])
        if score > best:
            best, n_best = score, 0
        if score == best:
            places[n_best] = i
            n_best += 1
    return int(places[int(draw * n_best)])


@njit(cache=True, nogil=True)
def _longer(values: Int64s, least: int) -> Int64s:
    longer = np.empty(max(least, 2 * len(values)), np.int64)
    longer[: len(values)] = values
    return longer
