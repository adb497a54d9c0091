"""Profiles in blocks: some thousand users, in order, in one row of a SQLite table.

A row of its own for each user would cost several microseconds for each change; in a block, only the users that change
are read and written anew.

SQLite's shell reads such text with `json_each`, and a row costs a tenth of what a row of a table does.

A row is `["user",0,3,..]`, rows stand in the order of users with `,` and a line end between them, and no user holds a
comma or a bracket that is not escaped.
"""

from __future__ import annotations

import sqlite3
from itertools import pairwise
from typing import Final

import msgspec
import numba
import numpy as np
import polars as pl

from queryveil.data import Bytes, Int64s
from queryveil.errors import BadFile
from queryveil.text.classifier import CATEGORIES, UNCLASSIFIED

_BETWEEN_JSON_ROWS: Final = "],\n["
_SPECIAL: Final = r'["\\,\]\x00-\x1f]'


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
    r"""Return users as they were.

    >>> unquote(quote(pl.Series(["ann", 'b,"']))).to_list()
    ['ann', 'b,"']
    """
    if users.str.contains("\\", literal=True).any():
        return pl.Series(users.name, [msgspec.json.decode(user) for user in users], dtype=pl.String)
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
        return pl.read_csv(lines.encode(), has_header=False, schema=schema, quote_char=None)
    except pl.exceptions.PolarsError:
        # Privacy: the cause would quote a row, so it is dropped.
        raise damaged() from None


def damaged() -> BadFile:
    """Say that the text is not as it was written."""
    return BadFile("the store", "its profiles are damaged; restore a copy, or name another --store")


_COMMA, _OPEN, _CLOSE, _LINE, _ZERO = 44, 91, 93, 10, 48
_MOST_DIGITS = 20


@numba.njit(cache=True)
def _compare(left: Bytes, begin: int, end: int, right: Bytes, first: int, last: int) -> int:
    for i in range(min(end - begin, last - first)):
        if left[begin + i] != right[first + i]:
            return -1 if left[begin + i] < right[first + i] else 1
    return (end - begin) - (last - first)


@numba.njit(cache=True)
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


@numba.njit(cache=True)
def _read_counts(text: Bytes, at: int, counts: Int64s) -> int:
    """Read the counts from the comma after the user on; give where the row ends."""
    for i in range(len(counts)):
        at += 1
        counts[i] = 0
        while at < len(text) and text[at] != _COMMA and text[at] != _CLOSE:
            counts[i] = counts[i] * 10 + (text[at] - _ZERO)
            at += 1
    return at + 1


@numba.njit(cache=True)
def add_to_lines(
    text: Bytes, keys: Bytes, ends: Int64s, places: Int64s, adds: Int64s, n_places: int
) -> tuple[Bytes, Int64s, int]:
    """Add `adds[i]` at `places[i]` to the user whose JSON text ends at `ends[i]` in `keys`; users are in order.

    Gives the text after that, with `,` and a line end behind each row, where each row begins, and how many are new:
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
        order, comma = 1, here
        if here < len(text):
            while comma < len(text) and text[comma] != _COMMA:
                comma += 1
            order = _compare(text, here + 1, comma, keys, first, ends[c]) if c < n else -1
        if order < 0:
            end = comma
            while end < len(text) and text[end] != _CLOSE:
                end += 1
            if end >= len(text):
                return out[:0], starts[:0], -1
            out[at : at + end + 1 - here] = text[here : end + 1]
            at += end + 1 - here
            out[at], out[at + 1] = _COMMA, _LINE
            at, here = at + 2, end + 3
            continue
        if order == 0:
            here = _read_counts(text, comma, counts) + 2
            if here > len(text) + 2 or text[here - 3] != _CLOSE:
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
        at = _write_row(out, at, keys, first, last, counts)
    return out[:at], starts[:n_rows], n_new


NAMES: Final = (*CATEGORIES, UNCLASSIFIED)
"""The categories in the order of the numbers in a block."""
_MOST_USERS: Final = 4096
_BETWEEN: Final = ",\n"
_SCHEMA: Final = pl.Schema({"user": pl.String(), **dict.fromkeys(NAMES, pl.Int64())})


def read_blocks(texts: list[str]) -> pl.DataFrame:
    """Return users with a column of counts for each category."""
    return read_rows(texts, schema=_SCHEMA)


def change_blocks(connection: sqlite3.Connection, changes: pl.DataFrame) -> int:
    """Add changes (user, place of the category, n), in the order of users; give how many users are new."""
    first, last = changes["user"][0], changes["user"][-1]
    begin = connection.execute("SELECT max(first_user) FROM profile_blocks WHERE first_user <= ?", (first,)).fetchone()
    between = (begin[0] if begin[0] is not None else first, last)
    found = connection.execute(
        "SELECT CAST(counts AS BLOB) FROM profile_blocks WHERE first_user BETWEEN ? AND ? ORDER BY first_user", between
    )
    before = b",\n".join(text[1:-1] for (text,) in found)
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
    n_users = len(starts)
    n_blocks = -(-n_users // _MOST_USERS)
    ends = np.append(starts, len(after))
    for start, end in pairwise(n_users * i // n_blocks for i in range(n_blocks + 1)):
        rows = after[ends[start] : ends[end] - len(_BETWEEN)].tobytes().decode()
        first_user = rows[1 : rows.index(",")]
        connection.execute("INSERT INTO profile_blocks VALUES (?, ?, ?)", (first_user, end - start, f"[{rows}]"))
    return int(n_new)
