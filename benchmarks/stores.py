"""How long a commit of 10,000 released rows takes, and how that grows with the profiles that are there.

    python -m benchmarks.stores [USERS] [COMMITS]

Every commit goes to disk. Users are drawn evenly, which is the worst case: no two rows meet on a page by themselves.
Beside the store, in the same run: a plain table of profiles in which each row is found and added to, and a floor, which
appends the same bytes to a file.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import BinaryIO

import numpy as np
import polars as pl

from queryveil.cli.output import print_table
from queryveil.service.ports import Commit, Outgoing
from queryveil.service.stores._profile_blocks import change_blocks, quote
from queryveil.service.stores.sqlite import SqliteStore
from queryveil.text.classifier import CATEGORIES, UNCLASSIFIED

NAMES = sorted([*CATEGORIES, UNCLASSIFIED])
N_ROWS = 10_000


def pseudonyms(n_users: int) -> pl.Series:
    raw = np.random.default_rng(7).bytes(16 * n_users).hex()
    return pl.Series([raw[i : i + 32] for i in range(0, len(raw), 32)]).sort()


def fill(path: Path, users: pl.Series) -> None:
    """Return each user five categories, as months of a stream would have."""
    connection = sqlite3.connect(path)
    for start in range(0, len(users), 100_000):
        some = users.slice(start, 100_000)
        places = pl.Series([i % 4 + 3 * j for i in range(len(some)) for j in range(5)])
        rows = pl.DataFrame({"user": quote(some).repeat_by(5).explode(), "category": places}).with_columns(n=pl.lit(3))
        change_blocks(connection, rows)
    connection.execute("UPDATE profile_progress SET n_users = ?, checksum = NULL", (len(users),))
    connection.commit()
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


def commits(users: pl.Series, n_commits: int) -> Iterator[Commit]:
    rng = np.random.default_rng(8)
    data, names = b"x" * 60 * N_ROWS, pl.Series(NAMES)
    for number in range(1, n_commits + 1):
        drawn = pl.DataFrame(
            {
                "user": users.gather(rng.integers(0, len(users), N_ROWS)),
                "category": names.gather(rng.integers(0, len(names), N_ROWS)),
            }
        )
        yield Commit(
            number=number,
            position=str(number),
            pools=rng.bytes(40_000),
            generation=number * N_ROWS // 32_000_000,
            issued=rng.bytes(8 * N_ROWS),
            profiles=drawn.group_by("user", "category").len(name="n"),
            outgoing=Outgoing(number=number, offset=(number - 1) * len(data), data=data, n_rows=N_ROWS),
            delivered=number - 2,
        )


def plain_table(path: Path, users: pl.Series) -> sqlite3.Connection:
    """Make a table with a row for each user and category, with as many rows as `fill` gives."""
    connection = sqlite3.connect(path, isolation_level=None)
    for setting in ("page_size=16384", "journal_mode=WAL", "synchronous=FULL", "cache_size=-65536"):
        connection.execute(f"PRAGMA {setting}").fetchall()
    connection.execute("CREATE TABLE profiles (user, category, n, PRIMARY KEY (user, category)) WITHOUT ROWID")
    connection.execute("CREATE TABLE written (id INTEGER PRIMARY KEY, pools, issued, data)")
    connection.execute("BEGIN")
    rows = ((user, NAMES[i % 4 + 3 * j], 3) for i, user in enumerate(users) for j in range(5))
    connection.executemany("INSERT INTO profiles VALUES (?, ?, ?)", rows)
    connection.execute("COMMIT")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return connection


def commit_plainly(connection: sqlite3.Connection, commit: Commit) -> None:
    assert commit.profiles is not None
    assert commit.outgoing is not None
    add = "INSERT INTO profiles VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET n = n + excluded.n"
    connection.execute("BEGIN IMMEDIATE")
    connection.executemany(add, commit.profiles.iter_rows())
    row = (commit.number, commit.pools, commit.issued, commit.outgoing.data)
    connection.execute("INSERT INTO written VALUES (?, ?, ?, ?)", row)
    connection.execute("DELETE FROM written WHERE id <= ?", (commit.delivered,))
    connection.execute("COMMIT")


def append(file: BinaryIO, commit: Commit) -> None:
    assert commit.profiles is not None
    assert commit.outgoing is not None
    file.write(commit.pools + commit.issued + commit.outgoing.data + b"\0" * 40 * commit.profiles.height)
    file.flush()
    os.fsync(file.fileno())


def cells(run: Callable[[Commit], None], made: Iterable[Commit]) -> tuple[str, ...]:
    """Time commits; the first ones only fill the journal, so by the clock the second half counts."""
    seconds, worked = [], 0.0
    for commit in made:
        started, used = time.perf_counter(), time.process_time()
        run(commit)
        seconds.append(time.perf_counter() - started)
        worked += time.process_time() - used
    half = seconds[len(seconds) // 2 :]
    times = (worked / len(seconds) / N_ROWS * 1e6, sum(half) / len(half) / N_ROWS * 1e6)
    waits = (float(np.median(half)) * 1000, max(seconds) * 1000)
    return (*(f"{each:.2f}" for each in times), *(f"{each:.0f}" for each in waits))


def main(n_users: int, n_commits: int) -> None:
    users = pseudonyms(n_users)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state.db"
        store = SqliteStore(path)
        store.open(settings="")
        store.close()
        fill(path, users)
        store.open(settings="")
        rows = [("store", *cells(store.commit, commits(users, n_commits)))]
        store.close()
        with closing(plain_table(Path(folder) / "plain.db", users)) as plain:
            rows.append(("plain table", *cells(partial(commit_plainly, plain), commits(users, n_commits))))
        with (Path(folder) / "floor").open("wb") as file:
            rows.append(("floor: bytes appended", *cells(partial(append, file), commits(users, n_commits))))
    title = f"{n_users:,} users, {n_commits} commits of {N_ROWS:,} rows"
    print_table(
        ["", "µs of work a row", "µs by the clock", "ms a commit, half of them", "the longest"], rows, title=title
    )


if __name__ == "__main__":
    main(*([int(text) for text in sys.argv[1:]] or [100_000, 60]))
