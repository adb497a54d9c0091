"""Pools over arrays: who waits, how many different ones, and who came first."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from queryveil.methods.swap import _pool_kernels


@given(
    steps=st.lists(st.tuples(st.booleans(), st.integers(0, 20)), max_size=150),
    spread=st.sampled_from([1, 2**32, 2**33, 2**60]),
)
def test_the_table_of_waiting_users_counts_as_a_counter_does(steps: list[tuple[bool, int]], spread: int) -> None:
    """Hashes that fall on the same slot, and leave gaps among others, are the hard case."""
    waiting = _pool_kernels.no_one_waiting(2, capacity=8, needed=2)
    there: list[int] = []
    for row, (comes, number) in enumerate(steps):
        key = number * spread % 2**64
        if comes and len(there) < waiting.capacity:
            _pool_kernels.join(waiting, 1, row, row, np.uint64(key), np.uint64(0), np.uint64(key))
            there.append(key)
        elif key in there:
            place = there.index(key)
            _pool_kernels.leave(waiting, 1, place, place)
            there[place] = there[-1]
            there.pop()
        assert waiting.totals[1, _pool_kernels.USERS] == waiting.totals[1, _pool_kernels.ISSUERS] == len(set(there))
    for table in (2, 3):
        counts = zip(waiting.keys[table], waiting.counts[table], strict=True)
        assert {int(k): int(n) for k, n in counts if n} == Counter(there)


@given(steps=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 99), st.integers(0, 99)), max_size=80))
def test_the_oldest_are_known_whoever_leaves_in_between(steps: list[tuple[int, int, int]]) -> None:
    """Lists that fill gaps in the same way are what it must agree with, also after moving to more room."""
    waiting = _pool_kernels.no_one_waiting(2, capacity=128, needed=2)
    users: list[int] = []
    queries: list[int] = []
    for row, (what, some, other) in enumerate(steps):
        if what <= 1 or not users:
            _pool_kernels.join(waiting, 1, row, row, np.uint64(some), np.uint64(other), np.uint64(some))
            users.append(row)
            queries.append(row)
            continue
        if what == 2:
            query, user = other % len(queries), some % len(users)
            _pool_kernels.leave(waiting, 1, query, user)
        else:
            query, user = queries.index(min(queries)), users.index(min(users))
            roomier = _pool_kernels.with_more_room(waiting)
            _pool_kernels.drop_oldest(waiting, 1)
            _pool_kernels.drop_oldest(roomier, 1)
            assert roomier.row[:, : len(queries) - 1].tolist() == waiting.row[:, : len(queries) - 1].tolist()
        users[user], queries[query] = users[-1], queries[-1]
        users.pop()
        queries.pop()
        assert waiting.row[2 + _pool_kernels.USER, : len(users)].tolist() == users
        assert waiting.row[2 + _pool_kernels.QUERY, : len(queries)].tolist() == queries
    assert waiting.totals[1, _pool_kernels.SIZE] == len(users)
    assert waiting.totals[0, _pool_kernels.SIZE] == 0
