"""A store whose process, server or disk fails has a whole commit, and goes on from it."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.support.commits import SETTINGS, check_profiles, check_saved, numbered_commit
from tests.support.examples import SOAKS
from tests.support.postgres_server import IS_INSTALLED, PostgresServer
from tests.support.waiting import until

from queryveil.errors import StoreBusy, Unreachable
from queryveil.service.pipeline.urls import open_store
from queryveil.service.ports import Saved, Store
from queryveil.service.stores.postgres import PostgresStore

pytestmark = pytest.mark.slow

COMMITTING = Path(__file__).with_name("committing.py")


@pytest.fixture(scope="module")
def one_server() -> Iterator[PostgresServer]:
    if not IS_INSTALLED:
        pytest.skip("PostgreSQL is not installed")
    with PostgresServer() as server:
        yield server


@pytest.fixture
def server(one_server: PostgresServer) -> PostgresServer:
    """A server without a store on it; it runs again after each test that kills it."""
    with one_server.client() as client:
        client.execute("DROP SCHEMA IF EXISTS queryveil CASCADE")
    return one_server


@pytest.fixture(params=["sqlite", "postgres"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "state.db")
    found: PostgresServer = request.getfixturevalue("server")
    return found.url()


def open_patiently(store: Store) -> int:
    """Open a store whose last process has just died: a server takes a moment to notice."""
    found: list[Saved] = []

    def is_open() -> bool:
        with suppress(StoreBusy):
            found.append(store.open(settings=SETTINGS))
        return bool(found)

    until(is_open)
    if found[0].number:
        check_saved(found[0], number=found[0].number)
    return found[0].number


def test_a_process_killed_at_any_moment_leaves_a_whole_commit(address: str) -> None:
    rng = random.Random(random.randrange(10**9) if SOAKS else 5)
    number = 0
    for _ in range(40 if SOAKS else 5):
        process = subprocess.Popen([sys.executable, str(COMMITTING), address], stdout=subprocess.PIPE)
        assert process.stdout is not None
        assert int(process.stdout.readline()) == number
        process.stdout.readline()
        time.sleep(rng.uniform(0, 0.4))
        process.kill()
        process.communicate()
        store = open_store(address)
        after = open_patiently(store)
        assert after > number
        check_profiles(address, number=after)
        store.commit(numbered_commit(after + 1))
        store.close()
        number = after + 1


def commit_patiently(store: Store, number: int) -> int:
    """Return a commit again until it is taken; give how often it failed."""
    n_failed = 0

    def is_committed() -> bool:
        nonlocal n_failed
        try:
            store.commit(numbered_commit(number))
        except Unreachable:
            n_failed += 1
            return False
        return True

    until(is_committed)
    return n_failed


def test_a_server_that_is_killed_and_started_again_has_every_commit_once(server: PostgresServer) -> None:
    store = PostgresStore(server.url())
    store.open(settings=SETTINGS)
    n_failed = 0
    for number in range(1, 61):
        if number % 20 == 0:
            server.kill()
            with pytest.raises(Unreachable, match="the PostgreSQL server at "):
                store.commit(numbered_commit(number))
            server.start()
        n_failed += commit_patiently(store, number)
    store.close()
    check_profiles(server.url(), number=60)
    again = PostgresStore(server.url())
    check_saved(again.open(settings=SETTINGS), number=60)
    again.close()


def test_a_commit_whose_answer_was_lost_counts_once(server: PostgresServer) -> None:
    store = PostgresStore(server.url())
    store.open(settings=SETTINGS)
    for number in range(1, 40):
        with server.client() as client:
            if number % 3 == 0:
                # As if the answer to the last commit had not come: the store does not know that it is there.
                store.commit(numbered_commit(number))
                store._number = number - 1
            if number % 4 == 0:
                client.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
        commit_patiently(store, number)
    store.close()
    check_profiles(server.url(), number=39)


def test_a_process_that_lost_its_server_to_another_process_stops(server: PostgresServer) -> None:
    first, second = PostgresStore(server.url()), PostgresStore(server.url())
    first.open(settings=SETTINGS)
    commit_patiently(first, 1)
    with server.client() as client:
        client.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
    assert open_patiently(second) == 1
    commit_patiently(second, 2)
    with pytest.raises(Unreachable):
        first.commit(numbered_commit(2))
    with pytest.raises(Unreachable, match="still waits for the earlier connection"):
        first.commit(numbered_commit(2))
    commit_patiently(second, 3)
    second.close()
    with pytest.raises(StoreBusy):
        first.commit(numbered_commit(2))
    first.close()


# The system stops files from growing beyond a few hundred kilobytes, as a full disk would, and then lets them.
FULL_DISK = """
import resource, sys
from queryveil.errors import Unreachable
from queryveil.service.stores.sqlite import SqliteStore
from tests.support.commits import SETTINGS, numbered_commit
store = SqliteStore(sys.argv[1])
store.open(settings=SETTINGS)
limit = 600_000
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
n_failed, number = 0, 1
while number <= 120:
    try:
        store.commit(numbered_commit(number))
        number += 1
    except Unreachable as error:
        n_failed += 1
        said = str(error)
        if n_failed % 3 == 0:
            limit += 300_000
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
store.close()
print(n_failed, said)
"""


def test_a_disk_that_is_full_fails_whole_commits_until_there_is_room(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    done = subprocess.run([sys.executable, "-c", FULL_DISK, str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-1000:]
    n_failed, _, said = done.stdout.strip().partition(" ")
    assert int(n_failed) >= 3
    assert said.startswith("state.db: ")
    store = open_store(str(path))
    check_saved(store.open(settings=SETTINGS), number=120)
    store.close()
    check_profiles(path, number=120)


def is_taken(store: Store, number: int) -> bool:
    """Commit, and once more if that failed: the first failure may have made room."""
    for _ in range(2):
        try:
            store.commit(numbered_commit(number))
        except Unreachable:
            continue
        return True
    return False


def test_a_small_disk_that_fills_up_is_told_and_gone_on_with(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("only root may mount a small disk")
    try:
        store = open_store(str(disk / "state.db"))
        store.open(settings=SETTINGS)
        (disk / "other").write_bytes(b"x" * 10_500_000)
        number = next(number for number in range(1, 10_000) if not is_taken(store, number))
        with pytest.raises(Unreachable, match="the disk is full"):
            store.commit(numbered_commit(number))
        (disk / "other").unlink()
        for later in range(number, number + 20):
            assert is_taken(store, later)
        store.close()
        check_saved(open_store(str(disk / "state.db")).open(settings=SETTINGS), number=number + 19)
        check_profiles(disk / "state.db", number=number + 19)
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)
