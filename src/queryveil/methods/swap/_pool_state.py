"""Serialise pools for the store."""

from __future__ import annotations

import time
import zlib
from typing import Any

import msgspec
import numpy as np
import polars as pl
import pyarrow as pa

from queryveil.data import Bools, Int64s, with_own_texts
from queryveil.errors import BadInput
from queryveil.methods.swap._pool_kernels import QUERY, SIZE, USER, Waiting, join_all, no_one_waiting, oldest_rows

_VERSION = 1
_SEAL = b"QVP"
"""What bytes with a checksum begin with."""
_SEAL_BYTES = len(_SEAL) + 4
_MAP, _MAP_BITS = 0x80, 0xF0
"""What a state of earlier releases, a map of MessagePack without a checksum, begins with."""
_MAX_ROOM = 1 << 28
_TOP = 1 << 63
_ARROW_ERRORS = (pa.ArrowException, pl.exceptions.PolarsError, pl.exceptions.PanicException)
_UNREADABLE = (*_ARROW_ERRORS, OSError, MemoryError, ValueError)
"""What reading damaged frames raises; a name that is not UTF-8 is a ValueError."""


def seal(data: bytes) -> bytes:
    """Return bytes with their checksum in front."""
    return _SEAL + zlib.crc32(data).to_bytes(4, "big") + data


def unseal(sealed: bytes) -> bytes:
    """Return what `seal` was given; raise if it is not as it was written.

    >>> unseal(seal(b"pools"))
    b'pools'
    """
    data = sealed[_SEAL_BYTES:]
    if seal(data) != sealed:
        raise damaged()
    return data


def damaged() -> BadInput:
    """Return the error for bytes that are not as they were written."""
    return BadInput("the state of the pools is damaged; go back to a copy of the store")


class PoolState(msgspec.Struct, frozen=True, kw_only=True):
    """What pools need to go on: who waits where, k as grown, the key of the hashes, where the memory stands."""

    version: int = _VERSION
    key: tuple[int, int]
    needed: list[int]
    generation: int
    n_newest: int
    room: tuple[int, int]
    n_numbers: int
    users: bytes
    queries: bytes

    def pack(self) -> bytes:
        """Return the bytes, with a checksum."""
        return seal(msgspec.msgpack.encode(self))

    @staticmethod
    def unpack(data: bytes) -> PoolState:
        """Read the bytes; those of earlier releases have no checksum."""
        if not data or data[0] & _MAP_BITS != _MAP:
            data = unseal(data)
        try:
            state = msgspec.msgpack.decode(data, type=PoolState)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            raise damaged() from None
        if state.version != _VERSION:
            raise BadInput("the state of the pools is from another version of queryveil; go on with that one")
        return state

    def check(self, *, n_pools: int, remembered: int | None) -> None:
        """Raise if a number is none that pools can have had: room for too much would take all memory."""
        most = max(remembered or 0, _MAX_ROOM)
        numbers = (self.generation, self.n_newest, self.n_numbers, *self.needed)
        is_whole = len(self.needed) == n_pools and all(0 <= number < _TOP for number in numbers)
        is_keyed = all(0 <= number < 2 * _TOP for number in self.key) and self.key[1] % 2 == 1
        if not is_whole or not is_keyed or not all(0 <= n <= most for n in self.room):
            raise damaged()

    def frames(self, *, n_pools: int) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return the users and the queries that wait; kernels index arrays by what is in them, so all is checked."""
        try:
            for data in (self.users, self.queries):
                # Polars trusts offsets and lengths; Arrow looks at every one.
                pa.ipc.open_stream(data).read_all().validate(full=True)
            users, queries = pl.read_ipc_stream(self.users), pl.read_ipc_stream(self.queries)
        except _UNREADABLE:
            raise damaged() from None
        is_sound = (
            users.height == queries.height
            and _has_columns(users, _USER_COLUMNS)
            and _has_columns(queries, _QUERY_COLUMNS)
            and _is_permutation(users["age"])
            and _is_permutation(queries["_age"])
            and "category" in queries.columns
            and queries["category"].dtype.is_integer()
            and users["pool"].is_between(0, n_pools - 1).all()
            and (users["pool"] == queries["category"]).all()
            and _are_moments(users, "came")
            and _are_moments(queries, "_came")
        )
        if not is_sound:
            raise damaged()
        return users, queries

    def __repr__(self) -> str:
        # Privacy: the bytes hold users and queries, the key tells who issued what.
        return f"PoolState(version={self.version}, generation={self.generation})"


_USER_COLUMNS = {"pool": pl.Int8, "hash": pl.UInt64, "age": pl.Int64, "user": pl.String}
_QUERY_COLUMNS = {"_text": pl.UInt64, "_issuer": pl.UInt64, "_age": pl.Int64, "query": pl.String}


def _has_columns(frame: pl.DataFrame, columns: dict[str, Any]) -> bool:
    return all(frame.schema.get(name) == kind and not frame[name].null_count() for name, kind in columns.items())


def _are_moments(frame: pl.DataFrame, name: str) -> bool:
    """Return whether a column has times of arrival; states of earlier releases have none."""
    return name not in frame.columns or (_has_columns(frame, {name: pl.Int64}) and bool((frame[name] >= 0).all()))


def _is_permutation(ranks: pl.Series) -> bool:
    return bool((np.sort(ranks.to_numpy()) == np.arange(len(ranks))).all())


_SLACK = 4096
"""Rows that have left are let go of when there are so many more than of those that wait."""
_NO_USERS = pl.DataFrame(schema={"user": pl.String, "came": pl.Int64})
_NO_QUERIES = pl.DataFrame(schema={"query": pl.String, "category": pl.Int8, "_came": pl.Int64})


class HeldRows:
    """Users and queries in two frames, of which rows are taken; those that left go later, many at a time.

    Both have when each row arrived, in seconds since 1970, ascending; 0 if that is not known.
    Batches can be small, so expressions of Polars are kept out: planning one takes longer than moving a hundred rows.
    """

    def __init__(self, users: pl.DataFrame = _NO_USERS, queries: pl.DataFrame = _NO_QUERIES) -> None:
        self.users = users
        self.queries = queries
        self.columns = ["user", *(name for name in self.queries.columns if name != "_came")]

    def oldest(self, waiting: Waiting) -> int | None:
        """Return when the oldest that waits arrived."""
        rows = [oldest_rows(waiting, pool) for pool in np.flatnonzero(waiting.totals[:, SIZE]).tolist()]
        return min((min(self.users["came"][user], self.queries["_came"][query]) for user, query in rows), default=None)

    def rows_since(self, moment: int) -> tuple[int, int]:
        """Return the first user and the first query that arrived at a moment or later."""
        came = self.users["came"].to_numpy(), self.queries["_came"].to_numpy()
        return int(np.searchsorted(came[0], moment)), int(np.searchsorted(came[1], moment))

    def append(self, events: pl.DataFrame, *, now: int) -> tuple[int, int]:
        """Take events in, and give the numbers of the first user and of the first query among them."""
        first = self.users.height, self.queries.height
        # A clock that goes back would put the rows out of their order.
        now = max(now, *(int(came[-1]) for came in (self.users["came"], self.queries["_came"]) if len(came)), 0)
        moments = pl.Series("came", np.full(events.height, now))
        self.columns = events.columns
        queries = pl.DataFrame([*(column for column in events if column.name != "user"), moments.alias("_came")])
        self.users = pl.concat([self.users, pl.DataFrame([events["user"], moments])], rechunk=True)
        if self.queries.height:
            how: Any = "vertical" if self.queries.schema == queries.schema else "diagonal_relaxed"
            queries = pl.concat([self.queries, queries], how=how)
        self.queries = queries.rechunk()
        return first

    def take(self, query_row: Int64s, user_row: Int64s) -> pl.DataFrame:
        """Return queries with the users they are given to, the columns as the latest events had them."""
        given = {column.name: column for column in self.queries[pl.Series(query_row)] if column.name != "_came"}
        given["user"] = self.users[pl.Series(user_row)]["user"]
        return pl.DataFrame([given[name] for name in dict.fromkeys([*self.columns, *given])])

    def forget(self, waiting: Waiting) -> None:
        """Let go of the rows that have left, if they are many; the pools get the new numbers of the others."""
        most = 2 * int(waiting.totals[:, SIZE].sum()) + _SLACK
        if self.users.height > most:
            self.users = with_own_texts(self.users[_renumber(waiting.row[USER::2], waiting.is_taken)])
        if self.queries.height > most:
            self.queries = with_own_texts(self.queries[_renumber(waiting.row[QUERY::2], waiting.is_taken)])

    def in_places(self, waiting: Waiting) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return those who wait in the order of their places, with pool, hash and rank by age."""
        pool, user_row, query_row, user, text, issuer = waiting.taken()
        named = with_own_texts(self.users[pl.Series(user_row)])
        age, query_age = (np.argsort(np.argsort(rows)) for rows in (user_row, query_row))
        users = pl.DataFrame({"pool": pool, "hash": user, "age": age}).hstack(named)
        places = pl.DataFrame({"_text": text, "_issuer": issuer, "_age": query_age})
        return users, pl.concat([places, with_own_texts(self.queries[pl.Series(query_row)])], how="horizontal")

    @classmethod
    def from_places(cls, users: pl.DataFrame, places: pl.DataFrame, *, needed: Int64s) -> tuple[HeldRows, Waiting]:
        """Return the rows and the pools from what `in_places` gave; `needed` is the size that each pool must have."""
        pool = users["pool"].to_numpy()
        largest = int(np.bincount(pool, minlength=1).max())
        waiting = no_one_waiting(len(needed), capacity=1 << max(largest, 8).bit_length(), needed=needed)
        user_row, query_row = users["age"].to_numpy(), places["_age"].to_numpy()
        hashes = [each.to_numpy() for each in (users["hash"], places["_text"], places["_issuer"])]
        join_all(waiting, pool, user_row, query_row, *hashes)
        # States of earlier releases do not know when their rows arrived: these wait from now on.
        now = pl.Series("came", np.full(users.height, int(time.time())))
        users = users if "came" in users.columns else users.with_columns(now)
        places = places if "_came" in places.columns else places.with_columns(now.alias("_came"))
        queries = places.drop("_text", "_issuer", "_age")[pl.Series(np.argsort(query_row))]
        return cls(users.select("user", "came")[pl.Series(np.argsort(user_row))], queries), waiting


def _renumber(rows: Int64s, taken: Bools) -> pl.Series:
    """Number the rows from 0 in their order, in place, and give the old numbers by the new ones."""
    stay = np.sort(rows[taken])
    rows[taken] = np.searchsorted(stay, rows[taken])
    return pl.Series(stay)
