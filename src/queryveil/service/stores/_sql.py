"""The state of a stream in SQL tables: what the stores in SQLite and in PostgreSQL have in common.

Both have the same tables: `state` (one row with position, counts and the number of the last commit), `pools` (events
that wait, the only raw queries), `outbox` (released lines that the sink may not have yet), `issued` (hashes of who
asked what) and `sent_keys` (hashes of idempotency keys). A subclass connects, locks, and adds to the profiles. Every
row has a checksum, which is compared when it is read; rows that were written before there were any have none.
"""

import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from types import UnionType
from typing import Any, ClassVar

import msgspec
import polars as pl

from queryveil.errors import BadFile, StoreBusy
from queryveil.service.ports import Commit, Outgoing, Saved
from queryveil.service.settings import check_settings

N_KEYS = 100_000
"""How many idempotency keys are kept."""
_CHUNK_BYTES = 8192
_N_EXPIRED_AT_ONCE = 4
_HASH_BYTES = 8
DAMAGED = "is damaged; restore a copy, or name another --store"
TABLES = ("state", "pools", "outbox", "issued", "sent_keys")
"""The tables whose rows have a checksum."""


def checksum(*fields: str | int | bytes | None) -> bytes:
    """Return the checksum of a row: CRC-32 over its fields, each with its length.

    >>> checksum("ann", 3) == checksum("ann", 3), checksum("ann", 3) == checksum("an", 3)
    (True, False)
    """
    code = 0
    for field in fields:
        data = field if isinstance(field, bytes) else str(field).encode(errors="surrogatepass")
        code = zlib.crc32(data, zlib.crc32(b"%d:" % len(data), code))
    return code.to_bytes(4, "big")


def is_whole(stored: bytes | None, *fields: str | int | bytes | None) -> bool:
    """Return whether a row is as it was written, as far as it has a checksum."""
    return stored is None or stored == checksum(*fields)


def has_types(row: Sequence[Any], *kinds: type | UnionType) -> bool:
    """Return whether the fields of a row are what they were written as: a damaged file may hold anything.

    >>> has_types(("ann", None), str, int | None), has_types(("ann", b"3"), str, int | None)
    (True, False)
    """
    return all(isinstance(field, kind) for field, kind in zip(row, kinds, strict=True))


class SqlStore(ABC):
    """Keeps the state in SQL tables; a commit is one transaction."""

    _insert_state: ClassVar[str]
    """Inserts the row of a stream that begins; its parameter is the settings."""
    _row_lock: ClassVar[str] = ""
    """Follows a SELECT whose row is to be locked until the transaction ends."""

    def __init__(self) -> None:
        self._connection: Any = None
        self._is_open = False
        self._number = 0

    @property
    @abstractmethod
    def _label(self) -> str:
        """The store as errors call it."""

    @abstractmethod
    def has_begun(self) -> bool:
        """Return whether a stream has committed something here; nothing is made or changed."""

    @abstractmethod
    def _connect(self) -> None:
        """Take the store for this process alone, and create the tables if there are none."""

    @abstractmethod
    def _errors(self) -> AbstractContextManager[None]:
        """Translate errors of the database into ours."""

    @abstractmethod
    def _transaction(self) -> AbstractContextManager[None]:
        """Commit at the end of the block, or roll back."""

    @abstractmethod
    def _execute(self, query: str, *values: Any) -> Any:
        """Run one statement; its parameters are written `?`."""

    @abstractmethod
    def _execute_many(self, query: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Run one statement for each row of parameters."""

    @abstractmethod
    def _add_to_profiles(self, profiles: pl.DataFrame) -> None:
        """Add counts (user, category, n), in the transaction of a commit."""

    @abstractmethod
    def _after_commit(self) -> None:
        """Do the maintenance that is due; the commit itself is safe."""

    @abstractmethod
    def close(self) -> None:
        """Release the lock and disconnect."""

    def open(self, *, settings: str) -> Saved:
        """Take the store for this process alone, and return what it has."""
        try:
            self._connect()
            with self._errors():
                saved = self._read(settings.replace("\0", ""))
        except BaseException:
            self.close()
            raise
        self._number, self._is_open = saved.number, True
        return saved

    def _read(self, settings: str) -> Saved:
        row = self._state_row()
        if row is None:
            self._execute(self._insert_state, settings, checksum(settings, 0, None, 0, 0, 0, "{}"))
            return Saved()
        before, number, position, generation, delivered, n_bytes_out, counts = row
        if number == 0:
            # Nothing was made with them yet: a first start may have failed over a mistake in them.
            self._write_state_row((settings, *row[1:]))
            return Saved()
        check_settings(settings, before=before.replace("\0", ""))
        pools = self._execute("SELECT data, checksum FROM pools").fetchone()
        self._check(pools is not None and is_whole(pools[1], pools[0]) and has_types(pools[:1], bytes))
        keys = self._execute("SELECT key, checksum FROM sent_keys ORDER BY id").fetchall()
        self._check(all(is_whole(stored, key) and has_types((key,), str) for key, stored in keys))
        try:
            counted = msgspec.json.decode(counts, type=dict[str, int])
        except msgspec.MsgspecError:
            raise self._damaged() from None
        return Saved(
            number=number,
            position=position,
            pools=pools[0],
            keys=tuple(key for key, _ in keys),
            issued=self._issued(generation),
            outgoing=self._outbox(delivered=delivered, n_bytes_out=n_bytes_out),
            delivered=delivered,
            n_bytes_out=n_bytes_out,
            counts=counted,
        )

    def _state_row(self) -> tuple[Any, ...] | None:
        """Return settings, number, position, generation, delivered, n_bytes_out and counts, if there are any yet."""
        row = self._execute(
            "SELECT checksum, settings, number, position, generation, delivered, n_bytes_out, counts "
            f"FROM state{self._row_lock}"
        ).fetchone()
        if row is None:
            return None
        stored, *fields = row
        self._check(has_types(fields, str, int, str | None, int, int, int, str))
        _, number, _, generation, delivered, n_bytes_out, _ = fields
        self._check(is_whole(stored, *fields) and min(number, generation, delivered, n_bytes_out) >= 0)
        return tuple(fields)

    def _write_state_row(self, fields: tuple[Any, ...]) -> None:
        self._execute(
            "UPDATE state SET settings = ?, number = ?, position = ?, generation = ?, delivered = ?, n_bytes_out = ?, "
            "counts = ?, checksum = ?",
            *fields,
            checksum(*fields),
        )

    def _outbox(self, *, delivered: int, n_bytes_out: int) -> tuple[Outgoing, ...]:
        """Return what the sink may not have: batches without a gap, up to the last byte that was released."""
        rows = self._execute(
            "SELECT number, byte_offset, data, n_rows, checksum FROM outbox ORDER BY number"
        ).fetchall()
        for expected, (number, start, data, n_rows, stored) in enumerate(rows, start=delivered + 1):
            self._check(is_whole(stored, number, start, data, n_rows))
            self._check(has_types((number, start, data, n_rows), int, int, bytes, int))
            self._check(number == expected and start >= 0 and n_rows >= 0)
            is_last = number == delivered + len(rows) and stored is not None
            self._check(not is_last or start + len(data) == n_bytes_out)
        return tuple(Outgoing(number=n, offset=start, data=data, n_rows=m) for n, start, data, m, _ in rows)

    def _check(self, is_sound: bool) -> None:
        if not is_sound:
            raise self._damaged()

    def _damaged(self) -> BadFile:
        return BadFile(self._label, DAMAGED)

    def _issued(self, generation: int) -> Iterator[tuple[int, bytes]]:
        """Yield the hashes chunk by chunk: all of them together may be half a gigabyte."""
        after = 0
        while self._connection is not None:
            with self._errors():
                row = self._execute(
                    "SELECT id, generation, hashes, checksum FROM issued WHERE id > ? AND generation >= ? "
                    "ORDER BY id LIMIT 1",
                    after,
                    generation - 1,
                ).fetchone()
            if row is None:
                return
            number, made_in, hashes, stored = row
            self._check(has_types((number, made_in, hashes), int, int, bytes))
            self._check(is_whole(stored, number, made_in, hashes) and len(hashes) % _HASH_BYTES == 0)
            self._check(after in (0, number - 1) and made_in <= generation)
            after = number
            yield made_in, hashes

    def commit(self, commit: Commit) -> None:
        """Write everything or nothing, to disk. After a failure the same commit may be given again."""
        if not self._is_open:
            raise BadFile(self._label, "the store is not open")
        with self._transaction():
            self._write(commit)
        self._number = max(self._number, commit.number)
        self._after_commit()

    def _write(self, commit: Commit) -> None:
        row = self._state_row()
        number = row[1] if row else -1
        if number not in (self._number, commit.number):
            # Another process has written since.
            raise StoreBusy(self._label)
        if commit.number <= number:
            # A commit whose answer was lost looks like a failure, and is there all the same.
            return
        if commit.number != number + 1:
            raise ValueError(f"commit {commit.number} does not follow {number}")
        assert row is not None
        self._write_state(commit, before=row)
        self._write_hashes(commit)
        if commit.profiles is not None and not commit.profiles.is_empty():
            self._add_to_profiles(commit.profiles)

    def _write_state(self, commit: Commit, *, before: tuple[Any, ...]) -> None:
        execute = self._execute
        settings, _, _, _, delivered, n_bytes_out, _ = before
        execute(
            "INSERT INTO pools (id, data, checksum) VALUES (1, ?, ?) "
            "ON CONFLICT (id) DO UPDATE SET data = excluded.data, checksum = excluded.checksum",
            commit.pools,
            checksum(commit.pools),
        )
        if commit.outgoing is not None:
            out = commit.outgoing
            row = (out.number, out.offset, out.data, out.n_rows)
            execute(
                "INSERT INTO outbox (number, byte_offset, data, n_rows, checksum) VALUES (?, ?, ?, ?, ?)",
                *row,
                checksum(*row),
            )
            n_bytes_out = out.offset + len(out.data)
        execute("DELETE FROM outbox WHERE number <= ?", commit.delivered)
        counts = msgspec.json.encode(dict(commit.counts)).decode()
        delivered = max(delivered, commit.delivered)
        position, generation = commit.position, commit.generation
        self._write_state_row((settings, commit.number, position, generation, delivered, n_bytes_out, counts))
        if commit.keys:
            rows = [(key, checksum(key)) for key in commit.keys]
            self._execute_many("INSERT INTO sent_keys (key, checksum) VALUES (?, ?)", rows)
            execute("DELETE FROM sent_keys WHERE id <= (SELECT max(id) FROM sent_keys) - ?", N_KEYS)

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
        last = self._execute(
            "SELECT id, generation, CASE WHEN length(hashes) < ? THEN hashes END, checksum FROM issued "
            "ORDER BY id DESC LIMIT 1",
            _CHUNK_BYTES,
        ).fetchone()
        chunk, generation, hashes, stored = last or (0, -1, None, None)
        if generation == commit.generation and hashes is not None:
            self._check(is_whole(stored, chunk, generation, hashes))
            hashes += commit.issued
            code = checksum(chunk, generation, hashes)
            self._execute("UPDATE issued SET hashes = ?, checksum = ? WHERE id = ?", hashes, code, chunk)
        else:
            row = (chunk + 1, commit.generation, commit.issued)
            self._execute(
                "INSERT INTO issued (id, generation, hashes, checksum) VALUES (?, ?, ?, ?)", *row, checksum(*row)
            )
