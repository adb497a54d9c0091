"""Serialise pools for the store."""

from __future__ import annotations

import io
import zlib
from typing import Any

import msgspec
import numpy as np
import polars as pl
import pyarrow as pa

from queryveil.data import Int64s
from queryveil.errors import BadInput
from queryveil.methods.swap._pool_kernels import NEEDED, SIZE, Waiting, join_all, no_one_waiting

_VERSION = 1
_SEAL = b"QVP"
"""What bytes with a checksum begin with."""
_SEAL_BYTES = len(_SEAL) + 4
_MAP, _MAP_BITS = 0x80, 0xF0
"""What a state of earlier releases, a map of MessagePack without a checksum, begins with."""
_MAX_ROOM = 1 << 28
_TOP = 1 << 63


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
        except (pa.ArrowException, pl.exceptions.PolarsError, pl.exceptions.PanicException):
            raise damaged() from None
        except (OSError, MemoryError, ValueError):
            # A name that is not UTF-8 among them.
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


def _is_permutation(ranks: pl.Series) -> bool:
    return bool((np.sort(ranks.to_numpy()) == np.arange(len(ranks))).all())


def written(frame: pl.DataFrame) -> bytes:
    """Return a frame as bytes of Arrow IPC."""
    buffer = io.BytesIO()
    frame.write_ipc_stream(buffer)
    return buffer.getvalue()


_SLACK = 4096
"""Rows that have left are let go of when there are so many more than of those that wait."""
_NO_USERS = pl.DataFrame(schema={"user": pl.String})
_NO_QUERIES = pl.DataFrame(schema={"query": pl.String, "category": pl.Int8})


class HeldRows:
    """Users and queries in two frames, of which rows are taken; those that left go later, many at a time.

    Batches can be small, so expressions of Polars are kept out: planning one takes longer than moving a hundred rows.
    """

    def __init__(self, users: pl.DataFrame = _NO_USERS, queries: pl.DataFrame = _NO_QUERIES) -> None:
        self.users = users
        self.queries = queries
        self.columns = ["user", *self.queries.columns]

    def append(self, events: pl.DataFrame) -> tuple[int, int]:
        """Take events in, and give the numbers of the first user and of the first query among them."""
        first = self.users.height, self.queries.height
        self.columns = events.columns
        queries = pl.DataFrame([column for column in events if column.name != "user"])
        self.users = pl.concat([self.users, pl.DataFrame([events["user"]])], rechunk=True)
        if not self.queries.height:
            self.queries = queries.rechunk()
        else:
            same = self.queries.schema == queries.schema
            how: Any = "vertical" if same else "diagonal_relaxed"
            self.queries = pl.concat([self.queries, queries], how=how, rechunk=True)
        return first

    def take(self, query_row: Int64s, user_row: Int64s) -> pl.DataFrame:
        """Return queries with the users they are given to, the columns as the latest events had them."""
        given = {column.name: column for column in self.queries[pl.Series(query_row)]}
        given["user"] = self.users[pl.Series(user_row)]["user"]
        return pl.DataFrame([given[name] for name in dict.fromkeys([*self.columns, *given])])

    def forget(self, waiting: Waiting) -> None:
        """Let go of the rows that have left, if they are many; the pools get the new numbers of the others."""
        most = 2 * int(waiting.totals[:, SIZE].sum()) + _SLACK
        if self.users.height > most:
            stay = _renumber(waiting.user_row, _taken(waiting))
            self.users = _own(self.users[pl.Series(stay)])
        if self.queries.height > most:
            stay = _renumber(waiting.query_row, _taken(waiting))
            self.queries = _own(self.queries[pl.Series(stay)])

    def in_places(self, waiting: Waiting) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return those who wait in the order of their places, with pool, hash and rank by age."""
        taken = _taken(waiting)
        pool = np.nonzero(taken)[0].astype(np.int8)
        user_row, query_row = waiting.user_row[taken], waiting.query_row[taken]
        names = _own(self.users[pl.Series(user_row)])["user"]
        users = pl.DataFrame({"pool": pool, "hash": waiting.user_hash[taken], "age": _ranks(user_row), "user": names})
        places = pl.DataFrame(
            {"_text": waiting.text_hash[taken], "_issuer": waiting.issuer_hash[taken], "_age": _ranks(query_row)}
        )
        return users, pl.concat([places, _own(self.queries[pl.Series(query_row)])], how="horizontal")

    @classmethod
    def from_places(
        cls, users: pl.DataFrame, places: pl.DataFrame, *, n_pools: int, needed: list[int], bounds: tuple[int, int]
    ) -> tuple[HeldRows, Waiting]:
        """Return back the rows and the pools from what `in_places` gave; `bounds` are the least and the most needed."""
        pool = users["pool"].to_numpy()
        largest = int(np.bincount(pool, minlength=1).max())
        waiting = no_one_waiting(n_pools, capacity=1 << max(largest, 8).bit_length(), needed=0)
        waiting.totals[:, NEEDED] = np.clip(needed, *bounds)
        user_row, query_row = users["age"].to_numpy(), places["_age"].to_numpy()
        hashes = [each.to_numpy() for each in (users["hash"], places["_text"], places["_issuer"])]
        join_all(waiting, pool, user_row, query_row, *hashes)
        queries = places.drop("_text", "_issuer", "_age")[pl.Series(np.argsort(query_row))]
        return cls(pl.DataFrame([users["user"]])[pl.Series(np.argsort(user_row))], queries), waiting


def _taken(waiting: Waiting) -> np.ndarray:
    taken: np.ndarray = np.arange(waiting.user_row.shape[1]) < waiting.totals[:, SIZE, None]
    return taken


def _renumber(rows: np.ndarray, taken: np.ndarray) -> Int64s:
    """Number the rows from 0 in their order, in place, and give the old numbers by the new ones."""
    stay: Int64s = np.sort(rows[taken])
    rows[taken] = np.searchsorted(stay, rows[taken])
    return stay


def _ranks(rows: Int64s) -> Int64s:
    return np.argsort(np.argsort(rows))


def _own(frame: pl.DataFrame) -> pl.DataFrame:
    """Return texts in memory of their own: rows taken from a column keep all of its texts alive."""
    return pl.DataFrame([_own_texts(column) if column.dtype == pl.String else column for column in frame])


def _own_texts(texts: pl.Series) -> pl.Series:
    return pl.Series(texts.name, texts.to_arrow().cast(pa.large_string()), dtype=pl.String)
