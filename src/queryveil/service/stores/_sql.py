"""The state of a stream in SQL tables: what the stores in SQLite and in PostgreSQL have in common.

Both have the same tables: `state` (one row with position, counts and the number of the last commit), `pools` (events
that wait, the only raw queries), `outbox` (released lines that the sink may not have yet), `issued` (hashes of who
asked what) and `sent_keys` (hashes of idempotency keys). A subclass connects, locks, and adds to the profiles. Every
row has a checksum, which is compared when it is read; rows that were written before there were any have none.
"""

import zlib
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from types import UnionType
from typing import Any, ClassVar, NamedTuple

import msgspec
import polars as pl

from queryveil.errors import BadFile, StoreBusy
from queryveil.service.ports import N_KEYS, Commit, Outgoing, Saved, Store
from queryveil.service.settings import check_settings

_CHUNK_BYTES = 8192
_N_EXPIRED_AT_ONCE = 4
_HASH_BYTES = 8
DAMAGED = "is damaged; restore a copy, or name another --store"


class _State(NamedTuple):
    """The row of the table `state`."""

    settings: str
    number: int = 0
    position: str | None = None
    generation: int = 0
    delivered: int = 0
    n_bytes_out: int = 0
    counts: str = "{}"


Columns = Mapping[str, type | UnionType]
COLUMNS: Mapping[str, Columns] = {
    "state": _State.__annotations__,
    "pools": {"data": bytes},
    "outbox": {"number": int, "byte_offset": int, "data": bytes, "n_rows": int},
    "issued": {"id": int, "generation": int, "hashes": bytes},
    "sent_keys": {"key": str},
}
"""The columns that the checksum of a row is over, by table."""


def checksum(*fields: str | int | bytes | None) -> bytes:
    """Return the checksum of a row: CRC-32 over its fields, each with its length."""
    code = 0
    for field in fields:
        data = field if isinstance(field, bytes) else str(field).encode(errors="surrogatepass")
        code = zlib.crc32(data, zlib.crc32(b"%d:" % len(data), code))
    return code.to_bytes(4, "big")


def is_sound(stored: bytes | None, *fields: Any, columns: Columns) -> bool:
    """Return whether a row is as it was written: its fields have the types of the columns, and their checksum."""
    # A damaged file may hold anything, and a row of an earlier version has no checksum.
    has_types = all(isinstance(field, kind) for field, kind in zip(fields, columns.values(), strict=True))
    return has_types and stored in (None, checksum(*fields))


class SqlStore(Store):
    """Keeps the state in SQL tables; a commit is one transaction."""

    _insert_state: ClassVar[str]
    """Inserts the row of a stream that begins; its parameters are the settings and the checksum."""
    _row_lock: ClassVar[str] = ""
    """Follows a SELECT whose row is to be locked until the transaction ends."""
    _parameter: ClassVar[str] = "?"
    """Stands for a parameter in a statement."""

    def __init__(self, label: str, *, errors: Callable[[], AbstractContextManager[None]]) -> None:
        # What errors call the store, and what translates those of the database into ours.
        self._label, self._errors = label, errors
        self._connection: Any = None
        self._is_open = False
        self._number = 0

    @abstractmethod
    def _connect(self) -> None:
        """Take the store for this process alone, and create the tables if there are none."""

    @abstractmethod
    def _transaction(self) -> AbstractContextManager[None]:
        """Commit at the end of the block, or roll back."""

    @abstractmethod
    def _add_to_profiles(self, profiles: pl.DataFrame) -> None:
        """Add counts (user, category, n), in the transaction of a commit."""

    @abstractmethod
    def _after_commit(self) -> None:
        """Do the maintenance that is due; the commit itself is safe."""

    def open(self, *, settings: str) -> Saved:
        try:
            self._connect()
            with self._errors():
                saved = self._read(settings.replace("\0", ""))
        except BaseException:
            self.close()
            raise
        self._number, self._is_open = saved.number, True
        return saved

    def _execute(self, query: str, *values: Any) -> Any:
        """Run one statement; its parameters are written `?`."""
        return self._connection.execute(query.replace("?", self._parameter), values)

    def _rows(self, table: str, rest: str = "", *values: Any) -> list[tuple[Any, ...]]:
        """Return rows of a table, with their checksums before them; raise if one is not as it was written."""
        columns = COLUMNS[table]
        rows = self._execute(f"SELECT checksum, {', '.join(columns)} FROM {table} {rest}", *values).fetchall()
        self._check(all(is_sound(*row, columns=columns) for row in rows))
        return list(rows)

    def _insert(self, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
        columns = (*COLUMNS[table], "checksum")
        places = ", ".join([self._parameter] * len(columns))
        statement = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})"
        self._connection.cursor().executemany(statement, [(*row, checksum(*row)) for row in rows])

    def _check(self, is_as_written: bool) -> None:
        if not is_as_written:
            raise BadFile(self._label, DAMAGED)

    def _read(self, settings: str) -> Saved:
        state = self._state()
        if state is None:
            self._execute(self._insert_state, settings, checksum(*_State(settings)))
            return Saved()
        if state.number == 0:
            # Nothing was made with them yet: a first start may have failed over a mistake in them.
            self._write_state(state._replace(settings=settings))
            return Saved()
        check_settings(settings, before=state.settings.replace("\0", ""))
        pools = self._rows("pools")
        self._check(len(pools) == 1)
        try:
            counts = msgspec.json.decode(state.counts, type=dict[str, int])
        except msgspec.MsgspecError:
            raise BadFile(self._label, DAMAGED) from None
        return Saved(
            number=state.number,
            position=state.position,
            pools=pools[0][1],
            keys=tuple(key for _, key in self._rows("sent_keys", "ORDER BY id")),
            issued=self._issued(state.generation),
            outgoing=self._outbox(state),
            delivered=state.delivered,
            n_bytes_out=state.n_bytes_out,
            counts=counts,
        )

    def _state(self) -> _State | None:
        state = next((_State(*row) for _, *row in self._rows("state", self._row_lock)), None)
        self._check(not state or min(state.number, state.generation, state.delivered, state.n_bytes_out) >= 0)
        return state

    def _write_state(self, state: _State) -> None:
        columns = ", ".join(f"{name} = ?" for name in (*_State._fields, "checksum"))
        self._execute(f"UPDATE state SET {columns}", *state, checksum(*state))

    def _outbox(self, state: _State) -> tuple[Outgoing, ...]:
        """Return the batches whose delivery is not confirmed, without a gap, up to the last byte that was released."""
        rows = self._rows("outbox", "ORDER BY number")
        for expected, (stored, number, start, data, n_rows) in enumerate(rows, start=state.delivered + 1):
            self._check(number == expected and start >= 0 and n_rows >= 0)
            is_last = number == state.delivered + len(rows) and stored is not None
            self._check(not is_last or start + len(data) == state.n_bytes_out)
        return tuple(Outgoing(number=n, offset=start, data=data, n_rows=m) for _, n, start, data, m in rows)

    def _issued(self, generation: int) -> Iterator[tuple[int, bytes]]:
        """Yield the hashes chunk by chunk: all of them together may be half a gigabyte."""
        after = 0
        while self._connection is not None:
            with self._errors():
                next_chunk = "WHERE id > ? AND generation >= ? ORDER BY id LIMIT 1"
                rows = self._rows("issued", next_chunk, after, generation - 1)
            if not rows:
                return
            _, number, made_in, hashes = rows[0]
            self._check(len(hashes) % _HASH_BYTES == 0 and after in (0, number - 1) and made_in <= generation)
            after = number
            yield made_in, hashes

    def commit(self, commit: Commit) -> None:
        if not self._is_open:
            raise BadFile(self._label, "the store is not open")
        with self._transaction():
            self._write(commit)
        self._number = max(self._number, commit.number)
        self._after_commit()

    def _write(self, commit: Commit) -> None:
        state = self._state()
        if state is None or state.number not in (self._number, commit.number):
            # Another process has written since.
            raise StoreBusy(self._label)
        if commit.number <= state.number:
            # A commit whose answer was lost looks like a failure, and is there all the same.
            return
        if commit.number != state.number + 1:
            raise ValueError(f"commit {commit.number} does not follow {state.number}")
        self._write_changes(commit, before=state)
        self._write_hashes(commit)
        if commit.profiles is not None and not commit.profiles.is_empty():
            self._add_to_profiles(commit.profiles)

    def _write_changes(self, commit: Commit, *, before: _State) -> None:
        self._execute(
            "INSERT INTO pools (id, data, checksum) VALUES (1, ?, ?) "
            "ON CONFLICT (id) DO UPDATE SET data = excluded.data, checksum = excluded.checksum",
            commit.pools,
            checksum(commit.pools),
        )
        after = before._replace(
            number=commit.number,
            position=commit.position,
            generation=commit.generation,
            delivered=max(before.delivered, commit.delivered),
            counts=msgspec.json.encode(dict(commit.counts)).decode(),
        )
        if (out := commit.outgoing) is not None:
            self._insert("outbox", [(out.number, out.offset, out.data, out.n_rows)])
            after = after._replace(n_bytes_out=out.offset + len(out.data))
        self._execute("DELETE FROM outbox WHERE number <= ?", commit.delivered)
        self._write_state(after)
        if commit.keys:
            self._insert("sent_keys", [(key,) for key in commit.keys])
            self._execute("DELETE FROM sent_keys WHERE id <= (SELECT max(id) FROM sent_keys) - ?", N_KEYS)

    def _write_hashes(self, commit: Commit) -> None:
        """Add the hashes to the last chunk while that is small, or small batches would make millions of rows."""
        # Some at a time: a whole generation at once would hold up the stream for seconds.
        self._execute(
            "DELETE FROM issued WHERE generation < ? AND id IN (SELECT id FROM issued ORDER BY id LIMIT ?)",
            commit.generation - 1,
            _N_EXPIRED_AT_ONCE,
        )
        if not commit.issued:
            return
        (last,) = self._execute("SELECT coalesce(max(id), 0) FROM issued").fetchone()
        is_small = "WHERE id = ? AND generation = ? AND length(hashes) < ?"
        chunks = self._rows("issued", is_small, last, commit.generation, _CHUNK_BYTES)
        if chunks:
            self._execute("DELETE FROM issued WHERE id = ?", last)
        number, before = (last, chunks[0][-1]) if chunks else (last + 1, b"")
        self._insert("issued", [(number, commit.generation, before + commit.issued)])
