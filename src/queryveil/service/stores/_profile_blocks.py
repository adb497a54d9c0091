"""Profiles in a SQLite file, as text in blocks of some thousand users.

Pseudonyms are random, so the rows of a batch belong to as many places of a large table, and writing each place costs
ten to twenty times what this does (python -m benchmarks.stores). Changes go into a journal, and from there into blocks
in the order of users once many of them meet in a block. The view `profiles` has both, so that a reader sees one table.

A block is a JSON array, which SQLite's shell reads with `json_each`: its rows are `["user",0,3,..]`, in the order of
users with `,` and a line end between them, and a comma or bracket in a user's name is escaped. Blocks, entries of the
journal and the progress have a checksum, as all rows of a store do.
"""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, pairwise
from typing import Any

import msgspec
import numpy as np
import polars as pl

from queryveil.data import Bytes, Int64s
from queryveil.errors import BadFile
from queryveil.kernels import njit
from queryveil.service.stores._sql import Columns, checksum, is_sound
from queryveil.text.classifier import CATEGORIES, UNCLASSIFIED

_BETWEEN_JSON_ROWS = "],\n["
_MOST_COUNT = 1 << 53
_SPECIAL = r'["\\,\]\x00-\x1f]'


def quote(users: pl.Series) -> pl.Series:
    r"""Return users as JSON text; a comma or a bracket is escaped, so that it stands between columns or rows only.

    >>> quote(pl.Series(["ann", 'b,"'])).to_list()
    ['"ann"', '"b\\u002c\\""']
    """
    if users.str.contains(_SPECIAL).any():
        escaped = [msgspec.json.encode(user).decode().replace(",", r"\u002c").replace("]", r"\u005d") for user in users]
        return pl.Series(users.name, escaped, dtype=pl.String)
    return pl.select((pl.lit('"') + users + pl.lit('"')).alias(users.name)).to_series()


def unquote(users: pl.Series) -> pl.Series:
    """Return users as they were."""
    if users.str.contains("\\", literal=True).any():
        try:
            return pl.Series(users.name, [msgspec.json.decode(user, type=str) for user in users], dtype=pl.String)
        except msgspec.MsgspecError:
            raise damaged() from None
    return users.str.strip_chars('"')


def write_rows(rows: pl.DataFrame) -> str:
    r"""Write rows; the first column is JSON text of the user, the others are numbers.

    >>> write_rows(pl.DataFrame({"user": ['"ann"', '"bob"'], "n": [1, 2]}))
    '[["ann",1],\n["bob",2]]'
    """
    if rows.is_empty():
        return "[]"
    text = rows.write_csv(include_header=False, line_terminator=_BETWEEN_JSON_ROWS, quote_style="never")
    return f"[[{text.removesuffix(_BETWEEN_JSON_ROWS)}]]"


def read_rows(texts: list[str], *, schema: pl.Schema) -> pl.DataFrame:
    r"""Read the rows of several texts, one after the other; users stay JSON text.

    >>> read_rows(['[["ann",1],\n["bob",2]]', "[]"], schema=pl.Schema({"user": pl.String, "n": pl.Int64})).rows()
    [('"ann"', 1), ('"bob"', 2)]
    """
    lines = "\n".join(text[2:-2].replace(_BETWEEN_JSON_ROWS, "\n") for text in texts if text != "[]")
    if not lines:
        return pl.DataFrame(schema=schema)
    try:
        rows = pl.read_csv(lines.encode(errors="replace"), has_header=False, schema=schema, quote_char=None)
    except pl.exceptions.PolarsError:
        # Privacy: the cause would quote a row, so it is dropped.
        raise damaged() from None
    # Kernels index arrays by these numbers.
    is_in_range = pl.all_horizontal(
        pl.col(name).is_between(0, len(CATEGORIES) if name == "category" else _MOST_COUNT)
        for name in schema.names()[1:]
    )
    if not rows.select((is_in_range & pl.first().is_not_null()).fill_null(False).all()).item():
        raise damaged()
    return rows


def damaged() -> BadFile:
    return BadFile("the store", "its profiles are damaged; restore a copy, or name another --store")


_COMMA, _OPEN, _CLOSE, _LINE, _ZERO = 44, 91, 93, 10, 48
_MOST_DIGITS = 20


@njit(cache=True)
def _find(text: Bytes, at: int, byte: int) -> int:
    """Return the place of the next such byte, the end of the text if there is none."""
    while at < len(text) and text[at] != byte:
        at += 1
    return at


@njit(cache=True)
def _compare(left: Bytes, begin: int, end: int, right: Bytes, first: int, last: int) -> int:
    for i in range(min(end - begin, last - first)):
        if left[begin + i] != right[first + i]:
            return -1 if left[begin + i] < right[first + i] else 1
    return (end - begin) - (last - first)


@njit(cache=True)
def _write_row(out: Bytes, at: int, key: Bytes, first: int, last: int, counts: Int64s) -> int:
    out[at] = _OPEN
    at += 1
    for i in range(first, last):
        out[at] = key[i]
        at += 1
    for count in counts:
        out[at] = _COMMA
        at += 1
        digits, rest = 1, count // 10
        while rest:
            digits, rest = digits + 1, rest // 10
        rest = count
        for i in range(digits):
            out[at + digits - 1 - i] = _ZERO + rest % 10
            rest //= 10
        at += digits
    out[at], out[at + 1], out[at + 2] = _CLOSE, _COMMA, _LINE
    return at + 3


@njit(cache=True)
def _read_counts(text: Bytes, at: int, counts: Int64s) -> int:
    """Read the counts from the comma after the user on; return the position after the row, -1 if one is no number."""
    for i in range(len(counts)):
        at += 1
        counts[i] = 0
        while at < len(text) and text[at] != _COMMA and text[at] != _CLOSE:
            if not _ZERO <= text[at] <= _ZERO + 9 or counts[i] > _MOST_COUNT:
                return -1
            counts[i] = counts[i] * 10 + (text[at] - _ZERO)
            at += 1
    return at + 1


@njit(cache=True)
def add_to_lines(
    text: Bytes, keys: Bytes, ends: Int64s, places: Int64s, adds: Int64s, n_places: int
) -> tuple[Bytes, Int64s, int]:
    """Add `adds[i]` at `places[i]` to the user whose JSON text ends at `ends[i]` in `keys`; users are in order.

    Returns the text after that, with `,` and a line end behind each row, where each row begins, and how many are new:
    -1 if the text is not made of such rows.
    """
    n = len(places)
    out = np.empty(len(text) + 3 + len(keys) + n * (n_places * _MOST_DIGITS + 8), np.uint8)
    starts = np.empty(len(text) // (2 * n_places) + 1 + n, np.int64)
    counts = np.zeros(n_places, np.int64)
    here, at, c, n_rows, n_new = 0, 0, 0, 0, 0
    while here < len(text) or c < n:
        if n_rows == len(starts):
            return out[:0], starts[:0], -1
        starts[n_rows] = at
        n_rows += 1
        first = ends[c - 1] if c else 0
        comma, order = _find(text, here, _COMMA), 1
        if here < len(text):
            order = _compare(text, here + 1, comma, keys, first, ends[c]) if c < n else -1
        if order < 0:
            end = _find(text, comma, _CLOSE) + 1
            if end > len(text):
                return out[:0], starts[:0], -1
            out[at : at + end - here] = text[here:end]
            at += end - here
            out[at], out[at + 1] = _COMMA, _LINE
            at, here = at + 2, end + 2
            continue
        if order == 0:
            here = _read_counts(text, comma, counts) + 2
            if here < 3 or here > len(text) + 2 or text[here - 3] != _CLOSE:
                return out[:0], starts[:0], -1
        else:
            counts[:] = 0
            n_new += 1
        last = ends[c]
        counts[places[c]] += adds[c]
        c += 1
        while c < n and _compare(keys, ends[c - 1], ends[c], keys, first, last) == 0:
            counts[places[c]] += adds[c]
            c += 1
        if counts.min() < 0:
            # More than fits into a number.
            return out[:0], starts[:0], -1
        at = _write_row(out, at, keys, first, last, counts)
    return out[:at], starts[:n_rows], n_new


NAMES = (*CATEGORIES, UNCLASSIFIED)
"""The categories in the order of the numbers in a block."""
_MOST_USERS = 4096
_BLOCKS_AT_ONCE = 64
_BETWEEN = ",\n"
_BLOCK_SCHEMA = pl.Schema({"user": pl.String(), **dict.fromkeys(NAMES, pl.Int64())})


def change_blocks(connection: sqlite3.Connection, changes: pl.DataFrame) -> int:
    """Add changes (user, place of the category, n), in the order of users; return the number of new users."""
    first, last = changes["user"][0], changes["user"][-1]
    begin = connection.execute("SELECT max(first_user) FROM profile_blocks WHERE first_user <= ?", (first,)).fetchone()
    between = (begin[0] if begin[0] is not None else first, last)
    before = b",\n".join(text[1:-1] for text in _blocks(connection, "BETWEEN ? AND ?", between))
    after, starts, n_new = add_to_lines(
        np.frombuffer(before, np.uint8),
        np.frombuffer(changes["user"].str.join("").item().encode(), np.uint8),
        changes["user"].str.len_bytes().cast(pl.Int64).cum_sum().to_numpy(),
        changes["category"].to_numpy(),
        changes["n"].to_numpy(),
        len(NAMES),
    )
    if n_new < 0:
        raise damaged()
    connection.execute("DELETE FROM profile_blocks WHERE first_user BETWEEN ? AND ?", between)
    n_users, ends = len(starts), np.append(starts, len(after))
    n_blocks = -(-n_users // _MOST_USERS)
    for start, end in pairwise(n_users * i // n_blocks for i in range(n_blocks + 1)):
        try:
            rows = after[ends[start] : ends[end] - len(_BETWEEN)].tobytes().decode()
        except UnicodeDecodeError:
            raise damaged() from None
        first_user = rows[1 : rows.index(",")]
        block = (first_user, end - start, f"[{rows}]")
        connection.execute("INSERT INTO profile_blocks VALUES (?, ?, ?, ?)", (*block, checksum(*block)))
    return int(n_new)


PROFILE_COLUMNS: Mapping[str, Columns] = {
    "profile_blocks": {"first_user": str, "n_users": int, "CAST(counts AS BLOB)": bytes},
    "profile_journal": {"id": int, "changes": str},
    "profile_progress": {"last": int, "user": str, "n_users": int},
}
"""The columns that the checksum of a row is over, by table."""


def _rows(connection: sqlite3.Connection, table: str, rest: str = "", values: Sequence[str] = ()) -> Iterator[Any]:
    """Yield rows of a table; raise if one is not as it was written."""
    columns = PROFILE_COLUMNS[table]
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    # A store that was not opened since there are checksums has no column of them.
    stored = "checksum" if version > 1 else "NULL"
    for row in connection.execute(f"SELECT {stored}, {', '.join(columns)} FROM {table} {rest}", values):
        if not is_sound(*row, columns=columns):
            raise damaged()
        yield row[1:]


def _blocks(connection: sqlite3.Connection, users: str, values: tuple[str, ...]) -> Iterator[bytes]:
    """Yield the text of the blocks whose first user is as `users` says, in order."""
    for _, _, text in _rows(connection, "profile_blocks", f"WHERE first_user {users} ORDER BY first_user", values):
        yield text


def read_blocks(connection: sqlite3.Connection, *, user: str | None) -> pl.DataFrame:
    """Return users with a column of counts for each category: those of all blocks, or of the one with a user."""
    of_user = "= (SELECT max(first_user) FROM profile_blocks WHERE first_user <= ?)"
    texts = _blocks(connection, ">= ?" if user is None else of_user, (user or "",))
    parts = [pl.DataFrame(schema=_BLOCK_SCHEMA)]
    while some := [text.decode(errors="replace") for text in islice(texts, _BLOCKS_AT_ONCE)]:
        parts.append(read_rows(some, schema=_BLOCK_SCHEMA))
    return pl.concat(parts)


def check_profiles(connection: sqlite3.Connection) -> None:
    """Raise if a block is not as it was written, or if the categories are other ones."""
    for _ in _blocks(connection, ">= ?", ("",)):
        pass
    names = [name for (name,) in connection.execute("SELECT name FROM categories ORDER BY place")]
    if names and names != list(NAMES):
        raise damaged()


FIRST_PROGRESS = f"INSERT INTO profile_progress VALUES (1, 0, '', 0, x'{checksum(0, '', 0).hex()}');\n"
PROFILE_SCHEMA = f"""
CREATE TABLE categories (place INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT;
INSERT INTO categories VALUES {", ".join(f"({place}, '{name}')" for place, name in enumerate(NAMES))};
CREATE TABLE profile_blocks (
    first_user TEXT PRIMARY KEY, n_users INTEGER NOT NULL, counts TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE profile_journal (id INTEGER PRIMARY KEY, changes TEXT NOT NULL) STRICT;
CREATE TABLE profile_progress (
    id INTEGER PRIMARY KEY CHECK (id = 1), last INTEGER NOT NULL, user TEXT NOT NULL, n_users INTEGER NOT NULL
) STRICT;
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

_CHANGE_SCHEMA = pl.Schema({"user": pl.String(), "category": pl.Int64(), "n": pl.Int64()})
_MOST_WAITING = 1_000_000
_LEAST_AT_ONCE = 10_000


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Backlog:
    """The changes that are in the journal and not yet in the blocks.

    `run` is in the order of users and on its way there, made of the journal up to `run_last`; `fresh` came after.
    `n_users` is how many users the blocks have. Users are JSON text here, as they stand in the file.
    """

    last: int = 0
    run_last: int = 0
    n_users: int = 0
    run: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=_CHANGE_SCHEMA))
    fresh: tuple[pl.DataFrame, ...] = ()


def read_backlog(connection: sqlite3.Connection) -> Backlog:
    """Read from the journal what is still to go into the blocks."""
    progress = list(_rows(connection, "profile_progress"))
    if not progress:
        raise damaged()
    run_last, user, n_users = progress[0]
    entries = list(_rows(connection, "profile_journal", "ORDER BY id"))
    run = read_rows([text for number, text in entries if number <= run_last], schema=_CHANGE_SCHEMA)
    fresh = read_rows([text for number, text in entries if number > run_last], schema=_CHANGE_SCHEMA)
    last = entries[-1][0] if entries else 0
    run = run.sort("user").filter(pl.col("user") > user)
    return Backlog(last=last, run_last=run_last, n_users=n_users, run=run, fresh=(fresh,) if len(fresh) else ())


def add_to_profiles(connection: sqlite3.Connection, profiles: pl.DataFrame, *, backlog: Backlog) -> Backlog:
    """Write changes, and merge a part of the earlier ones into the blocks; return the changes that are left.

    The transaction is the caller's; the backlog before holds again if that is rolled back.
    """
    places = pl.col("category").cast(pl.String).replace_strict(NAMES, range(len(NAMES)), return_dtype=pl.Int64)
    rows = profiles.select(quote(profiles["user"].cast(pl.String)), places, pl.col("n").cast(pl.Int64))
    number = backlog.last + 1
    after = replace(backlog, last=number, fresh=(*backlog.fresh, rows))
    if after.run.is_empty() and sum(map(len, after.fresh)) >= min(after.n_users // 2, _MOST_WAITING):
        after = replace(after, run=pl.concat(after.fresh).sort("user"), run_last=number, fresh=())
    after = _advance(connection, after, n_rows=max(_LEAST_AT_ONCE, len(rows) * 5 // 4))
    if after.fresh or not after.run.is_empty():
        changes = write_rows(rows)
        connection.execute("INSERT INTO profile_journal VALUES (?, ?, ?)", (number, changes, checksum(number, changes)))
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
    connection.execute(
        "UPDATE profile_progress SET last = ?, user = ?, n_users = ?, checksum = ?",
        (last, user, n_users, checksum(last, user, n_users)),
    )
    return replace(backlog, run=run, run_last=last, n_users=n_users)
