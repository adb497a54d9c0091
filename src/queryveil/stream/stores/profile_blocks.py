"""Profiles in blocks: some thousand users, in order, in one row of a SQLite table.

A row of its own for each user would cost several microseconds for each change; in a block, only the users that change
are read and written anew.
"""

from __future__ import annotations

import sqlite3
from itertools import pairwise
from typing import Final

import numpy as np
import polars as pl

from queryveil.kernels.profile_lines import add_to_lines
from queryveil.stream.stores.json_rows import damaged, read_rows
from queryveil.text.categories import CATEGORIES, UNCLASSIFIED

NAMES: Final = (*CATEGORIES, UNCLASSIFIED)
"""The categories in the order of the numbers in a block."""
_MOST_USERS: Final = 4096
_BETWEEN: Final = ",\n"
_SCHEMA: Final = pl.Schema({"user": pl.String(), **dict.fromkeys(NAMES, pl.Int64())})


def read_blocks(texts: list[str]) -> pl.DataFrame:
    """Give users with a column of counts for each category."""
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
