"""A log as numbers: users, queries, URLs, and the rows of each user in each cell of cluster and URL."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import polars as pl

from queryveil.data import Bools, Int32s, Int64s
from queryveil.data.rows import Rows, pointers
from queryveil.text.tokens import encode, encode_normalised


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Objects:
    """Rows with a query: the place of each in the frame, and numbers for its user, query and URL (-1: no click)."""

    place: Int64s
    user: Int32s
    query: Int32s
    url: Int32s
    texts: pl.Series
    urls: pl.Series
    n_users: int

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(self.place)

    def keep(self, rows: Bools) -> Objects:
        """Return some of the rows."""
        places, users, queries, urls = self.place[rows], self.user[rows], self.query[rows], self.url[rows]
        return replace(self, place=places, user=users, query=queries, url=urls)

    def n_users_by(self, numbers: Int32s, *, n_numbers: int) -> Int64s:
        """Return the number of distinct users with each of the numbers that the rows have."""
        pairs = np.unique(numbers.astype(np.int64) * max(1, self.n_users) + self.user)
        return np.bincount(pairs // max(1, self.n_users), minlength=n_numbers)


class Holdings(NamedTuple):
    """How many rows each user has in each cell: the cells of each user, ascending, and the number of rows in each."""

    user_cells: Rows[np.int32]
    counts: Int64s
    n_cells: int

    @property
    def cells(self) -> Int32s:
        """The cells of all users, one after another."""
        return self.user_cells.values

    @property
    def n_users(self) -> int:
        """The number of users."""
        return self.user_cells.n_rows

    @property
    def n_rows(self) -> Int64s:
        """The number of rows of each user."""
        return _sums(self.user_cells, self.counts)

    @property
    def entry_user(self) -> Int64s:
        """The user of each entry."""
        return self.user_cells.row_of_entry


class Centroids(NamedTuple):
    """What the users of each group are made equal to: the cells of each group and the counts of these."""

    group_cells: Rows[np.int32]
    counts: Int64s

    @property
    def cells(self) -> Int32s:
        """The cells of all groups, one after another."""
        return self.group_cells.values

    @property
    def n_rows(self) -> Int64s:
        """The sum of the counts of each."""
        return _sums(self.group_cells, self.counts)


def _sums(rows: Rows[np.int32], counts: Int64s) -> Int64s:
    """Return the sum of the counts beside each row."""
    return np.diff(pointers(counts)[rows.ptr])


def read_objects(frame: pl.DataFrame) -> Objects:
    """Number the users, queries and URLs of the rows that have a query."""
    query, texts = encode_normalised(frame["query"])
    url, urls = _clicked_urls(frame)
    user, users = encode(frame["user"])
    found = Objects(
        place=np.arange(frame.height), user=user, query=query, url=url, texts=texts, urls=urls, n_users=len(users)
    )
    return found.keep((texts != "").to_numpy()[query] if frame.height else np.zeros(0, np.bool_))


def _clicked_urls(frame: pl.DataFrame) -> tuple[Int32s, pl.Series]:
    if "url" not in frame.columns:
        return np.full(frame.height, -1, np.int32), pl.Series([], dtype=pl.String)
    codes, urls = encode(frame["url"].fill_null(""))
    is_url = (urls.str.strip_chars() != "").to_numpy()
    number = np.where(is_url, np.cumsum(is_url) - 1, -1).astype(np.int32)
    return (number[codes] if len(urls) else codes), urls.filter(is_url)


def cells_of(cluster: Int32s, url: Int32s) -> tuple[Int32s, int]:
    """Number the pairs of cluster and URL that the rows have."""
    width = int(url.max(initial=-1)) + 2
    found, cell = np.unique(cluster.astype(np.int64) * width + url + 1, return_inverse=True)
    return cell.astype(np.int32), len(found)


def hold(user: Int32s, cell: Int32s, *, n_users: int, n_cells: int) -> Holdings:
    """Count each user's rows in each cell.

    >>> hold(np.array([1, 0, 1]), np.array([0, 1, 0]), n_users=2, n_cells=2).counts.tolist()
    [1, 2]
    """
    pairs, counts = np.unique(user.astype(np.int64) * max(1, n_cells) + cell, return_counts=True)
    owner, cells = pairs // max(1, n_cells), pairs % max(1, n_cells)
    user_cells = Rows.from_entries(owner, cells.astype(np.int32), n_rows=n_users)
    return Holdings(user_cells=user_cells, counts=counts.astype(np.int64), n_cells=n_cells)
