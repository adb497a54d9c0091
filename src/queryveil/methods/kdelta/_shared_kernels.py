"""Groups of users with cells in common, and what all of a group can keep if nothing may be added."""

from math import gcd
from typing import NamedTuple

import numpy as np

from queryveil.data import Int32s, Int64s
from queryveil.data.rows import Rows, order_of
from queryveil.kernels import njit
from queryveil.methods.kdelta._objects import Holdings


class _Free(NamedTuple):
    """The entries of each cell, `posts[post_ptr[c]:post_end[c]]`, without those of users who have a group for good."""

    entry_user: Int64s
    group_of: Int32s
    post_ptr: Int64s
    post_end: Int64s
    posts: Int64s


@njit(cache=True, nogil=True)
def gather_sharing(order: Int64s, held: Holdings, cell_entries: Rows[np.int64], k: int) -> tuple[Int32s, int]:
    """Return each user's group of exactly k, -1 for those without one, and the number of groups.

    By `order` each free user is a seed; it takes the free user who shares most rows with what the group still has in
    common, until there are k. `cell_entries` are the entries of each cell and are used up.
    """
    (ptr, cells), counts, _ = held
    n_users = len(order)
    entry_user = np.repeat(np.arange(n_users), np.diff(ptr))
    group_of = np.full(n_users, -1, np.int32)
    free = _Free(entry_user, group_of, cell_entries.ptr, cell_entries.ptr[1:].copy(), cell_entries.values)
    overlap = np.zeros(n_users, np.int64)
    touched, taken = np.empty(n_users, np.int64), np.empty(k, np.int64)
    n_groups = 0
    for seed in order:
        if group_of[seed] >= 0:
            continue
        taken[0] = seed
        group_of[seed] = n_groups
        n_taken = 1
        common, least = cells[ptr[seed] : ptr[seed + 1]].copy(), counts[ptr[seed] : ptr[seed + 1]].copy()
        while n_taken < k:
            n_left, best = _most_sharing(common, least, k - n_taken, n_groups, counts, free, overlap, touched)
            if best < 0:
                break
            group_of[best] = n_groups
            taken[n_taken] = best
            n_taken += 1
            common, least = _lower(common[:n_left], least, cells[ptr[best] : ptr[best + 1]], counts[ptr[best] :])
        if n_taken == k:
            n_groups += 1
        else:
            group_of[taken[:n_taken]] = -1
    return group_of, n_groups


@njit(cache=True, nogil=True)
def _most_sharing(
    common: Int32s, least: Int64s, n_needed: int, n_groups: int, counts: Int64s, free: _Free, overlap: Int64s,
    touched: Int64s,
) -> tuple[int, int]:  # fmt: skip
    """Keep the cells that enough free users have; a cell with fewer cannot stay in common.

    Returns how many stay, and the free user who shares most rows with them, -1 if nobody shares any.
    """
    entry_user, group_of, post_ptr, post_end, posts = free
    n_left, n_touched = 0, 0
    for i in range(len(common)):
        cell, most = common[i], least[i]
        n_free, end = 0, post_ptr[cell]
        for j in range(post_ptr[cell], post_end[cell]):
            group = group_of[entry_user[posts[j]]]
            n_free += group < 0
            # The group that is growing may yet fall apart; whoever is in another never comes back.
            if group < 0 or group == n_groups:
                posts[end] = posts[j]
                end += 1
        post_end[cell] = end
        if n_free < n_needed:
            continue
        common[n_left], least[n_left] = cell, most
        n_left += 1
        for entry in posts[post_ptr[cell] : end]:
            user = entry_user[entry]
            if group_of[user] < 0:
                if overlap[user] == 0:
                    touched[n_touched] = user
                    n_touched += 1
                overlap[user] += min(most, counts[entry])
    best = -1
    for user in touched[:n_touched]:
        if best < 0 or overlap[user] > overlap[best] or (overlap[user] == overlap[best] and user < best):
            best = user
    overlap[touched[:n_touched]] = 0
    return n_left, best


@njit(cache=True, nogil=True)
def _lower(common: Int32s, least: Int64s, theirs: Int32s, their_counts: Int64s) -> tuple[Int32s, Int64s]:
    """Return the cells in common with one more user and the lower counts, in the same arrays; all cells ascend."""
    n_left, j = 0, 0
    for i in range(len(common)):
        while j < len(theirs) and theirs[j] < common[i]:
            j += 1
        if j < len(theirs) and theirs[j] == common[i]:
            common[n_left], least[n_left] = common[i], min(least[i], their_counts[j])
            n_left += 1
    return common[:n_left], least[:n_left]


@njit(cache=True, nogil=True)
def gather_by_cell(
    group_of: Int32s, n_groups: int, user_cells: Rows[np.int32], cell_users: Rows[np.int64], k: int
) -> int:
    """Put users without a group together by the cell that most, k or more, of them have; return how many groups."""
    ptr, cells = user_cells
    post_ptr, posts = cell_users
    n_free = np.zeros(len(post_ptr) - 1, np.int64)
    for user in np.flatnonzero(group_of < 0):
        for i in range(ptr[user], ptr[user + 1]):
            n_free[cells[i]] += 1
    while len(n_free) > 0:
        cell = np.argmax(n_free)
        if n_free[cell] < k:
            break
        for user in posts[post_ptr[cell] : post_ptr[cell + 1]]:
            if group_of[user] < 0:
                group_of[user] = n_groups
                for i in range(ptr[user], ptr[user + 1]):
                    n_free[cells[i]] -= 1
        n_groups += 1
    return n_groups


@njit(cache=True, nogil=True)
def _times_within(user: int, held: Holdings, profile: Int32s, amount: Int64s) -> int:
    """Return how many times a user has the whole of a profile."""
    ptr, cells = held.owner_cells
    times, i = 2**62, ptr[user]
    for j in range(len(profile)):
        while i < ptr[user + 1] and cells[i] < profile[j]:
            i += 1
        if i == ptr[user + 1] or cells[i] != profile[j]:
            return 0
        times = min(times, int(held.counts[i] // amount[j]))
    return times


@njit(cache=True, nogil=True)
def join_fitting(users: Int64s, group_of: Int32s, held: Holdings, profiles: Holdings, by_first: Rows[np.int64]) -> None:
    """Put each user into the group of whose profile it keeps most, if any; `by_first`: groups by their first cell."""
    ptr, cells = held.owner_cells
    (profile_ptr, profile), amount, _ = profiles
    for user in users:
        most = 0
        for i in range(ptr[user], ptr[user + 1]):
            for group in by_first.values[by_first.ptr[cells[i]] : by_first.ptr[cells[i] + 1]]:
                first, last = profile_ptr[group], profile_ptr[group + 1]
                times = _times_within(user, held, profile[first:last], amount[first:last])
                kept = times * amount[first:last].sum() if times else 0
                if kept > most:
                    most, group_of[user] = kept, group


@njit(cache=True, nogil=True)
def choose_profiles(group_members: Rows[np.int64], held: Holdings) -> Holdings:
    """Return each group's profile: counts of cells that each member has once at least.

    Of three ways it takes the one that keeps most rows: the least counts of the members, each of the cells that they
    have most of once, or one cell alone. A group without a cell in common has an empty profile.
    """
    member_ptr, members = group_members
    ptr, n_groups = held.owner_cells.ptr, len(member_ptr) - 1
    out_ptr = np.zeros(n_groups + 1, np.int64)
    firsts = members[member_ptr[:-1]]
    longest = (ptr[firsts + 1] - ptr[firsts]).sum()
    out, amount = np.empty(longest, np.int32), np.empty(longest, np.int64)
    n = 0
    for group in range(n_groups):
        mine = members[member_ptr[group] : member_ptr[group + 1]]
        shared, table = _table(mine, held)
        if len(shared):
            profile = _best_profile(table)
            for j in range(len(shared)):
                if profile[j] > 0:
                    out[n], amount[n] = shared[j], profile[j]
                    n += 1
        out_ptr[group + 1] = n
    return Holdings(Rows(out_ptr, out[:n].copy()), amount[:n].copy(), held.n_cells)


@njit(cache=True, nogil=True)
def _table(mine: Int64s, held: Holdings) -> tuple[Int32s, Int64s]:
    """Return the cells that all members have, ascending, and each member's counts there."""
    (ptr, cells), counts, _ = held
    own = slice(ptr[mine[0]], ptr[mine[0] + 1])
    shared, least = cells[own].copy(), counts[own].copy()
    for user in mine[1:]:
        shared, least = _lower(shared, least, cells[ptr[user] : ptr[user + 1]], counts[ptr[user] :])
    table = np.empty((len(mine), len(shared)), np.int64)
    for m in range(len(mine)):
        own = slice(ptr[mine[m]], ptr[mine[m] + 1])
        table[m] = counts[own][np.searchsorted(cells[own], shared)]
    return shared, table


@njit(cache=True, nogil=True)
def _best_profile(table: Int64s) -> Int64s:
    n_members, n_shared = table.shape
    least, total, divisor = np.empty(n_shared, np.int64), np.zeros(n_shared, np.int64), 0
    for j in range(n_shared):
        least[j] = table[:, j].min()
        total[j] = table[:, j].sum()
        divisor = gcd(divisor, least[j])
    best = least // divisor
    kept = 0
    for m in range(n_members):
        kept += (table[m] // best).min() * best.sum()

    times_of = np.full(n_members, 2**62, np.int64)
    by_least = order_of(-least)
    n_ones = 0
    for length in range(1, n_shared + 1):
        times_of = np.minimum(times_of, table[:, by_least[length - 1]])
        if times_of.sum() * length > kept:
            kept, n_ones = times_of.sum() * length, length
    alone = np.argmax(total)
    if total[alone] > kept:
        best[:] = 0
        best[alone] = 1
    elif n_ones:
        best[:] = 0
        best[by_least[:n_ones]] = 1
    return best
