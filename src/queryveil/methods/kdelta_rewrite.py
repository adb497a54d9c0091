"""The rows of a release: some of a user's own, and copies of others' rows where a user needs more."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from queryveil.kernels.arrays import Bools, Int32s, Int64s
from queryveil.kernels.rows import group
from queryveil.methods.kdelta_counts import matching
from queryveil.methods.kdelta_objects import Holdings


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rows:
    """Rows to release: the user of each, and the row of the log that it shows and the one its time is from."""

    user: Int32s
    source: Int64s
    time_source: Int64s

    def joined(self, other: Rows) -> Rows:
        """Give these rows and others."""
        return Rows(
            user=np.concatenate([self.user, other.user]),
            source=np.concatenate([self.source, other.source]),
            time_source=np.concatenate([self.time_source, other.time_source]),
        )


def kept_rows(user: Int32s, cell: Int32s, have: Holdings, want: Holdings, *, rng: np.random.Generator) -> Bools:
    """Say which rows stay: in each cell as many of a user's as wanted, drawn equiprobably."""
    order = np.lexsort((rng.random(len(user)), cell, user))
    first = np.cumsum(have.counts) - have.counts
    place = np.arange(len(user)) - np.repeat(first, have.counts)
    stays = np.empty(len(user), np.bool_)
    stays[order] = place < np.repeat(matching(have, want), have.counts)
    return stays


def added_rows(user: Int32s, cell: Int32s, have: Holdings, want: Holdings, *, rng: np.random.Generator) -> Rows:
    """Copy rows for what users lack: in each cell one of those that were issued there, drawn equiprobably.

    The whole row is copied, because empty columns would tell which rows are made up; the time is one of the user's own.
    """
    lack = np.maximum(0, want.counts - matching(want, have))
    new_user, new_cell = np.repeat(want.entry_user, lack).astype(np.int32), np.repeat(want.cells, lack)
    # Differs: the paper may mean distinct queries. Drawn by rows, a query is added as often as it was asked; otherwise
    # the frequent ones would lose their rank.
    cell_ptr, of_cell = group(cell, have.n_cells)
    user_ptr, of_user = group(user, have.n_users)
    return Rows(
        user=new_user,
        source=of_cell[_draw(cell_ptr[new_cell], cell_ptr[new_cell + 1], rng)],
        time_source=of_user[_draw(user_ptr[new_user], user_ptr[new_user + 1], rng)],
    )


def _draw(first: Int64s, last: Int64s, rng: np.random.Generator) -> Int64s:
    """Draw a number from each range, the last left out."""
    return rng.integers(first, last) if len(first) else np.zeros(0, np.int64)
