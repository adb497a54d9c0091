"""The file of a SQLite store: whose it is, what it still holds, and what is no store."""

from __future__ import annotations

import os
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.commits import SETTINGS, numbered_commit, raw_query

from queryveil.errors import BadFile, QueryveilError, Unreachable
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
