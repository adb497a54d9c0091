"""A log as numbers: users, queries, URLs, and the rows of each user in each cell of cluster and URL."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import polars as pl

from queryveil.data import Bools, Int32s, Int64s
from queryveil.data.rows import Rows, pointers
from queryveil.text.tokens import encode, encode_normal_form


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
        return replace(self, **{name: getattr(self, name)[rows] for name in ("place", "user", "query", "url")})

    def n_users_by(self, numbers: Int32s, *, n_numbers: int) -> Int64s:
        """Return the number of distinct users with each of the numbers that the rows have."""
        return hold(numbers, self.user, n_owners=n_numbers, n_cells=self.n_users).owner_cells.lengths


class Holdings(NamedTuple):
    """How many rows each user, or centroid of a group, has in each cell: `counts` beside its cells, which ascend."""

    owner_cells: Rows[np.int32]
    counts: Int64s
    n_cells: int

    @property
    def cells(self) -> Int32s:
        """The cells of all owners, one after another."""
        return self.owner_cells.values

    @property
    def n_owners(self) -> int:
        """The number of users or groups."""
        return self.owner_cells.n_rows

    @property
    def n_rows(self) -> Int64s:
        """The number of rows of each owner."""
        return np.diff(pointers(self.counts)[self.owner_cells.ptr])

    @property
    def entry_owner(self) -> Int64s:
        """The owner of each entry."""
        return self.owner_cells.row_of_entry

    @property
    def in_lowest_terms(self) -> Int64s:
        """The counts, those of each owner over their greatest common divisor."""
        lengths = self.owner_cells.lengths[self.owner_cells.lengths > 0]
        divisors: Int64s = np.gcd.reduceat(self.counts, pointers(lengths)[:-1])
        return self.counts // np.repeat(divisors, lengths)


def read_objects(frame: pl.DataFrame) -> Objects:
    """Number the users, queries and URLs of the rows that have a query."""
    query, texts = encode_normal_form(frame["query"])
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


def hold(owner: Int32s, cell: Int32s, *, n_owners: int, n_cells: int) -> Holdings:
    """Count each owner's rows in each cell.

    >>> hold(np.array([1, 0, 1]), np.array([0, 1, 0]), n_owners=2, n_cells=2).counts.tolist()
    [1, 2]
    """
    width = max(1, n_cells)
    pairs, counts = np.unique(owner.astype(np.int64) * width + cell, return_counts=True)
    owner_cells = Rows.from_entries(pairs // width, (pairs % width).astype(np.int32), n_rows=n_owners)
    return Holdings(owner_cells=owner_cells, counts=counts.astype(np.int64), n_cells=n_cells)
