"""Pools in which users and queries wait apart: who is there, how many different ones, and who came first.

A pool is a row of each array of `Waiting`; its first `size` places are taken. Users and queries are numbers of rows
that rise with their arrival. Who leaves makes a gap that the last one fills, so places say nothing of age: those of
each pool are also a chain from the oldest to the newest.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from queryveil.kernels.arrays import Int8s, Int32s, Int64s, UInt64s
from queryveil.kernels.sorting import order_of

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
    """Give empty pools with room for `capacity`, a power of two."""
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
