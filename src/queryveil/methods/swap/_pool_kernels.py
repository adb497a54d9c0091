"""Kernels for pools in which users and queries wait: counts, distinct users and order of arrival.

Users and queries of a pool wait apart, in queues: `2 * pool + USER` and `2 * pool + QUERY` are their rows in the arrays
of `Waiting`; the first `size` places of both are taken. Who leaves makes a gap that the last one fills, so places say
nothing of age: those of each queue are also a chain from the oldest to the newest.
"""

import math
from typing import NamedTuple

import numpy as np

from queryveil.data import Bools, Int8s, Int32s, Int64s, UInt64s
from queryveil.data.rows import order_of
from queryveil.kernels import njit
from queryveil.methods.swap._issued import has, pair_hash

USER, QUERY = 0, 1
SIZE, USERS, ISSUERS, NEEDED, LARGEST = 0, 1, 2, 3, 4
_HALF = np.uint64(32)
_OLDER, _NEWER = 0, 1


class Waiting(NamedTuple):
    """What waits in each pool.

    - row: the number of each user or query, which rises with arrival
    - person: the hash of each user, or of the user who issued the query
    - text: the hash of each query, by pool
    - keys, counts: a hash table of the persons of each queue, and how many times each is there
    - chain: the next older and the next newer place of each; behind the last place, the newest and the oldest
    - totals: of each pool its size, the distinct users, the distinct issuers, the size it must have (k, grown), and the
      largest that it had to have so far
    """

    row: Int64s
    person: UInt64s
    text: UInt64s
    keys: UInt64s
    counts: Int32s
    chain: Int32s
    totals: Int64s

    @property
    def capacity(self) -> int:
        """How many events a pool has room for."""
        return int(self.text.shape[1])

    @property
    def is_taken(self) -> Bools:
        """Which places of each pool are taken."""
        return np.asarray(np.arange(self.capacity) < self.totals[:, SIZE, None])

    def taken(self) -> tuple[Int8s, Int64s, Int64s, UInt64s, UInt64s, UInt64s]:
        """Return all that waits, place by place, as `join_all` takes it."""
        taken = self.is_taken
        pool = np.nonzero(taken)[0].astype(np.int8)
        user_row, query_row = self.row[USER::2][taken], self.row[QUERY::2][taken]
        user, issuer = self.person[USER::2][taken], self.person[QUERY::2][taken]
        return pool, user_row, query_row, user, self.text[taken], issuer


def no_one_waiting(n_pools: int, *, capacity: int, needed: Int64s | int) -> Waiting:
    """Return empty pools with room for `capacity`, a power of two."""
    places, table = (2 * n_pools, capacity), (2 * n_pools, 2 * capacity)
    totals = np.zeros((n_pools, 5), np.int64)
    totals[:, NEEDED] = totals[:, LARGEST] = needed
    return Waiting(
        row=np.zeros(places, np.int64),
        person=np.zeros(places, np.uint64),
        text=np.zeros((n_pools, capacity), np.uint64),
        keys=np.zeros(table, np.uint64),
        counts=np.zeros(table, np.int32),
        chain=np.full((2 * n_pools, capacity + 1, 2), capacity, np.int32),
        totals=totals,
    )


# Arrays are handed on whole: making a view of one pool takes longer than what is done to it.
@njit(cache=True, nogil=True)
def slot_of(keys: UInt64s, counts: Int32s | Int64s, table: int, key: np.uint64) -> int:
    """Return where a key stands in a hash table, or the free slot where it belongs."""
    mask = keys.shape[1] - 1
    slot = np.int64(key >> _HALF) & mask
    while counts[table, slot] and keys[table, slot] != key:
        slot = (slot + 1) & mask
    return int(slot)


@njit(cache=True, nogil=True)
def _count_out(keys: UInt64s, counts: Int32s, table: int, key: np.uint64) -> int:
    """Count a key that is there once less; give 1 if that was the last."""
    slot = slot_of(keys, counts, table, key)
    counts[table, slot] -= 1
    if counts[table, slot]:
        return 0
    # Those behind the gap move up, or a search would end before it finds them.
    mask = keys.shape[1] - 1
    gap, slot = slot, (slot + 1) & mask
    while counts[table, slot]:
        home = np.int64(keys[table, slot] >> _HALF) & mask
        if ((slot - home) & mask) >= ((slot - gap) & mask):
            keys[table, gap], counts[table, gap] = keys[table, slot], counts[table, slot]
            counts[table, slot] = 0
            gap = slot
        slot = (slot + 1) & mask
    return 1


@njit(cache=True, nogil=True)
def _chain_last(chain: Int32s, queue: int, place: int) -> None:
    """Make a place the newest."""
    end = chain.shape[1] - 1
    newest = chain[queue, end, _OLDER]
    chain[queue, place, _OLDER], chain[queue, place, _NEWER] = newest, end
    chain[queue, newest, _NEWER] = chain[queue, end, _OLDER] = place


@njit(cache=True, nogil=True)
def _unchain(chain: Int32s, queue: int, place: int, last: int) -> None:
    """Take a place out of the chain; whoever is at the `last` place moves there."""
    older, newer = chain[queue, place, _OLDER], chain[queue, place, _NEWER]
    chain[queue, older, _NEWER], chain[queue, newer, _OLDER] = newer, older
    if place != last:
        older, newer = chain[queue, last, _OLDER], chain[queue, last, _NEWER]
        chain[queue, place, _OLDER], chain[queue, place, _NEWER] = older, newer
        chain[queue, older, _NEWER] = chain[queue, newer, _OLDER] = place


@njit(cache=True, nogil=True)
def join(
    waiting: Waiting, pool: int, user_row: int, query_row: int, user: np.uint64, text: np.uint64, issuer: np.uint64
) -> None:
    """Put a user and a query at the end of a pool, as the newest."""
    waiting.text[pool, waiting.totals[pool, SIZE]] = text
    _join_queue(waiting, pool, USER, user_row, user)
    _join_queue(waiting, pool, QUERY, query_row, issuer)
    waiting.totals[pool, SIZE] += 1


@njit(cache=True, nogil=True)
def _join_queue(waiting: Waiting, pool: int, which: int, row: int, person: np.uint64) -> None:
    queue, place = 2 * pool + which, waiting.totals[pool, SIZE]
    waiting.row[queue, place], waiting.person[queue, place] = row, person
    _chain_last(waiting.chain, queue, place)
    slot = slot_of(waiting.keys, waiting.counts, queue, person)
    waiting.keys[queue, slot] = person
    waiting.counts[queue, slot] += 1
    waiting.totals[pool, USERS + which] += waiting.counts[queue, slot] == 1


@njit(cache=True, nogil=True)
def leave(waiting: Waiting, pool: int, query: int, user: int) -> None:
    """Take the query at one place and the user at another out of a pool."""
    waiting.totals[pool, SIZE] -= 1
    waiting.text[pool, query] = waiting.text[pool, waiting.totals[pool, SIZE]]
    _leave_queue(waiting, pool, USER, user)
    _leave_queue(waiting, pool, QUERY, query)


@njit(cache=True, nogil=True)
def _leave_queue(waiting: Waiting, pool: int, which: int, place: int) -> None:
    queue, last = 2 * pool + which, waiting.totals[pool, SIZE]
    gone = waiting.person[queue, place]
    waiting.totals[pool, USERS + which] -= _count_out(waiting.keys, waiting.counts, queue, gone)
    _unchain(waiting.chain, queue, place, last)
    waiting.row[queue, place] = waiting.row[queue, last]
    waiting.person[queue, place] = waiting.person[queue, last]


@njit(cache=True, nogil=True)
def drop_oldest(waiting: Waiting, pool: int) -> None:
    """Take the oldest user and the oldest query out of a pool."""
    user, query = waiting.chain[2 * pool : 2 * pool + 2, -1, _NEWER]
    leave(waiting, pool, query, user)


@njit(cache=True, nogil=True)
def join_all(
    waiting: Waiting, pool: Int8s, user_row: Int64s, query_row: Int64s, user: UInt64s, text: UInt64s, issuer: UInt64s
) -> None:
    """Put users and queries at the ends of their empty pools, in their order; their rows say who is older."""
    for i in range(len(pool)):
        join(waiting, int(pool[i]), user_row[i], query_row[i], user[i], text[i], issuer[i])
    for queue in range(len(waiting.row)):
        waiting.chain[queue, -1] = waiting.chain.shape[1] - 1
        for place in order_of(waiting.row[queue, : waiting.totals[queue // 2, SIZE]]):
            _chain_last(waiting.chain, queue, place)


def with_more_room(waiting: Waiting) -> Waiting:
    """Return pools with twice the room and everybody in the same places."""
    roomier = no_one_waiting(len(waiting.totals), capacity=2 * waiting.capacity, needed=waiting.totals[:, NEEDED])
    roomier.totals[:, LARGEST] = waiting.totals[:, LARGEST]
    join_all(roomier, *waiting.taken())
    return roomier


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
    """The settings of all pools; where they shrink, an arrival sets up to two pairs free, else one."""

    k: int
    n_distinct: int
    growth: float
    max_pool: int
    shrinks: bool


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
    users, texts = waiting.person[2 * pool + USER], waiting.text[pool]
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
def _release_one(
    waiting: Waiting, pool: int, arrival: int, old: UInt64s, new: UInt64s, numbers: UInt64s, n_taken: int,
    given: Int64s, n_given: int,
) -> tuple[int, int]:  # fmt: skip
    """Let a pair leave, if one is found; give how many pairs were released and how many numbers taken by now.

    `given` has of each pair the row of the query, that of the user it is given to, the arrival that set it free.
    """
    query, user, n = draw(waiting, pool, old, new, numbers, n_taken)
    if query >= 0:
        given[0, n_given] = waiting.row[2 * pool + QUERY, query]
        given[1, n_given] = waiting.row[2 * pool + USER, user]
        given[2, n_given] = arrival
        n_given += 1
        leave(waiting, pool, query, user)
    return n_given, n_taken + n


@njit(cache=True, nogil=True)
def swap(
    arrivals: Arrivals, first: int, waiting: Waiting, rules: Rules, old: UInt64s, new: UInt64s,
    numbers: UInt64s, given: Int64s, n_given: int,
) -> tuple[int, int, int, int]:  # fmt: skip
    """Let events arrive, from the one numbered `first` on, and release a pair at each, or two where pools shrink.

    Gives the arrival at which it stopped, as numbers or room ran out; how many pairs were released so far; how many
    numbers were taken; how many events were suppressed.
    """
    n_taken, n_suppressed, totals = 0, 0, waiting.totals
    n_arrivals, capacity, n_turns = len(arrivals.pool), waiting.text.shape[1], 2 if rules.shrinks else 1
    for i in range(first, n_arrivals):
        pool = int(arrivals.pool[i])
        if n_taken + n_turns * NUMBERS_NEEDED > len(numbers) or totals[pool, SIZE] == capacity:
            return i, n_given, n_taken, n_suppressed
        user, text = arrivals.user_hash[i], arrivals.text_hash[i]
        join(waiting, pool, arrivals.first_user_row + i, arrivals.first_query_row + i, user, text, user)
        for turn in range(n_turns):
            needed, n_before = totals[pool, NEEDED], n_given
            if totals[pool, SIZE] < needed:
                break
            is_mixed = min(totals[pool, USERS], totals[pool, ISSUERS]) >= rules.n_distinct
            if is_mixed:
                n_given, n_taken = _release_one(waiting, pool, i, old, new, numbers, n_taken, given, n_given)
            if n_given > n_before:
                # Differs: the paper's pools stay as large as a burst of one user made them.
                if rules.shrinks:
                    totals[pool, NEEDED] = max(rules.k, int(needed / rules.growth))
                continue
            # Paper: if all users are the same, k grows. Differs: also if nobody is found who never issued a query.
            if turn == 0 and (is_mixed or totals[pool, USERS] == 1):
                grown = max(needed + 1, np.int64(math.ceil(needed * rules.growth)))
                totals[pool, NEEDED] = min(grown, rules.max_pool)
                totals[pool, LARGEST] = max(totals[pool, LARGEST], totals[pool, NEEDED])
            break
        if totals[pool, SIZE] > rules.max_pool:
            drop_oldest(waiting, pool)
            n_suppressed += 1
    return n_arrivals, n_given, n_taken, n_suppressed


@njit(cache=True, nogil=True)
def drop_older(waiting: Waiting, first_user_row: int, first_query_row: int) -> int:
    """Take out users and queries, a pair at a time, until no row is older than these; return how many pairs."""
    n = 0
    for pool in range(len(waiting.totals)):
        while waiting.totals[pool, SIZE] > 0:
            user, query = oldest_rows(waiting, pool)
            if user >= first_user_row and query >= first_query_row:
                break
            drop_oldest(waiting, pool)
            n += 1
    return n


@njit(cache=True, nogil=True)
def oldest_rows(waiting: Waiting, pool: int) -> tuple[int, int]:
    """Return the rows of the user and the query that have waited longest in a pool that is not empty."""
    user, query = waiting.chain[2 * pool : 2 * pool + 2, -1, _NEWER]
    return waiting.row[2 * pool + USER, user], waiting.row[2 * pool + QUERY, query]


@njit(cache=True, nogil=True)
def release_rest(
    pool: int, waiting: Waiting, rules: Rules, old: UInt64s, new: UInt64s,
    numbers: UInt64s, given: Int64s, n_given: int,
) -> tuple[bool, int, int]:  # fmt: skip
    """Release from a pool while it holds k events of enough users; k is as asked for, not as grown.

    Gives whether it is done (else the numbers ran out), how many pairs were released so far, how many numbers it took.
    """
    n_taken, n_before, totals = 0, -1, waiting.totals[pool]
    while n_given > n_before and totals[SIZE] >= rules.k and min(totals[USERS], totals[ISSUERS]) >= rules.n_distinct:
        if n_taken + NUMBERS_NEEDED > len(numbers):
            return False, n_given, n_taken
        n_before = n_given
        n_given, n_taken = _release_one(waiting, pool, 0, old, new, numbers, n_taken, given, n_given)
    return True, n_given, n_taken
