"""The state of a stream in SQL tables: what the stores in SQLite and in PostgreSQL have in common.

Both have the same tables: `state` (one row with position, counts and the number of the last commit), `pools` (events
that wait, the only raw queries), `outbox` (released lines that the sink may not have yet), `issued` (hashes of who
asked what) and `sent_keys` (hashes of idempotency keys). A subclass connects, locks, and adds to the profiles.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any, ClassVar, Final

import msgspec
import polars as pl

from queryveil.errors import BadFile, StoreBusy
from queryveil.service.ports import Commit, Outgoing, Saved
from queryveil.service.settings import check_settings

N_KEYS: Final = 100_000
"""How many idempotency keys are kept."""
_CHUNK_BYTES: Final = 8192
_N_EXPIRED_AT_ONCE: Final = 4


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
        row = self._execute(
            "SELECT settings, number, position, generation, delivered, n_bytes_out, counts FROM state"
        ).fetchone()
        if row is None:
            self._execute(self._insert_state, settings)
            return Saved()
        before, number, position, generation, delivered, n_bytes_out, counts = row
        if number == 0:
            # Nothing was made with them yet: a first start may have failed over a mistake in them.
            self._execute("UPDATE state SET settings = ?", settings)
            return Saved()
        check_settings(settings, before=before.replace("\0", ""))
        pools = self._execute("SELECT data FROM pools").fetchone()
        outbox = self._execute("SELECT number, byte_offset, data, n_rows FROM outbox ORDER BY number").fetchall()
        keys = self._execute("SELECT key FROM sent_keys ORDER BY id").fetchall()
        return Saved(
            number=number,
            position=position,
            pools=pools[0] if pools else b"",
            keys=tuple(key for (key,) in keys),
            issued=self._issued(generation),
            outgoing=tuple(Outgoing(number=n, offset=start, data=data, n_rows=m) for n, start, data, m in outbox),
            delivered=delivered,
            n_bytes_out=n_bytes_out,
            counts=msgspec.json.decode(counts, type=dict[str, int]),
        )

    def _issued(self, generation: int) -> Iterator[tuple[int, bytes]]:
        """Yield the hashes chunk by chunk: all of them together may be half a gigabyte."""
        after = 0
        while self._connection is not None:
            with self._errors():
                row = self._execute(
                    "SELECT id, generation, hashes FROM issued WHERE id > ? AND generation >= ? ORDER BY id LIMIT 1",
                    after,
                    generation - 1,
                ).fetchone()
            if row is None:
                return
            after = row[0]
            yield row[1], row[2]

    def commit(self, commit: Commit) -> None:
        """Write everything or nothing, to disk. After a failure the same commit may be given again."""
        if not self._is_open:
            raise BadFile(self._label, "the store is not open")
        with self._transaction():
            self._write(commit)
        self._number = max(self._number, commit.number)
        self._after_commit()

    def _write(self, commit: Commit) -> None:
        row = self._execute(f"SELECT number FROM state{self._row_lock}").fetchone()
        number = row[0] if row else -1
        if number not in (self._number, commit.number):
            # Another process has written since.
            raise StoreBusy(self._label)
        if commit.number <= number:
            # A commit whose answer was lost looks like a failure, and is there all the same.
            return
        if commit.number != number + 1:
            raise ValueError(f"commit {commit.number} does not follow {number}")
        self._write_state(commit)
        self._write_hashes(commit)
        if commit.profiles is not None and not commit.profiles.is_empty():
            self._add_to_profiles(commit.profiles)

    def _write_state(self, commit: Commit) -> None:
        execute = self._execute
        execute("INSERT INTO pools VALUES (1, ?) ON CONFLICT (id) DO UPDATE SET data = excluded.data", commit.pools)
        if commit.outgoing is not None:
            out = commit.outgoing
            execute("INSERT INTO outbox VALUES (?, ?, ?, ?)", out.number, out.offset, out.data, out.n_rows)
            execute("UPDATE state SET n_bytes_out = ?", out.offset + len(out.data))
        execute("DELETE FROM outbox WHERE number <= ?", commit.delivered)
        execute("UPDATE state SET delivered = ? WHERE delivered < ?", commit.delivered, commit.delivered)
        execute(
            "UPDATE state SET number = ?, position = ?, generation = ?, counts = ?",
            commit.number,
            commit.position,
            commit.generation,
            msgspec.json.encode(dict(commit.counts)).decode(),
        )
        if commit.keys:
            self._execute_many("INSERT INTO sent_keys (key) VALUES (?)", [(key,) for key in commit.keys])
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
            "SELECT id, generation, CASE WHEN length(hashes) < ? THEN hashes END FROM issued ORDER BY id DESC LIMIT 1",
            _CHUNK_BYTES,
        ).fetchone()
        chunk, generation, hashes = last or (0, -1, None)
        if generation == commit.generation and hashes is not None:
            self._execute("UPDATE issued SET hashes = ? WHERE id = ?", hashes + commit.issued, chunk)
        else:
            self._execute("INSERT INTO issued VALUES (?, ?, ?)", chunk + 1, commit.generation, commit.issued)
