"""Swapping over arrays: stopping for numbers and room, and the search for somebody who fits."""

from __future__ import annotations

from collections import Counter

import numpy as np

from queryveil.data import Int64s, UInt64s
from queryveil.methods.swap import _pool_kernels
from queryveil.methods.swap._issued import empty_filter, pair_hashes, put
from queryveil.methods.swap._pool_kernels import (
    NEEDED,
    SIZE,
    Arrivals,
    Rules,
    Waiting,
    join_all,
    no_one_waiting,
    with_more_room,
)

NOTHING: UInt64s = np.zeros(0, np.uint64)


def numbers(n: int, *, seed: int = 0) -> UInt64s:
    return np.random.default_rng(seed).integers(0, 2**64, n, dtype=np.uint64)


def room(n: int) -> Int64s:
    return np.zeros((3, n), np.int64)


def pool_of(users: list[int], texts: list[int], *, issuers: list[int] | None = None) -> Waiting:
    waiting = no_one_waiting(1, capacity=64, needed=2)
    n = len(users)
    rows, hashed = np.arange(n), [np.array(each, np.uint64) for each in (users, texts, issuers or users)]
    join_all(waiting, np.zeros(n, np.int8), rows, rows, *hashed)
    return waiting


def issued(pairs: list[tuple[int, int]]) -> UInt64s:
    blocks = empty_filter(1000)
    users, texts = np.array(pairs, np.uint64).reshape(-1, 2).T.copy()
    put(blocks, pair_hashes(users, texts))
    return blocks


def test_only_one_pair_in_many_fits_and_it_is_found() -> None:
    users, texts = list(range(1, 21)), list(range(101, 121))
    known = [(user, text) for user in users for text in texts if (user, text) != (7, 113)]
    old, new = issued(known[::2]), issued(known[1::2])
    for seed in range(20):
        query, user, n = _pool_kernels.draw(
            pool_of(users, texts), 0, old, new, numbers(_pool_kernels.NUMBERS_NEEDED, seed=seed), 0
        )
        assert (users[user], texts[query]) == (7, 113)
        assert 2 <= n <= _pool_kernels.NUMBERS_NEEDED


def test_where_nobody_fits_nothing_is_drawn() -> None:
    users, texts = list(range(1, 11)), [101] * 10
    known = issued([(user, 101) for user in users])
    query, user, n = _pool_kernels.draw(
        pool_of(users, texts), 0, NOTHING, known, numbers(_pool_kernels.NUMBERS_NEEDED), 0
    )
    assert (query, user) == (-1, -1)
    assert n <= _pool_kernels.NUMBERS_NEEDED


def test_users_who_fit_are_drawn_evenly_though_most_do_not() -> None:
    """The tries fail often, so it is mostly the search that decides; it must not favour those after a gap."""
    users, texts = list(range(1, 33)), [101] * 32
    fitting = (3, 4, 30)
    known = issued([(user, 101) for user in users if user not in fitting])
    waiting = pool_of(users, texts)
    block = numbers(3000 * 20)
    seen = Counter(users[_pool_kernels.draw(waiting, 0, NOTHING, known, block, 20 * i)[1]] for i in range(3000))
    assert set(seen) == set(fitting)
    # Chi-squared with 2 degrees of freedom: above 13.8 once in a thousand; the numbers are fixed.
    assert sum((n - 1000) ** 2 / 1000 for n in seen.values()) < 13.8


def test_queries_that_fit_somebody_are_drawn_evenly_though_most_fit_nobody() -> None:
    """Everybody asked the first six; the query behind them must not get their share."""
    users, texts = list(range(1, 10)), [*[101] * 6, 102, 103, 104]
    known = issued([*((user, 101) for user in users), (1, 102), (2, 103), (3, 104)])
    waiting = pool_of(users, texts)
    step = _pool_kernels.NUMBERS_NEEDED
    block = numbers(3000 * step)
    seen = Counter(texts[_pool_kernels.draw(waiting, 0, NOTHING, known, block, step * i)[0]] for i in range(3000))
    assert set(seen) == {102, 103, 104}
    # Chi-squared with 2 degrees of freedom: above 13.8 once in a thousand; the numbers are fixed.
    assert sum((n - 1000) ** 2 / 1000 for n in seen.values()) < 13.8


def test_stopping_for_numbers_or_room_and_going_on_changes_nothing() -> None:
    n = 400
    rng = np.random.default_rng(3)
    arrivals = Arrivals(
        rng.integers(0, 3, n).astype(np.int8),
        rng.integers(1, 30, n).astype(np.uint64) << np.uint64(32),
        numbers(n, seed=9),
        0,
        0,
    )
    rules = Rules(5, 4, 1.2, 1000, False)
    known = empty_filter(n)
    put(known, pair_hashes(arrivals.user_hash, arrivals.text_hash))
    block = numbers(n * _pool_kernels.NUMBERS_NEEDED, seed=4)

    whole, waiting = room(n), no_one_waiting(3, capacity=1024, needed=5)
    at, n_whole, n_taken, _ = _pool_kernels.swap(arrivals, 0, waiting, rules, NOTHING, known, block, whole, 0)
    assert at == n

    parts, small = room(n), no_one_waiting(3, capacity=2, needed=5)
    at = n_given = taken = 0
    n_stops = 0
    while at < n:
        some = block[taken : taken + _pool_kernels.NUMBERS_NEEDED + 20]
        at, n_given, more, _ = _pool_kernels.swap(arrivals, at, small, rules, NOTHING, known, some, parts, n_given)
        taken += more
        n_stops += 1
        if at < n and small.totals[arrivals.pool[at], SIZE] == small.capacity:
            small = with_more_room(small)
    assert n_stops > 20
    assert (n_given, taken) == (n_whole, n_taken)
    for ours, theirs in zip(parts, whole, strict=True):
        assert ours[:n_given].tolist() == theirs[:n_given].tolist()
    assert small.totals.tolist() == waiting.totals.tolist()


def test_a_stuck_pool_is_not_searched_for_ever() -> None:
    """Two people who asked the same over and over: pairs are looked at up to a limit, then the pool grows."""
    n = 1500
    users = np.array([1, 2], np.uint64).repeat(n // 2)
    arrivals = Arrivals(np.zeros(n, np.int8), users, np.full(n, 101, np.uint64), 0, 0)
    waiting = no_one_waiting(1, capacity=2048, needed=2)
    known = issued([(1, 101), (2, 101)])
    at, n_given, _, n_suppressed = _pool_kernels.swap(
        arrivals,
        0,
        waiting,
        Rules(5, 2, 1.2, 1000, False),
        NOTHING,
        known,
        numbers(_pool_kernels.NUMBERS_NEEDED * n),
        room(n),
        0,
    )
    assert (at, n_given, n_suppressed) == (n, 0, 500)
    assert waiting.totals[0, NEEDED] == 1000
