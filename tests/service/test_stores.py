"""What every store does: gives back the last commit, takes the same commit once, is used by one process."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from tests.support.commits import SETTINGS, check_profiles, check_saved, numbered_commit
from tests.support.postgres_server import IS_INSTALLED, PostgresServer

from queryveil.errors import BadFile, BadParameter, StoreBusy
from queryveil.service.pipeline.urls import open_store
from queryveil.service.ports import Commit, Saved, Store
from queryveil.service.stores import MemoryStore
from queryveil.service.stores.postgres import PostgresStore
from queryveil.service.stores.profiles import ProfileDatabase
from queryveil.service.stores.sqlite import SqliteStore

Make = Callable[[], Store]


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    if not IS_INSTALLED:
        pytest.skip("PostgreSQL is not installed")
    with PostgresServer() as server:
        yield server


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "state.db")
    server: PostgresServer = request.getfixturevalue("server")
    with server.client() as client:
        client.execute("DROP SCHEMA IF EXISTS queryveil CASCADE")
    return server.url()


@pytest.fixture
def make(address: str) -> Make:
    return lambda: PostgresStore(address) if address.startswith("postgresql") else SqliteStore(address)


def reopened(make: Make) -> Saved:
    """Open the store, read all of it, and close it again."""
    store = make()
    saved = store.open(settings=SETTINGS)
    saved = replace(saved, issued=tuple(saved.issued))
    store.close()
    return saved


def committed(make: Make, *, first: int, last: int) -> None:
    store = make()
    store.open(settings=SETTINGS)
    for number in range(first, last + 1):
        store.commit(numbered_commit(number))
    store.close()


def test_a_first_start_has_nothing(make: Make) -> None:
    assert reopened(make) == Saved()
    assert reopened(make) == Saved(issued=())


@pytest.mark.parametrize("last", [1, 2, 19, 40, 125])
def test_the_last_commit_is_given_back(make: Make, address: str, last: int) -> None:
    committed(make, first=1, last=last)
    check_saved(reopened(make), number=last)
    check_profiles(address, number=last)


def test_a_store_goes_on_after_every_reopening(make: Make, address: str) -> None:
    for first in range(1, 61, 4):
        committed(make, first=first, last=first + 3)
        check_saved(reopened(make), number=first + 3)
    check_profiles(address, number=60)


def test_a_commit_that_is_given_again_counts_once(make: Make, address: str) -> None:
    store = make()
    store.open(settings=SETTINGS)
    for number in range(1, 31):
        store.commit(numbered_commit(number))
        store.commit(numbered_commit(number))
    store.close()
    check_saved(reopened(make), number=30)
    check_profiles(address, number=30)


def test_a_gap_between_commits_is_refused_and_changes_nothing(make: Make, address: str) -> None:
    store = make()
    store.open(settings=SETTINGS)
    store.commit(numbered_commit(1))
    with pytest.raises(ValueError, match="commit 3 does not follow 1"):
        store.commit(numbered_commit(3))
    store.commit(numbered_commit(2))
    store.close()
    check_saved(reopened(make), number=2)
    check_profiles(address, number=2)


def test_a_store_in_use_is_refused_and_free_after_closing(make: Make) -> None:
    first = make()
    first.open(settings=SETTINGS)
    with pytest.raises(StoreBusy, match="in use by another process"):
        make().open(settings=SETTINGS)
    first.commit(numbered_commit(1))
    first.close()
    assert reopened(make).number == 1


def test_other_settings_are_refused_by_name_and_a_key_is_never_shown(make: Make) -> None:
    store = make()
    store.open(settings="k=9\nkey=0123abc")
    store.close()
    store = make()
    # Nothing was committed, so nothing was made with the first ones.
    store.open(settings="k=10\nkey=0123abc")
    store.commit(numbered_commit(1))
    store.close()
    with pytest.raises(BadParameter, match=r"^k must be 10 as when this stream began"):
        make().open(settings="k=11\nkey=0123abc")
    with pytest.raises(BadParameter, match=r"^key must be the one this stream began with") as caught:
        make().open(settings="k=10\nkey=4567def")
    assert "0123abc" not in str(caught.value)
    assert "4567def" not in str(caught.value)
    with pytest.raises(BadParameter, match=r"^l must be left out"):
        make().open(settings="k=10\nkey=0123abc\nl=5")
    store = make()
    assert store.open(settings="k=10\nkey=0123abc").number == 1
    store.close()


@pytest.mark.slow
def test_only_the_last_100_000_keys_of_senders_are_remembered(make: Make) -> None:
    keys = [f"key {i}" for i in range(130_000)]
    store = make()
    store.open(settings=SETTINGS)
    for number in (1, 2):
        store.commit(
            Commit(number=number, position=None, pools=b"", keys=tuple(keys[(number - 1) * 65_000 : number * 65_000]))
        )
    store.close()
    assert reopened(make).keys == tuple(keys[30_000:])


def test_users_with_odd_names_keep_them(make: Make, address: str) -> None:
    odd = [
        'a"b',
        "c\\d",
        "e,f",
        "g[h",
        "i\tj",
        "k\nl",
        "m\rn",
        "",
        "ä ö",
        "\U0001d6fc",
        "'; --",
        "\\.",
        "a\x01b",
        "[[1,2]]",
        '"',
    ]
    rows = pl.DataFrame({"user": odd, "category": "Arts", "n": range(1, len(odd) + 1)})
    store = make()
    store.open(settings=SETTINGS)
    for number in (1, 2, 3):
        store.commit(Commit(number=number, position=None, pools=b"", profiles=rows))
    database = ProfileDatabase(address)
    for user, n in zip(odd, range(1, len(odd) + 1), strict=True):
        found = database.of_user(user)
        assert found is not None
        assert found.counts == {"Arts": 3 * n}
    store.close()
    assert dict(database.table().select("user", "Arts").iter_rows()) == {
        user: 3 * n for n, user in enumerate(odd, start=1)
    }


def test_no_repr_shows_what_is_in_a_store(make: Make) -> None:
    store = make()
    saved = store.open(settings=SETTINGS)
    store.commit(numbered_commit(1))
    shown = repr(store) + repr(saved) + repr(numbered_commit(7))
    store.close()
    assert not any(text in shown for text in ("walnut", "pseudonym 1", "released", "open-the-door"))


def test_the_store_in_memory_keeps_nothing() -> None:
    store = MemoryStore()
    assert store.open(settings=SETTINGS) == Saved()
    store.commit(numbered_commit(1))
    store.close()
    assert store.open(settings="k=2") == Saved()


def test_a_user_with_any_letters_is_found_again(make: Make, address: str) -> None:
    users = ["n\0l", 'a"b', "x\n\\.\ny", "comma,]", "\\N"]
    store = make()
    store.open(settings=SETTINGS)
    profiles = pl.DataFrame({"user": users, "category": "Arts", "n": range(1, len(users) + 1)})
    store.commit(Commit(number=1, position=None, pools=b"", profiles=profiles))
    store.close()
    for n, user in enumerate(users, start=1):
        found = ProfileDatabase(address).of_user(user)
        assert found is not None
        assert found.n_rows == n


def run_in(address: str, *statements: str) -> None:
    """Run statements in the store of an address."""
    if address.startswith("postgresql"):
        import psycopg

        with psycopg.connect(address.partition("?")[0], autocommit=True) as server:
            server.execute("SET search_path TO queryveil")
            for statement in statements:
                server.execute(statement)
        return
    with closing(sqlite3.connect(address, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def without_checksums(address: str) -> None:
    """Make a store one of an earlier release, whose rows had no checksums."""
    tables = ["state", "pools", "outbox", "issued", "sent_keys"]
    version = "UPDATE state SET version = 1"
    if not address.startswith("postgresql"):
        tables += ["profile_blocks", "profile_journal", "profile_progress"]
        version = "PRAGMA user_version = 1"
    run_in(address, *(f"ALTER TABLE {table} DROP COLUMN checksum" for table in tables), version)


@pytest.mark.parametrize("last", [7, 27])
def test_a_store_of_an_earlier_release_is_read_and_goes_on_with_checksums(make: Make, address: str, last: int) -> None:
    committed(make, first=1, last=last)
    without_checksums(address)
    check_profiles(address, number=last)
    check_saved(reopened(make), number=last)
    committed(make, first=last + 1, last=last + 4)
    check_saved(reopened(make), number=last + 4)
    check_profiles(address, number=last + 4)


@pytest.mark.parametrize("column", ["outbox SET n_rows = n_rows + 1", "state SET generation = generation + 1"])
def test_a_row_that_is_not_as_it_was_written_is_refused(make: Make, address: str, column: str) -> None:
    committed(make, first=1, last=9)
    run_in(address, f"UPDATE {column}")
    with pytest.raises(BadFile, match=r"is damaged; restore a copy, or name another --store$"):
        reopened(make)


def test_a_store_tells_whether_a_stream_has_begun_and_makes_nothing_for_that(make: Make, address: str) -> None:
    assert not open_store(address).has_begun()
    assert address.startswith("postgresql") or not Path(address).exists()
    assert reopened(make) == Saved()
    assert not open_store(address).has_begun()
    committed(make, first=1, last=1)
    assert open_store(address).has_begun()
