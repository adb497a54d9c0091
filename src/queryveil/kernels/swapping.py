"""The draw that brings a waiting user and a waiting query together, and the rules of when it takes place."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from queryveil.kernels.arrays import Int8s, Int64s, UInt64s
from queryveil.kernels.issued import has, pair_hash
from queryveil.kernels.waiting import ISSUERS, NEEDED, SIZE, USERS, Waiting, drop_oldest, join, leave

TRIES = 8
MAX_CHECKS = 4096
"""No further query is tried for a pair once so many pairs were looked at: the pool waits for better ones instead."""
NUMBERS_NEEDED = TRIES + 1 + math.isqrt(MAX_CHECKS)
"""The most random numbers that one release takes: of n queries no more than n are tried, nor than MAX_CHECKS / n."""

_HALF = np.uint64(32)


class Arrivals(NamedTuple):
    """Events in their order: the pool, the hashes of user and text, and the row of the first user and query."""

    pool: Int8s
    user_hash: UInt64s
    text_hash: UInt64s
    first_user_row: int
    first_query_row: int


class Rules(NamedTuple):
    """The settings of all pools."""

    n_distinct: int
    growth: float
    max_pool: int


class Given(NamedTuple):
    """What was released: the row of the query, that of the user it is given to, the arrival that set it free."""

    query_row: Int64s
    user_row: Int64s
    arrival: Int64s


@njit(cache=True, nogil=True)
def _below(number: np.uint64, n: int) -> int:
    """Give a number below n for a random one (multiply and shift)."""
    return np.int64(((number >> _HALF) * np.uint64(n)) >> _HALF)  # type: ignore[return-value]


@njit(cache=True, nogil=True)
def _fits(user: np.uint64, text: np.uint64, old: UInt64s, new: UInt64s) -> bool:
    """Tell whether a user may be given a text: whoever issued it may not."""
    pair = pair_hash(user, text)
    return not has(new, pair) and not has(old, pair)


@njit(cache=True, nogil=True)
def draw(waiting: Waiting, pool: int, old: UInt64s, new: UInt64s, numbers: UInt64s, at: int) -> tuple[int, int, int]:
    """Draw a query and, of those who wait and never issued it, a user; give both places and how many numbers it took.

    If there is nobody for that query another one is drawn, each as likely. (-1, -1) if nobody is found.
    """
    n = waiting.totals[pool, SIZE]
    users, texts = waiting.user_hash[pool], waiting.text_hash[pool]
    query = _below(numbers[at], n)
    for t in range(TRIES):
        user = _below(numbers[at + 1 + t], n)
        if _fits(users[user], texts[query], old, new):
            return query, user, t + 2
    order, place = np.arange(n), query
    n_taken, n_checks = TRIES + 1, 0
    for step in range(n):
        order[step], order[place] = order[place], order[step]
        query = order[step]
        n_fit = 0
        for user in range(n):
            n_fit += _fits(users[user], texts[query], old, new)
        if n_fit:
            nth = _below(numbers[at + n_taken], n_fit)
            for user in range(n):
                if _fits(users[user], texts[query], old, new):
                    if nth == 0:
                        return query, user, n_taken + 1
                    nth -= 1
        n_checks += n
        if n_checks >= MAX_CHECKS or step + 1 == n:
            break
        place = step + 1 + _below(numbers[at + n_taken], n - step - 1)
        n_taken += 1
    return -1, -1, n_taken


@njit(cache=True, nogil=True)
def swap(
    arrivals: Arrivals, first: int, waiting: Waiting, rules: Rules, old: UInt64s, new: UInt64s,
    numbers: UInt64s, given: Given, n_given: int,
) -> tuple[int, int, int, int]:  # fmt: skip
    """Let events arrive, from the one numbered `first` on, and release at most one pair at each.

    Gives the arrival at which it stopped, as numbers or room ran out; how many pairs were released so far; how many
    numbers were taken; how many events were suppressed.
    """
    n_taken, n_suppressed = 0, 0
    n_arrivals, capacity = len(arrivals.pool), waiting.user_row.shape[1]
    for i in range(first, n_arrivals):
        pool = int(arrivals.pool[i])
        if n_taken + NUMBERS_NEEDED > len(numbers) or waiting.totals[pool, SIZE] == capacity:
            return i, n_given, n_taken, n_suppressed
        user, text = arrivals.user_hash[i], arrivals.text_hash[i]
        join(waiting, pool, arrivals.first_user_row + i, arrivals.first_query_row + i, user, text, user)
        size, n_users, n_issuers, needed = waiting.totals[pool]
        if size >= needed:
            query_place = -1
            if n_users >= rules.n_distinct and n_issuers >= rules.n_distinct:
                query_place, user_place, n = draw(waiting, pool, old, new, numbers, n_taken)
                n_taken += n
                if query_place >= 0:
                    given.query_row[n_given] = waiting.query_row[pool, query_place]
                    given.user_row[n_given] = waiting.user_row[pool, user_place]
                    given.arrival[n_given] = i
                    n_given += 1
                    leave(waiting, pool, query_place, user_place)
                    continue
            # Paper: if all users are the same, k grows. Differs: also if nobody is found who never issued a query.
            if n_users == 1 or (n_users >= rules.n_distinct and n_issuers >= rules.n_distinct):
                grown = max(needed + 1, np.int64(math.ceil(needed * rules.growth)))
                waiting.totals[pool, NEEDED] = min(grown, rules.max_pool)
        if size > rules.max_pool:
            drop_oldest(waiting, pool)
            n_suppressed += 1
    return n_arrivals, n_given, n_taken, n_suppressed


@njit(cache=True, nogil=True)
def release_rest(
    pool: int, waiting: Waiting, rules: Rules, k: int, old: UInt64s, new: UInt64s,
    numbers: UInt64s, given: Given, n_given: int,
) -> tuple[bool, int, int]:  # fmt: skip
    """Release from a pool while it holds k events of enough users; k is as asked for, not as grown.

    Gives whether it is done (else the numbers ran out), how many pairs were released so far, how many numbers it took.
    """
    n_taken = 0
    while True:
        totals = waiting.totals[pool]
        if totals[SIZE] < k or totals[USERS] < rules.n_distinct or totals[ISSUERS] < rules.n_distinct:
            return True, n_given, n_taken
        if n_taken + NUMBERS_NEEDED > len(numbers):
            return False, n_given, n_taken
        query_place, user_place, n = draw(waiting, pool, old, new, numbers, n_taken)
        n_taken += n
        if query_place < 0:
            return True, n_given, n_taken
        given.query_row[n_given] = waiting.query_row[pool, query_place]
        given.user_row[n_given] = waiting.user_row[pool, user_place]
        n_given += 1
        leave(waiting, pool, query_place, user_place)
