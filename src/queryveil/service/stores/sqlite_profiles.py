"""Profiles in a SQLite file: changes go into a journal, and from there into blocks in the order of users.

Pseudonyms are random, so the rows of a batch belong to as many places of a large table, and writing each place would
cost ten times what changing a row does. Changes therefore wait until many of them meet in a block. The view
`profiles` has both, so that nobody who reads can tell.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, field, replace
from typing import Final

import polars as pl

from queryveil.service.stores.profile_blocks import NAMES, change_blocks, quote, read_blocks, read_rows, write_rows

PROFILE_SCHEMA: Final = f"""
CREATE TABLE categories (place INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT;
INSERT INTO categories VALUES {", ".join(f"({place}, '{name}')" for place, name in enumerate(NAMES))};
CREATE TABLE profile_blocks (
    first_user TEXT PRIMARY KEY, n_users INTEGER NOT NULL, counts TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE profile_journal (id INTEGER PRIMARY KEY, changes TEXT NOT NULL) STRICT;
CREATE TABLE profile_progress (
    id INTEGER PRIMARY KEY CHECK (id = 1), last INTEGER NOT NULL, user TEXT NOT NULL, n_users INTEGER NOT NULL
) STRICT;
INSERT INTO profile_progress VALUES (1, 0, '', 0);
CREATE VIEW profile_rows AS
    SELECT value ->> 0 AS user, name AS category, value ->> (place + 1) AS n
    FROM profile_blocks, json_each(counts), categories WHERE value ->> (place + 1) > 0
    UNION ALL
    SELECT value ->> 0, name, value ->> 2
    FROM profile_journal AS journal, json_each(changes), categories
    WHERE place = value ->> 1
        AND (journal.id > (SELECT last FROM profile_progress) OR value -> 0 > (SELECT user FROM profile_progress));
CREATE VIEW profiles AS SELECT user, category, sum(n) AS n FROM profile_rows GROUP BY user, category;
CREATE VIEW profile_shares AS
    SELECT user, category, n, round(100.0 * n / sum(n) OVER (PARTITION BY user), 2) AS percent FROM profiles;
"""

_SCHEMA: Final = pl.Schema({"user": pl.String(), "category": pl.Int64(), "n": pl.Int64()})
_MOST_WAITING: Final = 1_000_000
_LEAST_AT_ONCE: Final = 10_000


def _nothing() -> pl.DataFrame:
    return pl.DataFrame(schema=_SCHEMA)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Backlog:
    """The changes that are in the journal and not yet in the blocks.

    `run` is in the order of users and on its way there, made of the journal up to `run_last`; `fresh` came after.
    `n_users` is how many users the blocks have. Users are JSON text here, as they stand in the file.
    """

    last: int = 0
    run_last: int = 0
    n_users: int = 0
    run: pl.DataFrame = field(default_factory=_nothing)
    fresh: tuple[pl.DataFrame, ...] = ()


def read_backlog(connection: sqlite3.Connection) -> Backlog:
    """Read from the journal what is still to go into the blocks."""
    run_last, user, n_users = connection.execute("SELECT last, user, n_users FROM profile_progress").fetchone()
    journal = connection.execute("SELECT id, changes FROM profile_journal ORDER BY id").fetchall()
    run = _in_order([read_rows([text for number, text in journal if number <= run_last], schema=_SCHEMA)])
    fresh = read_rows([text for number, text in journal if number > run_last], schema=_SCHEMA)
    last = journal[-1][0] if journal else 0
    run = run.filter(pl.col("user") > user)
    return Backlog(last=last, run_last=run_last, n_users=n_users, run=run, fresh=(fresh,) if len(fresh) else ())


def read_block_of(connection: sqlite3.Connection, user: str) -> pl.DataFrame:
    """Return the block in which a user stands, if the user is known."""
    row = connection.execute(
        "SELECT counts FROM profile_blocks WHERE first_user <= ? ORDER BY first_user DESC LIMIT 1", (user,)
    ).fetchone()
    return read_blocks([row[0]] if row else [])


def add_to_profiles(connection: sqlite3.Connection, profiles: pl.DataFrame, *, backlog: Backlog) -> Backlog:
    """Write changes, and bring a part of the earlier ones into the blocks; give what is left then.

    The transaction is the caller's; the backlog before holds again if that is rolled back.
    """
    places = pl.col("category").cast(pl.String).replace_strict(NAMES, range(len(NAMES)), return_dtype=pl.Int64)
    rows = profiles.select(quote(profiles["user"].cast(pl.String)), places, pl.col("n").cast(pl.Int64))
    number = backlog.last + 1
    after = replace(backlog, last=number, fresh=(*backlog.fresh, rows))
    if after.run.is_empty() and sum(map(len, after.fresh)) >= min(after.n_users // 2, _MOST_WAITING):
        after = replace(after, run=_in_order(after.fresh), run_last=number, fresh=())
    after = _advance(connection, after, n_rows=max(_LEAST_AT_ONCE, len(rows) * 5 // 4))
    if after.fresh or not after.run.is_empty():
        connection.execute("INSERT INTO profile_journal VALUES (?, ?)", (number, write_rows(rows)))
    return after


def _advance(connection: sqlite3.Connection, backlog: Backlog, *, n_rows: int) -> Backlog:
    """Bring the next rows of the run into the blocks, all those of a user together."""
    run = backlog.run
    if run.is_empty():
        return backlog
    user = run["user"][min(n_rows, len(run)) - 1]
    end = int(run["user"].search_sorted(user, side="right"))
    n_users = backlog.n_users + change_blocks(connection, run.head(end))
    run, last = run.slice(end), backlog.run_last
    if run.is_empty():
        connection.execute("DELETE FROM profile_journal WHERE id <= ?", (last,))
        user, last = "", 0
    connection.execute("UPDATE profile_progress SET last = ?, user = ?, n_users = ?", (last, user, n_users))
    return replace(backlog, run=run, run_last=last, n_users=n_users)


def _in_order(parts: tuple[pl.DataFrame, ...] | list[pl.DataFrame]) -> pl.DataFrame:
    """Put changes in the order of users."""
    return pl.concat(parts).sort("user")
