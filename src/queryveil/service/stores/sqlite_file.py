"""The file of a SQLite store: made for its owner alone, used by one process, of a version that is understood."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from queryveil.errors import BadFile, QueryveilError, StoreBusy, Unreachable
from queryveil.service.stores.sqlite_profiles import PROFILE_SCHEMA

APPLICATION: Final = 0x71766C73
VERSION: Final = 1

_SCHEMA: Final = """
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

_REASONS: Final = {
    "SQLITE_FULL": "the disk is full",
    "SQLITE_BUSY": "another program holds it; close that one",
    "SQLITE_READONLY": "it may not be written to",
    "SQLITE_CANTOPEN": "it cannot be opened",
}
_DAMAGED: Final = "is damaged; restore a copy, or name another --store"


def take_file(path: Path) -> int:
    """Open the file for its owner alone, make it if it is not there, and lock it; give its descriptor."""
    try:
        # Privacy: the mode holds from the start, so that nobody else can open it before it is set.
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise BadFile(path.name, f"the store cannot be opened: {error.strerror}") from None
    try:
        os.fchmod(descriptor, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise StoreBusy(path.name) from None
    except OSError as error:
        os.close(descriptor)
        raise BadFile(path.name, f"the store cannot be used: {error.strerror}") from None
    return descriptor


def connect(path: Path) -> sqlite3.Connection:
    """Connect for writing, and make the tables if there are none."""
    with telling(path):
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=5)
    try:
        with telling(path):
            check_version(connection, path)
            # Profiles change many rows of a page at once: large pages take half the time of small ones.
            connection.execute("PRAGMA page_size=16384")
            for setting in ("journal_mode=WAL", "synchronous=FULL", "secure_delete=ON", "wal_autocheckpoint=0"):
                connection.execute(f"PRAGMA {setting}").fetchall()
            connection.execute("PRAGMA cache_size=-65536")
            if not connection.execute("PRAGMA user_version").fetchone()[0]:
                connection.executescript(
                    f"BEGIN IMMEDIATE; PRAGMA application_id={APPLICATION}; {_SCHEMA}{PROFILE_SCHEMA}"
                    f"PRAGMA user_version={VERSION}; COMMIT;"
                )
    except BaseException:
        connection.close()
        raise
    return connection


def check_version(connection: sqlite3.Connection, path: Path) -> None:
    """Raise unless the database is empty or a store of this version."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (n_tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if n_tables and application != APPLICATION:
        raise BadFile(path.name, "this is a database of another program; name another store")
    if version > VERSION:
        raise BadFile(path.name, "this store was written by a newer queryveil; update queryveil")


@contextmanager
def telling(path: Path) -> Iterator[None]:
    """Say in one line what is wrong with the file."""
    try:
        yield
    except sqlite3.Error as error:
        # Privacy: the message of the library may quote a value, so only its kind is told.
        raise explained(error, path) from None


def explained(error: sqlite3.Error, path: Path) -> QueryveilError:
    """Return the error of ours: a file that is none of ours stays wrong, all else may pass."""
    kind = getattr(error, "sqlite_errorname", "") or type(error).__name__
    if kind.startswith("SQLITE_NOTADB"):
        return BadFile(path.name, "this is no SQLite database; name another store")
    if kind.startswith("SQLITE_CORRUPT"):
        return BadFile(path.name, _DAMAGED)
    reason = next((words for start, words in _REASONS.items() if kind.startswith(start)), f"disk error ({kind})")
    return Unreachable(path.name, reason)


def empty_log(connection: sqlite3.Connection) -> None:
    """Bring the write-ahead log into the file and cut it to nothing, unless a reader needs it for longer."""
    try:
        connection.execute("PRAGMA busy_timeout=50")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    finally:
        connection.execute("PRAGMA busy_timeout=5000")


def let_go(connection: sqlite3.Connection | None, descriptor: int | None) -> None:
    """Close the connection and then the lock; the other way round would drop SQLite's own locks."""
    if connection is not None:
        with suppress(sqlite3.Error):
            empty_log(connection)
        connection.close()
    if descriptor is not None:
        os.close(descriptor)
