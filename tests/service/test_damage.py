"""A store of which a bit was turned is refused in one line, or opens with the very same state."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.support.commits import SETTINGS, numbered_commit

from queryveil.errors import BadFile, QueryveilError
from queryveil.service.ports import Saved
from queryveil.service.stores.profiles import ProfileDatabase
from queryveil.service.stores.sqlite import SqliteStore

N_COMMITS = 25
N_FLIPS = 250
PLACES = [
    ("pools", "data"),
    ("issued", "hashes"),
    ("outbox", "data"),
    ("state", "settings"),
    ("state", "position"),
    ("state", "counts"),
    ("sent_keys", "key"),
    ("profile_blocks", "counts"),
    ("profile_blocks", "first_user"),
    ("profile_journal", "changes"),
]
NUMBERS = [
    ("state", "number"),
    ("state", "generation"),
    ("state", "delivered"),
    ("state", "n_bytes_out"),
    ("issued", "generation"),
    ("outbox", "byte_offset"),
    ("outbox", "n_rows"),
    ("profile_blocks", "n_users"),
    ("profile_progress", "last"),
    ("profile_progress", "n_users"),
]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a store with something in every table."""
    path = tmp_path_factory.mktemp("store") / "state.db"
    store = SqliteStore(path)
    store.open(settings=SETTINGS)
    number = 0
    # Changes of profiles are in the journal now and then.
    while number < N_COMMITS or not store._connection.execute("SELECT count(*) FROM profile_journal").fetchone()[0]:
        number += 1
        store.commit(numbered_commit(number))
    store.close()
    with closing(sqlite3.connect(path)) as connection:
        for table, _ in [*PLACES, *NUMBERS]:
            assert connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0], table
    return path


def state_in(path: Path) -> tuple[Saved, pl.DataFrame]:
    store = SqliteStore(path)
    saved = store.open(settings=SETTINGS)
    try:
        saved = replace(saved, issued=tuple(saved.issued))
    finally:
        store.close()
    return saved, ProfileDatabase(path).table()


def refusal(path: Path) -> str:
    with pytest.raises(QueryveilError) as caught:
        state_in(path)
    line = str(caught.value)
    assert "\n" not in line
    assert not any(text in line for text in ("walnut", "pseudonym", "released", "open-the-door"))
    return line


def flipped(value: str | bytes, chance: random.Random) -> str | bytes:
    """Turn one bit; in text, one that leaves a letter."""
    data = bytearray(value.encode() if isinstance(value, str) else value)
    bit = chance.randrange(7 if isinstance(value, str) else 8)
    data[chance.randrange(len(data))] ^= 1 << bit
    return data.decode() if isinstance(value, str) else bytes(data)


def change(path: Path, table: str, column: str, chance: random.Random) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        found: list[tuple[Any]] = connection.execute(f"SELECT {column} FROM {table} ORDER BY 1").fetchall()
        (value,) = chance.choice([row for row in found if row[0] not in ("", b"")])
        new = value ^ (1 << chance.randrange(20)) if isinstance(value, int) else flipped(value, chance)
        connection.execute(f"UPDATE {table} SET {column} = ? WHERE {column} = ?", (new, value))


@pytest.mark.parametrize(("table", "column"), [*PLACES, *NUMBERS])
def test_a_bit_turned_in_any_column_is_told_as_damage(whole: Path, tmp_path: Path, table: str, column: str) -> None:
    chance, path = random.Random(f"{table} {column}"), tmp_path / "state.db"
    for _ in range(N_FLIPS // (len(PLACES) + len(NUMBERS)) + 1):
        path.write_bytes(whole.read_bytes())
        change(path, table, column, chance)
        assert "restore a copy, or name another --store" in refusal(path)


@pytest.mark.slow
def test_wherever_a_bit_of_the_file_is_turned_no_other_state_is_opened(whole: Path, tmp_path: Path) -> None:
    chance, path, data = random.Random(1), tmp_path / "state.db", whole.read_bytes()
    wanted = state_in(whole)
    refused = []
    for _ in range(N_FLIPS):
        turned = bytearray(data)
        turned[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        path.write_bytes(turned)
        try:
            saved, profiles = state_in(path)
        except QueryveilError as error:
            refused.append(str(error))
        else:
            assert saved == wanted[0]
            assert profiles.equals(wanted[1])
    assert len(refused) > N_FLIPS // 20
    assert not any("\n" in line for line in refused)


def test_a_damaged_row_is_found_when_the_next_commit_needs_it(whole: Path, tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    path.write_bytes(whole.read_bytes())
    store = SqliteStore(path)
    number = store.open(settings=SETTINGS).number
    store._connection.execute("UPDATE state SET n_bytes_out = n_bytes_out + 1")
    with pytest.raises(BadFile, match=r"^state\.db: is damaged; restore a copy, or name another --store$"):
        store.commit(numbered_commit(number + 1))
    store.close()
