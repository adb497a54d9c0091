"""The state of a stream in one SQLite file."""

import fcntl
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote as quote_path

import polars as pl

from queryveil.errors import BadFile, QueryveilError, StoreBusy, Unreachable
from queryveil.service.ports import Saved
from queryveil.service.stores import _profile_blocks as blocks
from queryveil.service.stores._sql import DAMAGED, TABLES, SqlStore

APPLICATION = 0x71766C73
VERSION = 2

_SCHEMA = """
CREATE TABLE state (
    id INTEGER PRIMARY KEY CHECK (id = 1), settings TEXT NOT NULL, number INTEGER NOT NULL, position TEXT,
    generation INTEGER NOT NULL, delivered INTEGER NOT NULL, n_bytes_out INTEGER NOT NULL, counts TEXT NOT NULL
) STRICT;
CREATE TABLE pools (id INTEGER PRIMARY KEY CHECK (id = 1), data BLOB NOT NULL) STRICT;
CREATE TABLE outbox (
    number INTEGER PRIMARY KEY, byte_offset INTEGER NOT NULL, data BLOB NOT NULL, n_rows INTEGER NOT NULL
) STRICT;
CREATE TABLE issued (id INTEGER PRIMARY KEY, generation INTEGER NOT NULL, hashes BLOB NOT NULL) STRICT;
CREATE TABLE sent_keys (id INTEGER PRIMARY KEY, key TEXT NOT NULL) STRICT;
"""
_ADD_CHECKSUMS = "".join(
    f"ALTER TABLE {table} ADD COLUMN checksum BLOB;\n" for table in (*TABLES, *blocks.PROFILE_TABLES)
)
"""From version 1 to 2; rows that are there already stay without one until they are written again."""

_REASONS = {
    "SQLITE_FULL": "the disk is full",
    "SQLITE_BUSY": "another program holds it; close that one",
    "SQLITE_READONLY": "it may not be written to",
    "SQLITE_CANTOPEN": "it cannot be opened",
}
_PASSING = ("SQLITE_IOERR", "SQLITE_LOCKED", "SQLITE_NOMEM", "SQLITE_PROTOCOL", "SQLITE_INTERRUPT")
_MAGIC = b"SQLite format 3\0"
_HEADER_BYTES = 100
_APPLICATION_AT = 68
_NO_DATABASE = "this is no SQLite database; name another store"
_OF_ANOTHER = "this is a database of another program; name another store"
_SECONDS_IN_WAL = 1.0
_WAL_BYTES = 32 << 20


class SqliteStore(SqlStore):
    """Keeps the state in a file that only its owner can read and only one process can use.

    Raw queries wait in the table `pools` alone. What is deleted is overwritten, and the write-ahead log is truncated
    about a second after a commit, and at the end.

    - `path`: the file; it is created if it is not there.
    """

    _insert_state = "INSERT INTO state VALUES (1, ?, 0, NULL, 0, 0, 0, '{}', ?)"

    def __init__(self, path: str | Path) -> None:
        super().__init__()
        self.path = Path(path)
        self._descriptor: int | None = None
        # Changes of profiles that are not yet in their blocks: after the last commit, and after the one under way.
        self._backlog = self._next_backlog = blocks.Backlog()
        self._truncated_at = -_SECONDS_IN_WAL

    def __repr__(self) -> str:
        return f"SqliteStore({self.path.name!r})"

    @property
    def _label(self) -> str:
        return self.path.name

    def open(self, *, settings: str) -> Saved:
        """Take the file for this process alone, and return what it has."""
        saved = super().open(settings=settings)
        try:
            with self._errors():
                blocks.check_profiles(self._connection)
                self._backlog = self._next_backlog = blocks.read_backlog(self._connection)
        except BaseException:
            self.close()
            raise
        return saved

    def has_begun(self) -> bool:
        """Return whether a stream has committed something to the file; nothing is made or changed."""
        if not self.path.is_file() or not self.path.stat().st_size:
            return False
        with open_to_read(self.path) as connection:
            # Where a first start was cut off there are no tables yet.
            (is_there,) = connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'state'").fetchone()
            row = connection.execute("SELECT number FROM state").fetchone() if is_there else None
        return row is not None and row[0] > 0

    def _connect(self) -> None:
        self._descriptor = _lock_file(self.path)
        self._connection = _connect(self.path, self._descriptor)

    def _errors(self) -> AbstractContextManager[None]:
        return translate_errors(self.path)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        try:
            self._execute("BEGIN IMMEDIATE")
            yield
            self._execute("COMMIT")
        except BaseException as error:
            if self._connection.in_transaction:
                self._next_backlog = self._backlog
                with suppress(sqlite3.Error):
                    self._execute("ROLLBACK")
            if isinstance(error, sqlite3.Error):
                # Where the disk is full, the write-ahead log itself may be what fills it.
                self._truncate_wal(now=True)
                # Privacy: the library's message may quote a value.
                raise _translate(error, self.path) from None
            raise

    def _execute(self, query: str, *values: Any) -> sqlite3.Cursor:
        found: sqlite3.Cursor = self._connection.execute(query, values)
        return found

    def _execute_many(self, query: str, rows: Iterable[tuple[Any, ...]]) -> None:
        self._connection.executemany(query, rows)

    def _add_to_profiles(self, profiles: pl.DataFrame) -> None:
        self._next_backlog = blocks.add_to_profiles(self._connection, profiles, backlog=self._backlog)

    def _after_commit(self) -> None:
        # A commit that was interrupted just after it was written comes again, and its backlog is this one too.
        self._backlog = self._next_backlog
        self._truncate_wal()

    def maintain(self) -> None:
        """Truncate the write-ahead log after the last commits: an idle stream has no next one that would do it."""
        if self._connection is not None:
            self._truncate_wal()

    def _truncate_wal(self, *, now: bool = False) -> None:
        """Privacy: the write-ahead log has what waited in the pools earlier, so it does not grow old."""
        # The commit itself is safe; a disk that fails here is met again by the next one.
        with suppress(sqlite3.Error, OSError):
            n_bytes = Path(f"{self.path}-wal").stat().st_size
            is_due = n_bytes > _WAL_BYTES or time.monotonic() - self._truncated_at > _SECONDS_IN_WAL
            if n_bytes and (is_due or now):
                self._truncated_at = time.monotonic()
                _truncate_wal(self._connection)

    def close(self) -> None:
        """Truncate the write-ahead log, and unlock the file."""
        connection, descriptor = self._connection, self._descriptor
        self._connection = self._descriptor = None
        self._is_open = False
        # The lock goes last: closing its descriptor earlier would drop SQLite's own locks.
        if connection is not None:
            with suppress(sqlite3.Error):
                _truncate_wal(connection)
            connection.close()
        if descriptor is not None:
            os.close(descriptor)


def _lock_file(path: Path) -> int:
    """Open the file for its owner alone, create it if it is not there, lock it, and return its descriptor."""
    try:
        # Privacy: the mode holds from the start, so that nobody else can open it before it is set.
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise BadFile(path.name, f"the store cannot be opened: {error.strerror}") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Before SQLite is asked, which may write beside a file, and before its mode is set: it may be another's.
        _check_begin(os.pread(descriptor, _HEADER_BYTES, 0), path)
    except (OSError, BadFile) as error:
        os.close(descriptor)
        if isinstance(error, BlockingIOError):
            raise StoreBusy(path.name) from None
        if isinstance(error, OSError):
            raise BadFile(path.name, f"the store cannot be used: {error.strerror}") from None
        raise
    return descriptor


def _check_begin(header: bytes, path: Path) -> None:
    """Raise if a file begins as that of another program."""
    if header and not header.startswith(_MAGIC):
        raise BadFile(path.name, _NO_DATABASE)
    application = header[_APPLICATION_AT : _APPLICATION_AT + 4]
    if any(application) and application != APPLICATION.to_bytes(4, "big"):
        raise BadFile(path.name, _OF_ANOTHER)


def _connect(path: Path, descriptor: int) -> sqlite3.Connection:
    """Connect for writing, and create the tables if there are none."""
    with translate_errors(path):
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=5)
    try:
        with translate_errors(path):
            check_version(connection, path)
            # Privacy: a store that others could read is closed to them, and so are the files that SQLite adds.
            os.fchmod(descriptor, 0o600)
            # Profiles change many rows of a page at once: large pages take half the time of small ones.
            connection.execute("PRAGMA page_size=16384")
            for setting in ("journal_mode=WAL", "synchronous=FULL", "secure_delete=ON", "wal_autocheckpoint=0"):
                connection.execute(f"PRAGMA {setting}").fetchall()
            connection.execute("PRAGMA cache_size=-65536")
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if version < VERSION:
                made = "" if version else f"PRAGMA application_id={APPLICATION}; {_SCHEMA}{blocks.PROFILE_SCHEMA}"
                begun = "" if version else blocks.FIRST_PROGRESS
                connection.executescript(
                    f"BEGIN IMMEDIATE; {made}{_ADD_CHECKSUMS}{begun}PRAGMA user_version={VERSION}; COMMIT;"
                )
            _check_pages(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _check_pages(connection: sqlite3.Connection, path: Path) -> None:
    """Raise if the file is not built as SQLite builds it; rows have checksums, pages have none."""
    if connection.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
        raise BadFile(path.name, DAMAGED)


@contextmanager
def open_to_read(path: Path) -> Iterator[sqlite3.Connection]:
    """Connect to a file for reading; raise if it is no store."""
    with translate_errors(path):
        connection = sqlite3.connect(f"file:{quote_path(str(path.absolute()))}?mode=ro", uri=True, isolation_level=None)
        try:
            with path.open("rb") as file:
                _check_begin(file.read(_HEADER_BYTES), path)
            check_version(connection, path)
            yield connection
        finally:
            connection.close()


def check_version(connection: sqlite3.Connection, path: Path) -> None:
    """Raise unless the database is empty or a store of this version."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (n_tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if n_tables and application != APPLICATION:
        raise BadFile(path.name, _OF_ANOTHER)
    if version > VERSION:
        raise BadFile(path.name, "this store was written by a newer queryveil; update queryveil")
    if version < (1 if n_tables else 0):
        raise BadFile(path.name, DAMAGED)


@contextmanager
def translate_errors(path: Path) -> Iterator[None]:
    """Translate errors of SQLite into one line about the file."""
    try:
        yield
    except sqlite3.Error as error:
        # Privacy: the message of the library may quote a value, so only its kind is told.
        raise _translate(error, path) from None
    except UnicodeDecodeError:
        # The library quotes what it cannot read.
        raise BadFile(path.name, DAMAGED) from None


def _translate(error: sqlite3.Error, path: Path) -> QueryveilError:
    """Return our error: a file that is no store stays wrong, all else may pass."""
    kind = getattr(error, "sqlite_errorname", "") or type(error).__name__
    if kind.startswith("SQLITE_NOTADB"):
        return BadFile(path.name, _NO_DATABASE)
    known = (words for start, words in _REASONS.items() if kind.startswith(start))
    reason = next(known, f"disk error ({kind})" if kind.startswith(_PASSING) else "")
    # A table, column or text that is not as it was made stays so.
    return Unreachable(path.name, reason) if reason else BadFile(path.name, DAMAGED)


def _truncate_wal(connection: sqlite3.Connection) -> None:
    """Checkpoint the write-ahead log and truncate it, unless a reader still needs it."""
    try:
        connection.execute("PRAGMA busy_timeout=50")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    finally:
        connection.execute("PRAGMA busy_timeout=5000")
