"""Kernels for pools in which users and queries wait: counts, distinct users and order of arrival.

A pool is a row of each array of `Waiting`; its first `size` places are taken. Users and queries are numbers of rows
that rise with their arrival. Who leaves makes a gap that the last one fills, so places say nothing of age: those of
each pool are also a chain from the oldest to the newest.
"""

import math
from typing import NamedTuple

import numpy as np

from queryveil.data import Int8s, Int32s, Int64s, UInt64s
from queryveil.data.rows import order_of
from queryveil.kernels import njit
from queryveil.methods.swap._issued import has, pair_hash

SIZE, USERS, ISSUERS, NEEDED = 0, 1, 2, 3
_HALF = np.uint64(32)
_NOBODY = -1
_OLDER, _NEWER = 0, 1
_OLDEST, _NEWEST = 0, 1


class Waiting(NamedTuple):
    """What waits in each pool: users and queries by row and hash, and how many times each user is there.

    `user_keys` and `user_counts` are a hash table of the waiting users, `issuer_keys` and `issuer_counts` one of those
    who issued the waiting queries. `user_chain` and `query_chain` have for each place the next older and the next newer
    one, `user_ends` and `query_ends` the oldest and the newest. `totals` has for each pool its size, the distinct
    users, the distinct issuers and the size it must have (k, grown).
    """

    user_row: np.ndarray
    user_hash: np.ndarray
    query_row: np.ndarray
    text_hash: np.ndarray
    issuer_hash: np.ndarray
    user_keys: np.ndarray
    user_counts: np.ndarray
    issuer_keys: np.ndarray
    issuer_counts: np.ndarray
    user_chain: np.ndarray
    user_ends: np.ndarray
    query_chain: np.ndarray
    query_ends: np.ndarray
    totals: Int64s


def no_one_waiting(n_pools: int, *, capacity: int, needed: int) -> Waiting:
    """Return empty pools with room for `capacity`, a power of two."""
    rows, table, chain = (n_pools, capacity), (n_pools, 2 * capacity), (n_pools, capacity, 2)
    totals = np.zeros((n_pools, 4), np.int64)
    totals[:, NEEDED] = needed
    return Waiting(
        np.zeros(rows, np.int64), np.zeros(rows, np.uint64),
        np.zeros(rows, np.int64), np.zeros(rows, np.uint64), np.zeros(rows, np.uint64),
        np.zeros(table, np.uint64), np.zeros(table, np.int32),
        np.zeros(table, np.uint64), np.zeros(table, np.int32),
        np.zeros(chain, np.int32), np.full((n_pools, 2), _NOBODY, np.int32),
        np.zeros(chain, np.int32), np.full((n_pools, 2), _NOBODY, np.int32),
        totals,
    )  # fmt: skip


# Arrays are handed on whole: making a view of one pool takes longer than what is done to it.
@njit(cache=True, nogil=True)
def count_in(keys: UInt64s, counts: Int32s, pool: int, key: np.uint64) -> int:
    """Count a key once more; give 1 if it is new."""
    mask = keys.shape[1] - 1
    slot = np.int64(key >> _HALF) & mask
    while counts[pool, slot] and keys[pool, slot] != key:
        slot = (slot + 1) & mask
    keys[pool, slot] = key
    counts[pool, slot] += 1
    return 1 if counts[pool, slot] == 1 else 0


@njit(cache=True, nogil=True)
def count_out(keys: UInt64s, counts: Int32s, pool: int, key: np.uint64) -> int:
    """Count a key once less; give 1 if that was the last."""
    mask = keys.shape[1] - 1
    slot = np.int64(key >> _HALF) & mask
    while keys[pool, slot] != key or counts[pool, slot] == 0:
        slot = (slot + 1) & mask
    counts[pool, slot] -= 1
    if counts[pool, slot]:
        return 0
    # Those behind the gap move up, or a search would end before it finds them.
    gap, slot = slot, (slot + 1) & mask
    while counts[pool, slot]:
        home = np.int64(keys[pool, slot] >> _HALF) & mask
        if ((slot - home) & mask) >= ((slot - gap) & mask):
            keys[pool, gap], counts[pool, gap] = keys[pool, slot], counts[pool, slot]
            counts[pool, slot] = 0
            gap = slot
        slot = (slot + 1) & mask
    return 1


@njit(cache=True, nogil=True)
def _chain_last(chain: np.ndarray, ends: Int32s, pool: int, place: int) -> None:
    """Make a place the newest."""
    before = ends[pool, _NEWEST]
    chain[pool, place, _OLDER], chain[pool, place, _NEWER] = before, _NOBODY
    if before == _NOBODY:
        ends[pool, _OLDEST] = place
    else:
        chain[pool, before, _NEWER] = place
    ends[pool, _NEWEST] = place


@njit(cache=True, nogil=True)
def _unchain(chain: np.ndarray, ends: Int32s, pool: int, place: int, last: int) -> None:
    """Take a place out of the chain; whoever is at the `last` place moves there."""
    older, newer = chain[pool, place, _OLDER], chain[pool, place, _NEWER]
    if older == _NOBODY:
        ends[pool, _OLDEST] = newer
    else:
        chain[pool, older, _NEWER] = newer
    if newer == _NOBODY:
        ends[pool, _NEWEST] = older
    else:
        chain[pool, newer, _OLDER] = older
    if place == last:
        return
    older, newer = chain[pool, last, _OLDER], chain[pool, last, _NEWER]
    chain[pool, place, _OLDER], chain[pool, place, _NEWER] = older, newer
    if older == _NOBODY:
        ends[pool, _OLDEST] = place
    else:
        chain[pool, older, _NEWER] = place
    if newer == _NOBODY:
        ends[pool, _NEWEST] = place
    else:
        chain[pool, newer, _OLDER] = place


@njit(cache=True, nogil=True)
def join(
    waiting: Waiting, pool: int, user_row: int, query_row: int, user: np.uint64, text: np.uint64, issuer: np.uint64
) -> None:
    """Put a user and a query at the end of a pool, as the newest."""
    totals = waiting.totals
    place = totals[pool, SIZE]
    waiting.user_row[pool, place] = user_row
    waiting.user_hash[pool, place] = user
    waiting.query_row[pool, place] = query_row
    waiting.text_hash[pool, place] = text
    waiting.issuer_hash[pool, place] = issuer
    _chain_last(waiting.user_chain, waiting.user_ends, pool, place)
    _chain_last(waiting.query_chain, waiting.query_ends, pool, place)
    totals[pool, SIZE] += 1
    totals[pool, USERS] += count_in(waiting.user_keys, waiting.user_counts, pool, user)
    totals[pool, ISSUERS] += count_in(waiting.issuer_keys, waiting.issuer_counts, pool, issuer)


@njit(cache=True, nogil=True)
def leave(waiting: Waiting, pool: int, query: int, user: int) -> None:
    """Take the query at one place and the user at another out of a pool."""
    totals = waiting.totals
    gone = waiting.user_hash[pool, user]
    issuer = waiting.issuer_hash[pool, query]
    totals[pool, SIZE] -= 1
    totals[pool, USERS] -= count_out(waiting.user_keys, waiting.user_counts, pool, gone)
    totals[pool, ISSUERS] -= count_out(waiting.issuer_keys, waiting.issuer_counts, pool, issuer)
    last = totals[pool, SIZE]
    _unchain(waiting.user_chain, waiting.user_ends, pool, user, last)
    _unchain(waiting.query_chain, waiting.query_ends, pool, query, last)
    waiting.user_row[pool, user] = waiting.user_row[pool, last]
    waiting.user_hash[pool, user] = waiting.user_hash[pool, last]
    waiting.query_row[pool, query] = waiting.query_row[pool, last]
    waiting.text_hash[pool, query] = waiting.text_hash[pool, last]
    waiting.issuer_hash[pool, query] = waiting.issuer_hash[pool, last]


@njit(cache=True, nogil=True)
def drop_oldest(waiting: Waiting, pool: int) -> None:
    """Take the oldest user and the oldest query out of a pool."""
    leave(waiting, pool, int(waiting.query_ends[pool, _OLDEST]), int(waiting.user_ends[pool, _OLDEST]))


@njit(cache=True, nogil=True)
def join_all(
    waiting: Waiting, pool: Int8s, user_row: Int64s, query_row: Int64s, user: UInt64s, text: UInt64s, issuer: UInt64s
) -> None:
    """Put users and queries at the ends of their empty pools, in their order; their rows say who is older."""
    for i in range(len(pool)):
        join(waiting, int(pool[i]), user_row[i], query_row[i], user[i], text[i], issuer[i])
    for each in range(len(waiting.totals)):
        n = waiting.totals[each, SIZE]
        _chain_by_age(waiting.user_chain, waiting.user_ends, each, waiting.user_row[each, :n])
        _chain_by_age(waiting.query_chain, waiting.query_ends, each, waiting.query_row[each, :n])


@njit(cache=True, nogil=True)
def _chain_by_age(chain: np.ndarray, ends: Int32s, pool: int, rows: Int64s) -> None:
    ends[pool, :] = _NOBODY
    for place in order_of(rows):
        _chain_last(chain, ends, pool, place)


def move_all(waiting: Waiting, roomier: Waiting) -> None:
    """Put everybody into empty pools with more room, in the same places."""
    roomier.totals[:, NEEDED] = waiting.totals[:, NEEDED]
    taken = np.arange(waiting.user_row.shape[1]) < waiting.totals[:, SIZE, None]
    join_all(
        roomier, np.nonzero(taken)[0].astype(np.int8), waiting.user_row[taken], waiting.query_row[taken],
        waiting.user_hash[taken], waiting.text_hash[taken], waiting.issuer_hash[taken],
    )  # fmt: skip


TRIES = 8
MAX_CHECKS = 4096
"""No further query is tried for a pair once so many pairs were looked at: the pool waits for better ones instead."""
NUMBERS_NEEDED = TRIES + 1 + math.isqrt(MAX_CHECKS)
"""The most random numbers that one release takes: of n queries no more than n are tried, nor than MAX_CHECKS / n."""


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
    """Return a number below n for a random one (multiply and shift)."""
    return np.int64(((number >> _HALF) * np.uint64(n)) >> _HALF)  # type: ignore[return-value]


@njit(cache=True, nogil=True)
def _fits(user: np.uint64, text: np.uint64, old: UInt64s, new: UInt64s) -> bool:
    """Return whether a user may be given a text: whoever issued it may not."""
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
