"""Equal shares by suppression alone: groups keep multiples of what all of their users have."""

from __future__ import annotations

import numpy as np

from queryveil import progress
from queryveil.kernels.arrays import Int32s, Int64s
from queryveil.kernels.rows import group
from queryveil.kernels.shared_cells import gather_by_cell, gather_sharing, join_fitting, times_of_all
from queryveil.kernels.shared_profiles import choose_profiles
from queryveil.methods.kdelta_counts import multiply
from queryveil.methods.kdelta_groups import Centroids
from queryveil.methods.kdelta_objects import Holdings


def share_groups(holdings: Holdings, *, k: int) -> Int32s:
    """Give each user a group of at least k with cells in common; -1 for users who share with too few others."""
    progress.step("grouping users")
    h = holdings
    order = np.argsort(-h.n_rows, kind="stable")
    post_ptr, posts = group(h.cells, h.n_cells)
    group_of, n_groups = gather_sharing(order, h.ptr, h.cells, h.counts, post_ptr, posts.copy(), k)
    n_groups = gather_by_cell(group_of, n_groups, h.ptr, h.cells, post_ptr, h.entry_user[posts], k)
    if n_groups:
        p = _profiles(h, group_of, n_groups)
        by_first = group(p.cells[p.ptr[:-1]], h.n_cells)
        join_fitting(
            np.flatnonzero(group_of < 0), group_of, h.ptr, h.cells, h.counts, p.ptr, p.cells, p.counts, *by_first
        )
    return group_of


def shared_counts(holdings: Holdings, group_of: Int32s) -> Holdings:
    """Give each user its group's common profile as many times as it has it; nothing to users without a group."""
    h = holdings
    profiles = _profiles(h, group_of, int(group_of.max(initial=-1)) + 1)
    times = times_of_all(group_of, h.ptr, h.cells, h.counts, profiles.ptr, profiles.cells, profiles.counts)
    return multiply(profiles, group_of, times, n_cells=h.n_cells)


def _profiles(holdings: Holdings, group_of: Int32s, n_groups: int) -> Centroids:
    h = holdings
    grouped: Int64s = np.flatnonzero(group_of >= 0)
    member_ptr, members = group(group_of[grouped], n_groups)
    ptr, cells, counts = choose_profiles(member_ptr, grouped[members], h.ptr, h.cells, h.counts, h.n_cells)
    return Centroids(ptr=ptr, cells=cells, counts=counts)
