"""Readers of the state of a stream: rows of a store and the pools, their checksums made to fit, and the file itself."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from functools import cache, partial
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
from tests.fuzzing.engine import Target
from tests.fuzzing.mutation import SECRET
from tests.support.commits import SETTINGS, numbered_commit

from queryveil.data import Format, Layout
from queryveil.errors import QueryveilError
from queryveil.methods.settings import PoolSettings
from queryveil.methods.swap._pool_state import PoolState, seal
from queryveil.methods.swap.pools import Pools
from queryveil.service.pipeline._committed import UserCount
from queryveil.service.pipeline.service import _Packed, unpack
from queryveil.service.stores._sql import checksum
from queryveil.service.stores.profiles import ProfileDatabase
from queryveil.service.stores.sqlite import SqliteStore

_FIELDS = {
    "state": ("settings", "number", "position", "generation", "delivered", "n_bytes_out", "counts"),
    "pools": ("data",),
    "outbox": ("number", "byte_offset", "data", "n_rows"),
    "issued": ("id", "generation", "hashes"),
    "sent_keys": ("key",),
    "profile_blocks": ("first_user", "n_users", "counts"),
    "profile_journal": ("id", "changes"),
    "profile_progress": ("last", "user", "n_users"),
}
"""The columns of each table that its checksum is over, in their order."""
_POOLS = PoolSettings(k=2, remembered=100)
_EVENTS = pl.DataFrame(
    {"user": [SECRET, "b", "c"], "query": ["red wine", SECRET, "chess"], "category": [3, 3, 16]},
    schema_overrides={"category": pl.Int8},
)


@cache
def _pools() -> tuple[bytes, tuple[tuple[int, bytes], ...]]:
    """Return pools in which some wait, as they are kept, and the hashes that belong to them."""
    pools = Pools(PoolSettings(k=5, remembered=100), seed=1)
    swapped = pools.add(pl.concat([_EVENTS] * 2))
    return pools.to_bytes(), ((swapped.generation, swapped.issued),)


def _goes_on(data: bytes) -> object:
    """Load pools and use them: what was not checked on the way would be met by the kernels."""
    pools, _, users = unpack(data, issued=_pools()[1], settings=_POOLS)
    UserCount(users).estimate()
    pools.add(_EVENTS)
    pools.to_bytes()
    pools.drain()
    return repr(pools)


def _packed(pools: bytes) -> bytes:
    layout = Layout(format=Format.CSV, names={"user": "user", "query": "query"}, columns=("user", "query"))
    return msgspec.msgpack.encode(_Packed(version=1, layout=layout, users=UserCount().to_bytes(), pools=pools))


def _state() -> PoolState:
    return PoolState.unpack(_pools()[0])


def _with_state(data: bytes) -> object:
    """Load pools whose state is these bytes under a checksum that fits."""
    return _goes_on(_packed(seal(data)))


def _with_frame(data: bytes, *, name: str) -> object:
    return _goes_on(_packed(msgspec.structs.replace(_state(), **{name: data}).pack()))


def _numbers(data: bytes) -> object:
    """Load pools with other numbers: JSON says which."""
    try:
        given = msgspec.json.decode(data, type=dict[str, Any])
        state = msgspec.structs.replace(_state(), **given).pack()
    except (ValueError, TypeError, RecursionError, OverflowError):
        return None
    return _goes_on(_packed(state))


def _described() -> list[bytes]:
    state = _state()
    names = ("version", "key", "needed", "generation", "n_newest", "room", "n_numbers")
    return [msgspec.json.encode({name: getattr(state, name) for name in names})]


class _Store:
    """A store with something in every table, of which one field is replaced."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "state.db"
        self._whole = b""

    def whole(self) -> bytes:
        """Return the file of the store."""
        if not self._whole:
            store, number = SqliteStore(self.path), 0
            store.open(settings=SETTINGS)
            while number < 4 or not store._connection.execute("SELECT count(*) FROM profile_journal").fetchone()[0]:
                number += 1
                store.commit(numbered_commit(number))
            store.close()
            self._whole = self.path.read_bytes()
        return self._whole

    def fields(self) -> list[bytes]:
        """Return each field of a row of each table, as table.column=value."""
        self.whole()
        found = []
        with closing(sqlite3.connect(self.path)) as connection:
            for table, columns in _FIELDS.items():
                row = connection.execute(f"SELECT {', '.join(columns)} FROM {table} ORDER BY 1 DESC LIMIT 1").fetchone()
                for name, value in zip(columns, row or (), strict=bool(row)):
                    text = value if isinstance(value, bytes) else str(value).encode()
                    found.append(f"{table}.{name}=".encode() + text)
        return found

    def replaced(self, data: bytes) -> object:
        """Put a value into its place with a checksum that fits, and go on with the store."""
        place, _, text = data.partition(b"=")
        table, _, column = place.decode(errors="replace").partition(".")
        if column not in _FIELDS.get(table, ()):
            return None
        self._put(self.whole())
        with closing(sqlite3.connect(self.path, isolation_level=None)) as connection:
            columns = _FIELDS[table]
            row = list(
                connection.execute(f"SELECT {', '.join(columns)} FROM {table} ORDER BY 1 DESC LIMIT 1").fetchone()
            )
            old = tuple(row)
            at = columns.index(column)
            try:
                row[at] = text if isinstance(row[at], bytes) else type(row[at])(text.decode(errors="replace"))
                given = ", ".join(f"{name} = ?" for name in columns)
                connection.execute(
                    f"UPDATE {table} SET {given}, checksum = ? WHERE {columns[0]} = ?", (*row, checksum(*row), old[0])
                )
            except (ValueError, OverflowError, sqlite3.Error):
                # No store can hold this.
                return None
        return self._use()

    def file(self, data: bytes) -> object:
        """Go on with a file of any bytes."""
        self._put(data)
        return self._use()

    def _put(self, data: bytes) -> None:
        for ending in ("-wal", "-shm", "-journal"):
            Path(f"{self.path}{ending}").unlink(missing_ok=True)
        self.path.write_bytes(data)

    def _use(self) -> object:
        store = SqliteStore(self.path)
        problem = None
        try:
            saved = store.open(settings=SETTINGS)
            n_hashes = sum(len(hashes) for _, hashes in saved.issued)
            store.commit(numbered_commit(saved.number + 1))
        except QueryveilError as error:
            problem = error
        finally:
            store.close()
        table = ProfileDatabase(self.path).table()
        ProfileDatabase(self.path).of_user("pseudonym 7")
        if problem is not None:
            raise problem
        return n_hashes, table.height


def targets(folder: Path) -> list[Target]:
    """Return the targets; the store is in the folder."""
    store, other = _Store(folder), _Store(folder / "other")
    (folder / "other").mkdir(exist_ok=True)
    places: Sequence[bytes] = [f"{table}.{name}=".encode() for table, names in _FIELDS.items() for name in names]
    return [
        Target(name="store.row", read=store.replaced, seeds=store.fields, words=(*places, b'[["a",1', b"]]", b"],\n[")),
        Target(name="store.file", read=other.file, seeds=lambda: [other.whole()]),
        Target(name="pools.packed", read=_goes_on, seeds=lambda: [_packed(_pools()[0])]),
        Target(name="pools.state", read=_with_state, seeds=lambda: [_pools()[0][7:]]),
        Target(name="pools.numbers", read=_numbers, seeds=_described),
        Target(name="pools.users", read=partial(_with_frame, name="users"), seeds=lambda: [_state().users]),
        Target(name="pools.queries", read=partial(_with_frame, name="queries"), seeds=lambda: [_state().queries]),
    ]
