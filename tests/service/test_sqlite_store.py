"""The file of a SQLite store: whose it is, what it still holds, and what is no store."""

from __future__ import annotations

import os
import sqlite3
import stat
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from tests.support.commits import SETTINGS, numbered_commit, raw_query

from queryveil.errors import BadFile, QueryveilError, Unreachable
from queryveil.service.stores._profile_blocks import NAMES
from queryveil.service.stores.profiles import ProfileDatabase
from queryveil.service.stores.sqlite import SqliteStore


def opened(path: Path) -> SqliteStore:
    store = SqliteStore(path)
    store.open(settings=SETTINGS)
    return store


def modes(folder: Path) -> dict[str, int]:
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}


def test_all_its_files_are_their_owner_s_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        store = opened(tmp_path / "state.db")
        store.commit(numbered_commit(1))
        assert modes(tmp_path) == dict.fromkeys(["state.db", "state.db-wal", "state.db-shm"], 0o600)
        store.close()
    finally:
        os.umask(before)
    assert modes(tmp_path) == {"state.db": 0o600}


def test_a_file_that_others_could_read_is_closed_to_them(tmp_path: Path) -> None:
    opened(tmp_path / "state.db").close()
    (tmp_path / "state.db").chmod(0o644)
    opened(tmp_path / "state.db").close()
    assert modes(tmp_path) == {"state.db": 0o600}


def bytes_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.iterdir()))


def test_raw_queries_that_left_the_pools_are_in_no_file(tmp_path: Path) -> None:
    store = opened(tmp_path / "state.db")
    for number in range(1, 101):
        store.commit(numbered_commit(number))
    assert raw_query(100).encode() in bytes_of(tmp_path)
    store.close()
    left = bytes_of(tmp_path)
    assert raw_query(100).encode() in left
    assert not [number for number in range(1, 100) if raw_query(number).encode() in left]


def test_the_write_ahead_log_is_emptied_while_the_stream_runs(tmp_path: Path) -> None:
    store = opened(tmp_path / "state.db")
    for number in range(1, 101):
        store.commit(numbered_commit(number))
        # As if a second had passed.
        store._truncated_at = 0.0
    left = bytes_of(tmp_path)
    store.close()
    # The last commit of all is emptied into the file by the one after it.
    assert [number for number in range(1, 101) if raw_query(number).encode() in left] in ([100], [99, 100])


def test_the_write_ahead_log_is_emptied_when_no_commit_comes_any_more(tmp_path: Path) -> None:
    store = opened(tmp_path / "state.db")
    for number in range(1, 4):
        store.commit(numbered_commit(number))
    # As if a second had passed.
    store._truncated_at = 0.0
    store.maintain()
    left = bytes_of(tmp_path)
    store.close()
    store.maintain()
    assert [number for number in range(1, 4) if raw_query(number).encode() in left] == [3]


def test_what_was_delivered_is_no_longer_in_the_file(tmp_path: Path) -> None:
    store = opened(tmp_path / "state.db")
    for number in range(1, 40):
        store.commit(numbered_commit(number))
    store.close()
    left = bytes_of(tmp_path)
    assert b"released 39\n" in left
    assert not [number for number in range(1, 36) if b"released %d\n" % number in left]


def refusal(path: Path) -> str:
    with pytest.raises(BadFile) as caught:
        opened(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_what_is_no_store_is_one_line(tmp_path: Path) -> None:
    text, other, newer = tmp_path / "notes.txt", tmp_path / "other.db", tmp_path / "newer.db"
    text.write_text("kestrel lantern\n" * 500)
    assert refusal(text) == "notes.txt: this is no SQLite database; name another store"
    assert text.read_text() == "kestrel lantern\n" * 500
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE recipes (name)")
    assert refusal(other) == "other.db: this is a database of another program; name another store"
    opened(newer).close()
    with closing(sqlite3.connect(newer)) as connection:
        connection.execute("PRAGMA user_version = 99")
    assert refusal(newer) == "newer.db: this store was written by a newer queryveil; update queryveil"
    assert refusal(tmp_path / "nosuch" / "state.db") == (
        "state.db: the store cannot be opened: No such file or directory"
    )
    assert refusal(tmp_path) == f"{tmp_path.name}: the store cannot be opened: Is a directory"


def test_a_damaged_file_is_one_line_without_text(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    store = opened(path)
    for number in range(1, 60):
        store.commit(numbered_commit(number))
    store.close()
    data = bytearray(path.read_bytes())
    data[16384:] = b"\xa5" * (len(data) - 16384)
    path.write_bytes(data)
    with pytest.raises(QueryveilError, match=r"^state\.db: ") as caught:
        opened(path)
    assert "walnut" not in str(caught.value)


@pytest.mark.parametrize("table", ["profile_journal SET changes", "profile_blocks SET counts"])
def test_damaged_profiles_are_one_line_without_names(tmp_path: Path, table: str) -> None:
    path = tmp_path / "state.db"
    store = opened(path)
    for number in range(1, 30):
        store.commit(numbered_commit(number))
    store.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"UPDATE {table} = '[[\"pseudonym 1\",x'")
    with pytest.raises(BadFile, match=r"^the store: its profiles are damaged; ") as caught:
        ProfileDatabase(path).table()
    assert "pseudonym" not in str(caught.value)


@pytest.mark.slow
def test_a_file_that_another_program_writes_to_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    store = opened(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(Unreachable, match="another program holds it; close that one"):
            store.commit(numbered_commit(1))
        other.execute("ROLLBACK")
    store.commit(numbered_commit(1))
    store.close()


VERSION_1 = """
PRAGMA application_id = 0x71766C73;
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
CREATE TABLE categories (place INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT;
CREATE TABLE profile_blocks (
    first_user TEXT PRIMARY KEY, n_users INTEGER NOT NULL, counts TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE profile_journal (id INTEGER PRIMARY KEY, changes TEXT NOT NULL) STRICT;
CREATE TABLE profile_progress (
    id INTEGER PRIMARY KEY CHECK (id = 1), last INTEGER NOT NULL, user TEXT NOT NULL, n_users INTEGER NOT NULL
) STRICT;
INSERT INTO state VALUES (1, 'k=10
l=2', 7, 'line 7', 1, 5, 30, '{"n_read":7}');
INSERT INTO pools VALUES (1, x'706f6f6c73');
INSERT INTO outbox VALUES (6, 10, x'6f6e650a', 1), (7, 14, x'74776f0a', 1);
INSERT INTO issued VALUES (3, 0, x'0000000000000001'), (4, 1, x'0000000000000002'), (5, 1, x'0000000000000003');
INSERT INTO sent_keys VALUES (1, 'first'), (2, 'second');
INSERT INTO profile_blocks VALUES ('"ann"', 1, '[["ann",3,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,2]]');
INSERT INTO profile_journal VALUES (1, '[["ann",0,1],
["bob",1,1]]');
INSERT INTO profile_progress VALUES (1, 0, '', 1);
PRAGMA user_version = 1;
"""


def test_a_file_that_an_earlier_release_has_written_is_resumed(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(VERSION_1)
    store = SqliteStore(path)
    saved = store.open(settings=SETTINGS)
    assert (saved.number, saved.position, saved.pools, saved.keys) == (7, "line 7", b"pools", ("first", "second"))
    assert (saved.delivered, saved.n_bytes_out, saved.counts) == (5, 30, {"n_read": 7})
    assert [(out.number, out.offset, out.data) for out in saved.outgoing] == [(6, 10, b"one\n"), (7, 14, b"two\n")]
    assert [(generation, hashes[-1]) for generation, hashes in saved.issued] == [(0, 1), (1, 2), (1, 3)]
    changes = pl.DataFrame({"user": ["ann", "cid"], "category": [NAMES[0], NAMES[16]], "n": [1, 2]})
    store.commit(replace(numbered_commit(8), profiles=changes))
    store.close()
    assert store.open(settings=SETTINGS).number == 8
    store.close()
    rows = {row["user"]: {name: n for name, n in row.items() if n and name in NAMES} for row in _profiles(path)}
    assert rows == {"ann": {NAMES[0]: 5, NAMES[16]: 2}, "bob": {NAMES[1]: 1}, "cid": {NAMES[16]: 2}}


def _profiles(path: Path) -> list[dict[str, object]]:
    return ProfileDatabase(path).table().to_dicts()


def files_in(folder: Path) -> dict[str, tuple[bytes, int, int]]:
    paths = sorted(folder.iterdir())
    return {path.name: (path.read_bytes(), path.stat().st_mode, path.stat().st_mtime_ns) for path in paths}


def test_a_file_that_is_no_store_is_left_as_it_is(tmp_path: Path) -> None:
    text, other = tmp_path / "notes.txt", tmp_path / "other.db"
    text.write_text("kestrel lantern\n" * 500)
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA application_id=7")
        connection.execute("CREATE TABLE recipes (name)")
    plain = tmp_path / "plain.db"
    with closing(sqlite3.connect(plain)) as connection:
        connection.execute("CREATE TABLE recipes (name)")
    for path in (text, other, plain):
        path.chmod(0o644)
    before = {
        path.name: (path.read_bytes(), path.stat().st_mode, path.stat().st_mtime_ns) for path in tmp_path.iterdir()
    }
    for path in (text, other, plain):
        assert "name another store" in refusal(path)
    after = {
        path.name: (path.read_bytes(), path.stat().st_mode, path.stat().st_mtime_ns) for path in tmp_path.iterdir()
    }
    assert after == before
