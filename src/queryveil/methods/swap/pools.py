"""Pools per category in which queries are exchanged (Pàmies-Estrems et al., algorithm 2)."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from queryveil.data import Bools, Int8s, Int64s, UInt64s
from queryveil.errors import BadInput
from queryveil.methods.settings import PoolSettings
from queryveil.methods.swap import _pool_kernels
from queryveil.methods.swap._askers import AskerCounts, may_leave
from queryveil.methods.swap._issued import IssuedPairs, hash_queries, hash_users, pair_hashes
from queryveil.methods.swap._pool_kernels import LARGEST, NEEDED, SIZE, no_one_waiting, with_more_room
from queryveil.methods.swap._pool_state import HeldRows, PoolState, damaged
from queryveil.rng import check_seed
from queryveil.text.classifier import CATEGORIES

BLOCK = 8192


class RandomNumbers:
    """One long row of random 64-bit numbers, taken from the front.

    With a `secret` of a fixed length they are the same again, and nobody without it can tell them from chance; a `seed`
    is for runs that anybody may repeat.
    """

    def __init__(self, *, seed: int | None = None, n_taken: int = 0, secret: bytes | None = None) -> None:
        self._seed, self._secret = seed, secret
        self._n_blocks, skipped = divmod(n_taken, BLOCK)
        self._ready = np.zeros(0, np.uint64)
        self.n_taken = n_taken - skipped
        self.look()
        self.take(skipped)

    def look(self, *, at_least: int = 1) -> UInt64s:
        """Return the numbers that come next, without taking them."""
        if len(self._ready) < at_least:
            n_blocks = -(-(at_least - len(self._ready)) // BLOCK)
            self._ready = np.concatenate([self._ready, *(self._block() for _ in range(n_blocks))])
        return self._ready

    def take(self, n: int) -> None:
        """Take n of those that were looked at."""
        self._ready = self._ready[n:]
        self.n_taken += n

    def _block(self) -> UInt64s:
        number = self._n_blocks
        self._n_blocks += 1
        if self._secret is not None:
            data = hashlib.shake_256(self._secret + number.to_bytes(8, "little")).digest(8 * BLOCK)
            return np.frombuffer(data, "<u8").astype(np.uint64, copy=False)
        if self._seed is None:
            return np.frombuffer(os.urandom(8 * BLOCK), np.uint64)
        # A block has a seed of its own, so that a run can go on in the middle.
        block: UInt64s = np.random.Philox(np.random.SeedSequence([self._seed, number])).random_raw(BLOCK)
        return block


N_POOLS = len(CATEGORIES) + 1
"""A pool for each category and one for queries that have none."""
_FIRST_ROOM = 1000
"""Room for more in a pool is made when it is needed, however large k is."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Swapped:
    """What left the pools, in that order, and what the store keeps for the memory of who issued what.

    `released` has the columns of the events, the user being the one the query was given to, and `arrival`: the row of
    the events that set it free. `n_repeated` events are left out, as their users had issued them before, and `n_rare`,
    as too few had. `issued` are the hashes of the events' pairs, of this `generation`; where askers are counted, each
    with that of its text (and window), or 0 for a repeat.
    """

    released: pl.DataFrame
    n_suppressed: int = 0
    n_repeated: int = 0
    n_rare: int = 0
    generation: int = 0
    issued: bytes = b""

    def __repr__(self) -> str:
        # Privacy: the rows stay out of it.
        return f"Swapped(n_released={self.released.height}, n_suppressed={self.n_suppressed})"


class Pools:
    """Users and queries that wait apart, a pool for each category.

    >>> sports = pl.DataFrame({"user": ["a", "b"], "query": ["monza tickets", "tennis titles"], "category": [14, 14]})
    >>> pools = Pools(PoolSettings(k=2), seed=1)
    >>> pools.add(sports)
    Swapped(n_released=1, n_suppressed=0)
    >>> pools
    Pools(n_waiting=1)
    """

    def __init__(self, settings: PoolSettings, *, seed: int | None = None, secret: bytes | None = None) -> None:
        check_seed(seed)
        self.settings = settings
        self._rules = _pool_kernels.Rules(
            settings.k, settings.n_distinct, float(settings.growth), settings.max_pool, settings.shrink
        )
        self._numbers = RandomNumbers(seed=seed, secret=secret)
        self._key: UInt64s = self._numbers.look(at_least=2)[:2] | np.array([0, 1], np.uint64)
        self._numbers.take(2)
        self._issued = IssuedPairs(remembered=settings.remembered)
        self._askers = AskerCounts()
        self._held = HeldRows()
        capacity = 1 << min(settings.k, _FIRST_ROOM).bit_length()
        self._waiting = no_one_waiting(N_POOLS, capacity=capacity, needed=settings.k)

    @property
    def waiting(self) -> Int64s:
        """How many events wait in each pool."""
        return np.array(self._waiting.totals[:, SIZE])

    @property
    def k_now(self) -> Int64s:
        """How many events each pool must hold by now."""
        return np.array(self._waiting.totals[:, NEEDED])

    @property
    def largest_k(self) -> int:
        """How many events a pool had to hold at most so far."""
        return int(self._waiting.totals[:, LARGEST].max())

    @property
    def waiting_since(self) -> int | None:
        """When the oldest that waits arrived, in seconds since 1970; None if nothing waits, or it is not known."""
        return self._held.oldest(self._waiting) or None

    def __repr__(self) -> str:
        # Privacy: what waits stays out of it.
        return f"Pools(n_waiting={int(self.waiting.sum())})"

    def expire(self, *, before: int) -> int:
        """Suppress what arrived before a moment, in seconds since 1970; return how many events."""
        n_expired = int(_pool_kernels.drop_older(self._waiting, *self._held.rows_since(before)))
        if n_expired:
            self._held.forget(self._waiting)
        return n_expired

    def add(
        self, events: pl.DataFrame, *, window: Int64s | int | None = None, now: int = 0, max_wait: int | None = None
    ) -> Swapped:
        """Let events arrive in their order; each sets at most one free, or two where more wait than need to.

        They arrive `now`, in seconds since 1970; what waits for more than `max_wait` seconds by then is suppressed.
        All of them count as issued before the first is released. What a user has issued before does not wait again.
        Those who ask a text are counted anew in each `window`, of all events or of each; None counts them for ever.
        """
        pool = _checked(events)
        n_expired = 0 if max_wait is None else self.expire(before=now - max_wait)
        if events.height == 0:
            nothing = _with_arrival(events, np.zeros(0, np.int64))
            return Swapped(released=nothing, n_suppressed=n_expired, generation=self._issued.generation)
        users, texts = hash_users(events["user"], key=self._key), hash_queries(events["query"], key=self._key)
        pairs = pair_hashes(users, texts)
        issued, comes, n_rare = pairs, np.arange(events.height), 0
        if self.settings.repeats == "once":
            comes = np.flatnonzero(self._issued.are_new(pairs))
        n_repeated = len(pairs) - len(comes)
        self._issued.put(pairs)
        if self.settings.min_query_users > 1:
            counted = texts if window is None else pair_hashes(np.full(len(texts), window).astype(np.uint64), texts)
            issued = np.zeros(2 * len(pairs), np.uint64)
            issued[::2], issued[2 * comes + 1] = pairs, counted[comes]
            asked = self._asked_enough(counted[comes])
            comes, n_rare = comes[asked], int((~asked).sum())
        if len(comes) < events.height:
            events, pool, users, texts = events[pl.Series(comes)], pool[comes], users[comes], texts[comes]
        first_user, first_query = self._held.append(events, now=now)
        given, n_suppressed = self._let_arrive(_pool_kernels.Arrivals(pool, users, texts, first_user, first_query))
        return Swapped(
            released=_with_arrival(self._take(given), comes[given[2]]),
            n_suppressed=n_suppressed + n_expired,
            n_repeated=n_repeated,
            n_rare=n_rare,
            generation=self._issued.generation,
            issued=issued.astype("<u8", copy=False).tobytes(),
        )

    def _take(self, given: Int64s) -> pl.DataFrame:
        released = self._held.take(given[0], given[1])
        self._held.forget(self._waiting)
        return released

    def _asked_enough(self, texts: UInt64s) -> Bools:
        """Count the people who asked each text, and return which askings are of texts that may leave by then."""
        self._askers.turn_to(self._issued.generation)
        needed, key = self.settings.min_query_users, self._key.tobytes()
        return may_leave(texts, self._askers.add(texts), min_query_users=needed, key=key)

    def drain(self) -> Swapped:
        """Release what may still leave when nothing more arrives, one after the other; `arrival` is 0."""
        given, n_given = np.zeros((3, self.waiting.sum()), np.int64), 0
        for pool in range(N_POOLS):
            is_done = False
            while not is_done:
                numbers = self._numbers.look(at_least=_pool_kernels.NUMBERS_NEEDED)
                is_done, n_given, n_taken = _pool_kernels.release_rest(
                    pool, self._waiting, self._rules, self._issued.older, self._issued.newest, numbers, given, n_given,
                )  # fmt: skip
                self._numbers.take(n_taken)
        given = given[:, :n_given]
        return Swapped(released=_with_arrival(self._take(given), given[2]), generation=self._issued.generation)

    def clear(self) -> int:
        """Suppress all that waits, and give how many events that are."""
        n_left = int(self.waiting.sum())
        self._waiting = no_one_waiting(N_POOLS, capacity=self._waiting.capacity, needed=self.k_now)
        self._held = HeldRows()
        return n_left

    def to_bytes(self) -> bytes:
        """Return what waits, in its order, for `from_bytes`; the memory of who issued what is kept apart."""
        users, queries = self._held.in_places(self._waiting)
        state = PoolState(
            key=(int(self._key[0]), int(self._key[1])),
            needed=self.k_now.tolist(),
            generation=self._issued.generation,
            n_newest=self._issued.n_newest,
            room=self._issued.room,
            n_numbers=self._numbers.n_taken,
            users=users.write_ipc_stream(None).getvalue(),
            queries=queries.write_ipc_stream(None).getvalue(),
        )
        return state.pack()

    @classmethod
    def from_bytes(
        cls,
        data: bytes,
        *,
        issued: Iterable[tuple[int, bytes]],
        settings: PoolSettings,
        seed: int | None = None,
        secret: bytes | None = None,
    ) -> Pools:
        """Return the pools as they were; `issued` are generations with what `Swapped` had for them."""
        state = PoolState.unpack(data)
        state.check(n_pools=N_POOLS, remembered=settings.remembered)
        users, queries = state.frames(n_pools=N_POOLS)
        pools = cls(settings, seed=seed, secret=secret)
        pools._numbers = RandomNumbers(seed=seed, secret=secret, n_taken=state.n_numbers)
        pools._key = np.array(state.key, np.uint64)
        pools._issued = IssuedPairs(remembered=settings.remembered, generation=state.generation)
        pools._askers.turn_to(state.generation)
        pairs = pools._without_texts(issued) if settings.min_query_users > 1 else issued
        pools._issued.restore(pairs, n_newest=state.n_newest, room=state.room)
        # A pool that needs more than it may hold would never let go of anything again.
        needed = np.clip(state.needed, settings.k, settings.max_pool)
        pools._held, pools._waiting = HeldRows.from_places(users, queries, needed=needed)
        return pools

    def _without_texts(self, issued: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
        """Yield the hashes of pairs alone, and count the askers of the texts beside them."""
        for generation, data in issued:
            if len(data) % 16:
                raise damaged()
            pairs, texts = np.frombuffer(data, "<u8").astype(np.uint64, copy=False).reshape(-1, 2).T
            self._askers.restore(generation, np.ascontiguousarray(texts[texts > 0]))
            yield generation, np.ascontiguousarray(pairs).tobytes()

    def _let_arrive(self, arrivals: _pool_kernels.Arrivals) -> tuple[Int64s, int]:
        n, n_turns = len(arrivals.pool), 2 if self.settings.shrink else 1
        given, at, n_given, n_suppressed = np.zeros((3, n_turns * n), np.int64), 0, 0, 0
        while at < n:
            if self._waiting.totals[arrivals.pool[at], SIZE] == self._waiting.capacity:
                self._waiting = with_more_room(self._waiting)
            wanted = min(2 * (n - at), 16 * BLOCK) + n_turns * _pool_kernels.NUMBERS_NEEDED
            at, n_given, n_taken, n_dropped = _pool_kernels.swap(
                arrivals, at, self._waiting, self._rules, self._issued.older, self._issued.newest,
                self._numbers.look(at_least=wanted), given, n_given,
            )  # fmt: skip
            self._numbers.take(n_taken)
            n_suppressed += n_dropped
        return given[:, :n_given], n_suppressed


def _checked(events: pl.DataFrame) -> Int8s:
    """Raise if events cannot be pooled; give their pools."""
    for name in ("user", "query", "category"):
        if name not in events.columns:
            raise BadInput(f"events need a column {name}; make them with queryveil.methods.swap.preparing.prepare")
        if events[name].null_count():
            raise BadInput(f"the {name} column of the events has missing values; leave such rows out")
    pool = events["category"].to_numpy()
    if len(pool) and not (pool.dtype.kind in "iu" and pool.min() >= 0 and pool.max() < N_POOLS):
        raise BadInput(f"the category column of the events must have numbers from 0 to {N_POOLS - 1}")
    return pool.astype(np.int8)


def _with_arrival(released: pl.DataFrame, arrival: Int64s) -> pl.DataFrame:
    kept = [column for column in released if column.name != "arrival"]
    return pl.DataFrame([*kept, pl.Series("arrival", arrival, dtype=pl.Int64)])
