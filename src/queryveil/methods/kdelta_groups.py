"""Groups of at least k users with alike shares, and the centroid of each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from queryveil import progress
from queryveil.kernels.arrays import Int32s, Int64s
from queryveil.kernels.group_centroids import choose_centroids
from queryveil.kernels.group_costs import nearest_centroids, steps_of
from queryveil.kernels.group_swaps import swap_users
from queryveil.kernels.rows import group
from queryveil.kernels.user_groups import form_groups
from queryveil.methods.kdelta_objects import Holdings, totals

_MAX_ROUNDS = 8
_LEAST_PROGRESS = 0.005
"""Stop when a round of swaps saves less than this share of the edits."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Centroids:
    """What the users of each group are made equal to: counts of cells, as compressed rows."""

    ptr: Int64s
    cells: Int32s
    counts: Int64s

    @property
    def n_rows(self) -> Int64s:
        """The sum of the counts of each."""
        return totals(self.ptr, self.counts)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Grouping:
    """The group of each user, and the centroid of each group."""

    group_of: Int32s
    centroids: Centroids


def form(holdings: Holdings, *, k: int) -> Grouping:
    """Group as the paper does: whoever has most rows is a centroid and takes the k-1 nearest.

    Fewer than k left over join the nearest centroid. There are at least k users.
    """
    progress.step("grouping users")
    h, n_rows = holdings, holdings.n_rows
    order = np.argsort(-n_rows, kind="stable")
    group_of, seeds = form_groups(order, h.ptr, h.cells, h.counts, n_rows, *group(h.cells, h.n_cells), k)
    rest = np.flatnonzero(group_of < 0)
    group_of[rest] = nearest_centroids(rest, seeds, h.ptr, h.cells, h.counts, n_rows, h.n_cells)
    return Grouping(group_of=group_of, centroids=users_as_centroids(h, seeds))


def users_as_centroids(holdings: Holdings, users: Int64s) -> Centroids:
    """Give the counts of some users, each over their greatest common divisor."""
    h = holdings
    length = np.diff(h.ptr)[users]
    ptr = np.concatenate([[0], np.cumsum(length)]).astype(np.int64)
    place = np.repeat(h.ptr[users] - ptr[:-1], length) + np.arange(ptr[-1])
    divisor = steps_of(h.ptr, h.counts)[users]
    return Centroids(ptr=ptr, cells=h.cells[place], counts=h.counts[place] // np.repeat(divisor, length))


def improve(holdings: Holdings, grouping: Grouping, *, rng: np.random.Generator) -> Grouping:
    """Lower the number of rows to add and to suppress: other centroids, then users swapped between groups, in turns."""
    # Differs: the paper's centroid is a user. Ours are the counts that cost a group least, which may be no user's.
    h, n_rows = holdings, holdings.n_rows
    group_of = grouping.group_of.copy()
    member_ptr, members = group(group_of, len(grouping.centroids.ptr) - 1)
    best, cost = cheapest_centroids(h, member_ptr, members)
    for n_round in range(_MAX_ROUNDS):
        progress.step("swapping users", n_round / _MAX_ROUNDS)
        before, order = cost, rng.permutation(h.n_users)
        swap_users(
            order, group_of, member_ptr, members, h.ptr, h.cells, h.counts, n_rows,
            best.ptr, best.cells, best.counts, *by_cell(best, n_cells=h.n_cells),
        )  # fmt: skip
        best, cost = cheapest_centroids(h, member_ptr, members)
        if before - cost <= _LEAST_PROGRESS * before:
            break
    return Grouping(group_of=group_of, centroids=best)


def cheapest_centroids(holdings: Holdings, member_ptr: Int64s, members: Int64s) -> tuple[Centroids, int]:
    """Give the centroids for which the groups need fewest edits, and how many."""
    h = holdings
    ptr, cells, counts, costs = choose_centroids(member_ptr, members, h.ptr, h.cells, h.counts, h.n_rows)
    return Centroids(ptr=ptr, cells=cells, counts=counts), int(costs.sum())


def by_cell(centroids: Centroids, *, n_cells: int) -> tuple[Int64s, Int32s, Int64s]:
    """Give for each cell the groups whose centroid has it, and its count there."""
    owner = np.repeat(np.arange(len(centroids.ptr) - 1, dtype=np.int32), np.diff(centroids.ptr))
    ptr, places = group(centroids.cells, n_cells)
    return ptr, owner[places], centroids.counts[places]
