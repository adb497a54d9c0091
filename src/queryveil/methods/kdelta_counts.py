"""How many rows each user is to have in each cell, so that a group has equal shares."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from queryveil.kernels.arrays import Floats, Int32s, Int64s
from queryveil.methods.kdelta_groups import Centroids, Grouping
from queryveil.methods.kdelta_objects import Holdings


def exact_counts(holdings: Holdings, grouping: Grouping) -> Holdings:
    """Give each user the multiple of the centroid that is nearest to the rows it has.

    Of two equally near it is the smaller one; everybody gets it once at least. Then all of a group have equal shares.
    """
    centroids = grouping.centroids
    step = centroids.n_rows[grouping.group_of]
    times, rest = np.divmod(holdings.n_rows, step)
    times = np.maximum(1, times + (2 * rest > step))
    return multiply(centroids, grouping.group_of, times, n_cells=holdings.n_cells)


def rounded_counts(holdings: Holdings, grouping: Grouping) -> Holdings:
    """Give each user the centroid's shares of the rows it has, rounded up, as the paper does."""
    # Paper: it adds ceil(M_x N_y - N_y(ij)) and suppresses floor(N_y(ij) - M_x N_y): either leaves ceil(M_x N_y).
    centroids = grouping.centroids
    step = centroids.n_rows[grouping.group_of]
    whole = multiply(centroids, grouping.group_of, holdings.n_rows, n_cells=holdings.n_cells)
    counts = -(-whole.counts // step[whole.entry_user])
    return Holdings(ptr=whole.ptr, cells=whole.cells, counts=counts, n_cells=whole.n_cells)


def multiply(centroids: Centroids, group_of: Int32s, times: Int64s, *, n_cells: int) -> Holdings:
    """Give each user its group's centroid so many times; nothing to users without a group or with 0 times."""
    group_of = np.where(times > 0, group_of, -1)
    length = np.where(group_of >= 0, np.diff(centroids.ptr, append=0)[group_of], 0)
    ptr = np.concatenate([[0], np.cumsum(length)]).astype(np.int64)
    first = np.where(group_of >= 0, centroids.ptr[group_of], 0)
    place = np.repeat(first - ptr[:-1], length) + np.arange(ptr[-1])
    return Holdings(
        ptr=ptr,
        cells=centroids.cells[place],
        counts=centroids.counts[place] * np.repeat(times, length),
        n_cells=n_cells,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Edits:
    """How many rows are added and suppressed."""

    n_added: int
    n_suppressed: int


def edits_between(have: Holdings, want: Holdings) -> Edits:
    """Count the rows to add and to suppress."""
    difference = want.counts - matching(want, have)
    n_added = int(difference[difference > 0].sum())
    n_kept = int(want.counts.sum()) - n_added
    return Edits(n_added=n_added, n_suppressed=int(have.counts.sum()) - n_kept)


def matching(these: Holdings, others: Holdings) -> Int64s:
    """Give the others' count for each entry of these, 0 where they have none."""
    width = max(1, these.n_cells)
    keys = others.entry_user * width + others.cells
    wanted = these.entry_user * width + these.cells
    if not len(keys):
        return np.zeros(len(wanted), np.int64)
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[place] == wanted, others.counts[place], 0)


def distances_left(want: Holdings, have: Holdings, grouping: Grouping) -> Floats:
    """Give D between each user's new shares and those of the group's centroid."""
    ones = np.ones(have.n_users, np.int64)
    centroid = multiply(grouping.centroids, grouping.group_of, ones, n_cells=have.n_cells)
    share = want.counts / want.n_rows[want.entry_user]
    aim = centroid.counts / centroid.n_rows[centroid.entry_user]
    return np.bincount(want.entry_user, weights=np.abs(share - aim), minlength=have.n_users) / 2
