"""The state of a stream in one SQLite file."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import msgspec

from queryveil.errors import BadFile
from queryveil.service.ports import Commit, Outgoing, Saved
from queryveil.service.settings import check_settings
from queryveil.service.stores.sqlite_file import connect, empty_log, explained, let_go, take_file, telling
from queryveil.service.stores.sqlite_profiles import Backlog, add_to_profiles, read_backlog

N_KEYS: Final = 100_000
"""How many senders' keys are remembered."""
_PIECE: Final = 8192
_N_FORGOTTEN: Final = 4
_SECONDS_IN_WAL: Final = 1.0
_WAL_BYTES: Final = 32 << 20


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class _Written:
    """What the next commit has to know of the file: its number, its last piece of hashes, what profiles wait for."""

    number: int = 0
    piece: int = 0
    generation: int = -1
    hashes: bytes = b""
    backlog: Backlog = field(default_factory=Backlog)


class SqliteStore:
    """Keep the state in a file that only its owner can read and only one process can use.

    Raw queries wait in the table `pools` alone. What is deleted is overwritten, and the write-ahead log is emptied
    about a second after a commit, and at the end.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._connection: sqlite3.Connection | None = None
        self._descriptor: int | None = None
        self._written = _Written()
        self._emptied_at = -_SECONDS_IN_WAL

    def __repr__(self) -> str:
        return f"SqliteStore({self.path.name!r})"

    def open(self, *, settings: str) -> Saved:
        """Take the file for this process alone, and give what it has."""
        self._descriptor = take_file(self.path)
        try:
            self._connection = connect(self.path)
            with telling(self.path):
                return self._read(self._connection, settings)
        except BaseException:
            self.close()
            raise

    def _read(self, connection: sqlite3.Connection, settings: str) -> Saved:
        row = connection.execute(
            "SELECT settings, number, position, generation, delivered, n_bytes_out, counts FROM state"
        ).fetchone()
        if row is None:
            connection.execute("INSERT INTO state VALUES (1, ?, 0, NULL, 0, 0, 0, '{}')", (settings,))
            self._written = _Written()
            return Saved()
        if row[1] == 0:
            # Nothing was made with them yet: a first start may have failed over a mistake in them.
            connection.execute("UPDATE state SET settings = ?", (settings,))
            self._written = _read_written(connection)
            return Saved()
        check_settings(settings, before=row[0])
        _, number, position, generation, delivered, n_bytes_out, counts = row
        pools = connection.execute("SELECT data FROM pools").fetchone()
        self._written = _read_written(connection)
        outbox = connection.execute("SELECT number, byte_offset, data, n_rows FROM outbox ORDER BY number")
        return Saved(
            number=number,
            position=position,
            pools=pools[0] if pools else b"",
            keys=tuple(key for (key,) in connection.execute("SELECT key FROM sent_keys ORDER BY id")),
            issued=self._issued(generation),
            outgoing=tuple(Outgoing(number=n, offset=start, data=data, n_rows=m) for n, start, data, m in outbox),
            delivered=delivered,
            n_bytes_out=n_bytes_out,
            counts=msgspec.json.decode(counts, type=dict[str, int]),
        )

    def _issued(self, generation: int) -> Iterator[tuple[int, bytes]]:
        """Return the hashes piece by piece: all of them together may be half a gigabyte."""
        after = 0
        while self._connection is not None:
            with telling(self.path):
                row = self._connection.execute(
                    "SELECT id, generation, hashes FROM issued WHERE id > ? AND generation >= ? ORDER BY id LIMIT 1",
                    (after, generation - 1),
                ).fetchone()
            if row is None:
                return
            after = row[0]
            yield row[1], row[2]

    def commit(self, commit: Commit) -> None:
        """Write everything or nothing, to disk. After a failure the same commit may be given again."""
        connection = self._connection
        if connection is None:
            raise BadFile(self.path.name, "the store is not open")
        try:
            connection.execute("BEGIN IMMEDIATE")
            written = self._write(connection, commit)
            connection.execute("COMMIT")
        except BaseException as error:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            if isinstance(error, sqlite3.Error):
                # Where the disk is full, the write-ahead log itself may be what fills it.
                self._empty_log(connection, now=True)
                # Privacy: the library's message may quote a value.
                raise explained(error, self.path) from None
            raise
        self._written = written
        self._empty_log(connection)

    def _write(self, connection: sqlite3.Connection, commit: Commit) -> _Written:
        (number,) = connection.execute("SELECT number FROM state").fetchone()
        # A commit that was cut short just after it was written looks like a failure, and is there all the same.
        before = self._written if number == self._written.number else _read_written(connection)
        if commit.number <= number:
            return before
        if commit.number != number + 1:
            raise ValueError(f"commit {commit.number} does not follow {number}")
        _write_state(connection, commit)
        written = _write_hashes(connection, commit, before=replace(before, number=commit.number))
        if commit.profiles is None or commit.profiles.is_empty():
            return written
        backlog = add_to_profiles(connection, commit.profiles, backlog=written.backlog)
        return replace(written, backlog=backlog)

    def _empty_log(self, connection: sqlite3.Connection, *, now: bool = False) -> None:
        """Privacy: the write-ahead log has what waited in the pools earlier, so it does not grow old."""
        # The commit itself is safe; a disk that fails here is met again by the next one.
        with suppress(sqlite3.Error, OSError):
            n_bytes = Path(f"{self.path}-wal").stat().st_size
            is_due = n_bytes > _WAL_BYTES or time.monotonic() - self._emptied_at > _SECONDS_IN_WAL
            if n_bytes and (is_due or now):
                self._emptied_at = time.monotonic()
                empty_log(connection)

    def maintain(self) -> None:
        """Empty the write-ahead log of the last commits, as a quiet stream has no next one that would do it."""
        if self._connection is not None:
            self._empty_log(self._connection)

    def close(self) -> None:
        """Empty the write-ahead log and give the file back."""
        connection, descriptor = self._connection, self._descriptor
        self._connection = self._descriptor = None
        let_go(connection, descriptor)


def _read_written(connection: sqlite3.Connection) -> _Written:
    (number,) = connection.execute("SELECT number FROM state").fetchone()
    last = connection.execute("SELECT id, generation, hashes FROM issued ORDER BY id DESC LIMIT 1").fetchone()
    piece, generation, hashes = last or (0, -1, b"")
    backlog = read_backlog(connection)
    return _Written(number=number, piece=piece, generation=generation, hashes=hashes, backlog=backlog)


def _write_state(connection: sqlite3.Connection, commit: Commit) -> None:
    execute = connection.execute
    execute("INSERT OR REPLACE INTO pools VALUES (1, ?)", (commit.pools,))
    if commit.outgoing is not None:
        out = commit.outgoing
        execute("INSERT INTO outbox VALUES (?, ?, ?, ?)", (out.number, out.offset, out.data, out.n_rows))
        execute("UPDATE state SET n_bytes_out = ?", (out.offset + len(out.data),))
    execute("DELETE FROM outbox WHERE number <= ?", (commit.delivered,))
    counts = msgspec.json.encode(dict(commit.counts)).decode()
    execute(
        "UPDATE state SET number = ?, position = ?, generation = ?, delivered = max(delivered, ?), counts = ?",
        (commit.number, commit.position, commit.generation, commit.delivered, counts),
    )
    if commit.keys:
        connection.executemany("INSERT INTO sent_keys (key) VALUES (?)", ((key,) for key in commit.keys))
        execute("DELETE FROM sent_keys WHERE id <= (SELECT max(id) FROM sent_keys) - ?", (N_KEYS,))


def _write_hashes(connection: sqlite3.Connection, commit: Commit, *, before: _Written) -> _Written:
    """Add the hashes to the last piece while that is small, or small batches would make millions of rows."""
    # Some at a time: a whole generation at once would hold up the stream for seconds.
    connection.execute(
        "DELETE FROM issued WHERE generation < ? AND id IN (SELECT id FROM issued ORDER BY id LIMIT ?)",
        (commit.generation - 1, _N_FORGOTTEN),
    )
    if not commit.issued:
        return before
    if before.generation == commit.generation and len(before.hashes) < _PIECE:
        piece, hashes = before.piece, before.hashes + commit.issued
        connection.execute("UPDATE issued SET hashes = ? WHERE id = ?", (hashes, piece))
    else:
        piece, hashes = before.piece + 1, commit.issued
        connection.execute("INSERT INTO issued VALUES (?, ?, ?)", (piece, commit.generation, hashes))
    return replace(before, piece=piece, generation=commit.generation, hashes=hashes)
