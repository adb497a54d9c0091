"""The state of a stream in one SQLite file."""

import fcntl
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from urllib.parse import quote as quote_path

import polars as pl

from queryveil.errors import BadFile, StoreBusy, Unreachable
from queryveil.service.ports import Saved
from queryveil.service.stores import _profile_blocks as blocks
from queryveil.service.stores._sql import COLUMNS, DAMAGED, SqlStore

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
    f"ALTER TABLE {table} ADD COLUMN checksum BLOB;\n" for table in (*COLUMNS, *blocks.PROFILE_COLUMNS)
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
        self.path = Path(path)
        super().__init__(self.path.name, errors=partial(translate_errors, self.path))
        self._descriptor: int | None = None
        # Changes of profiles that are not yet in their blocks: after the last commit, and after the one under way.
        self._backlog = self._next_backlog = blocks.Backlog()
        self._truncated_at = -_SECONDS_IN_WAL

    def __repr__(self) -> str:
        return f"SqliteStore({self.path.name!r})"

    def _read(self, settings: str) -> Saved:
        saved = super()._read(settings)
        blocks.check_profiles(self._connection)
        self._backlog = self._next_backlog = blocks.read_backlog(self._connection)
        return saved

    def has_begun(self) -> bool:
        if not self.path.is_file() or not self.path.stat().st_size:
            return False
        with open_to_read(self.path) as connection:
            # Where a first start was cut off there are no tables yet.
            (is_there,) = connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'state'").fetchone()
            row = connection.execute("SELECT number FROM state").fetchone() if is_there else None
        return row is not None and row[0] > 0

    def _connect(self) -> None:
        descriptor = self._lock_file()
        with self._errors():
            connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=5)
            self._connection = connection
            check_version(connection, self.path)
            # Privacy: a store that others could read is closed to them, and so are the files that SQLite adds.
            os.fchmod(descriptor, 0o600)
            # Profiles change many rows of a page at once: large pages take half the time of small ones.
            sizes = ("page_size=16384", "cache_size=-65536", "wal_autocheckpoint=0")
            for setting in (*sizes, "journal_mode=WAL", "synchronous=FULL", "secure_delete=ON"):
                connection.execute(f"PRAGMA {setting}").fetchall()
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if version < VERSION:
                made = "" if version else f"PRAGMA application_id={APPLICATION}; {_SCHEMA}{blocks.PROFILE_SCHEMA}"
                begun = "" if version else blocks.FIRST_PROGRESS
                connection.executescript(
                    f"BEGIN IMMEDIATE; {made}{_ADD_CHECKSUMS}{begun}PRAGMA user_version={VERSION}; COMMIT;"
                )
            # Rows have checksums, pages have none.
            if connection.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
                raise BadFile(self.path.name, DAMAGED)

    def _lock_file(self) -> int:
        """Open the file for its owner alone, create it if it is not there, lock it, and return its descriptor."""
        try:
            # Privacy: the mode holds from the start, so that nobody else can open it before it is set.
            self._descriptor = descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise BadFile(self.path.name, f"the store cannot be opened: {error.strerror}") from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Before SQLite is asked, which may write beside a file, and before its mode is set: it may be another's.
            _check_begin(os.pread(descriptor, _HEADER_BYTES, 0), self.path)
        except BlockingIOError:
            raise StoreBusy(self.path.name) from None
        except OSError as error:
            raise BadFile(self.path.name, f"the store cannot be used: {error.strerror}") from None
        return descriptor

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        try:
            with self._errors():
                self._execute("BEGIN IMMEDIATE")
                yield
                self._execute("COMMIT")
        except BaseException as error:
            if self._connection.in_transaction:
                self._next_backlog = self._backlog
                with suppress(sqlite3.Error):
                    self._execute("ROLLBACK")
            if isinstance(error, Unreachable):
                # Where the disk is full, the write-ahead log itself may be what fills it.
                self.maintain(now=True)
            raise

    def _add_to_profiles(self, profiles: pl.DataFrame) -> None:
        self._next_backlog = blocks.add_to_profiles(self._connection, profiles, backlog=self._backlog)

    def _after_commit(self) -> None:
        # A commit that was interrupted just after it was written comes again, and its backlog is this one too.
        self._backlog = self._next_backlog
        self.maintain()

    def maintain(self, *, now: bool = False) -> None:
        """Truncate the write-ahead log, `now` or about a second after the last time.

        Privacy: it has what waited in the pools earlier, and an idle stream has no next commit that would do it.
        """
        if self._connection is None:
            return
        # The commit itself is safe; a disk that fails here is met again by the next one.
        with suppress(sqlite3.Error, OSError):
            n_bytes = Path(f"{self.path}-wal").stat().st_size
            is_due = n_bytes > _WAL_BYTES or time.monotonic() - self._truncated_at > _SECONDS_IN_WAL
            if n_bytes and (is_due or now):
                self._truncated_at = time.monotonic()
                # Where a reader still needs it, it stays until the next time.
                self._execute("PRAGMA busy_timeout=50")
                try:
                    self._execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
                finally:
                    self._execute("PRAGMA busy_timeout=5000")

    def close(self) -> None:
        """Truncate the write-ahead log, and unlock the file."""
        if self._is_open:
            self.maintain(now=True)
        connection, descriptor = self._connection, self._descriptor
        self._connection = self._descriptor = None
        self._is_open = False
        # The lock goes last: closing its descriptor earlier would drop SQLite's own locks.
        if connection is not None:
            connection.close()
        if descriptor is not None:
            os.close(descriptor)


def _check_begin(header: bytes, path: Path) -> None:
    """Raise if a file begins as that of another program."""
    if header and not header.startswith(_MAGIC):
        raise BadFile(path.name, _NO_DATABASE)
    application = header[_APPLICATION_AT : _APPLICATION_AT + 4]
    if any(application) and application != APPLICATION.to_bytes(4, "big"):
        raise BadFile(path.name, _OF_ANOTHER)


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
        kind = getattr(error, "sqlite_errorname", "") or type(error).__name__
        if kind.startswith("SQLITE_NOTADB"):
            raise BadFile(path.name, _NO_DATABASE) from None
        known = (words for start, words in _REASONS.items() if kind.startswith(start))
        reason = next(known, f"disk error ({kind})" if kind.startswith(_PASSING) else "")
        # A table, column or text that is not as it was made stays so; all else may pass.
        raise (Unreachable(path.name, reason) if reason else BadFile(path.name, DAMAGED)) from None
    except UnicodeDecodeError:
        # The library quotes what it cannot read.
        raise BadFile(path.name, DAMAGED) from None
