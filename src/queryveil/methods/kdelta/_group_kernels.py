"""Kernels for the centroids of groups: the counts that need fewest additions and suppressions."""

from math import gcd

import numpy as np

from queryveil.data import Int32s, Int64s
from queryveil.data.rows import Rows, group, order_of, sort_in_place
from queryveil.kernels import njit
from queryveil.methods.kdelta._objects import Holdings


@njit(cache=True, nogil=True)
def multiple(n_rows: int, step: int) -> int:
    """Return how many times `step` comes nearest to `n_rows`, once at least; of two equally near the fewer."""
    times = n_rows // step
    if 2 * (n_rows - times * step) > step:
        times += 1
    return max(1, times)


@njit(cache=True, nogil=True)
def edits(user: int, step: int, held: Holdings, n_rows: Int64s, dense: Int64s) -> int:
    """Return the rows to add to and to suppress of a user, towards the centroid of `step` rows in `dense`."""
    ptr, cells = held.owner_cells
    times = multiple(n_rows[user], step)
    shared = 0
    for i in range(ptr[user], ptr[user + 1]):
        shared += min(held.counts[i], times * dense[cells[i]])
    return int(n_rows[user] + times * step - 2 * shared)


_N_TOTALS = 12
"""How many sums of counts are tried for a group at most."""


@njit(cache=True, nogil=True)
def choose_centroids(members: Rows[np.int64], held: Holdings, n_rows: Int64s) -> tuple[Holdings, int]:
    """Return each group's centroid, and the number of rows to add and to suppress for all of them.

    Every user gets the multiple of the centroid that comes nearest to its rows. For a given sum of the centroid these
    multiples are known, and what another row in a cell adds to what users can keep becomes less with each one. So
    filling the cells by what they add, most first, keeps most; several sums are tried.
    """
    n_groups, n_entries = len(members.ptr) - 1, len(held.counts)
    out_ptr, cost_of_all = np.zeros(n_groups + 1, np.int64), 0
    out_cells, out_counts = np.empty(n_entries, np.int32), np.empty(n_entries, np.int64)
    dense = np.zeros(held.n_cells, np.int64)
    for g in range(n_groups):
        mine = members.values[members.ptr[g] : members.ptr[g + 1]]
        rows = n_rows[mine]
        owner, cell, count = _entries(mine, held)
        best, best_cost = np.zeros(len(cell), np.int64), -1
        for total in _totals(rows):
            found = _fill(total, rows, owner, cell, count)
            if found[0] < 0:
                continue
            cost, step = 0, found.sum()
            dense[cell[found > 0]] = found[found > 0]
            for user in mine:
                cost += edits(user, step, held, n_rows, dense)
            dense[cell] = 0
            if best_cost < 0 or cost < best_cost:
                best, best_cost = found, cost
        cost_of_all += best_cost
        first = out_ptr[g]
        out_ptr[g + 1] = first + (best > 0).sum()
        out_cells[first : out_ptr[g + 1]], out_counts[first : out_ptr[g + 1]] = cell[best > 0], best[best > 0]
    n_out = out_ptr[n_groups]
    return Holdings(Rows(out_ptr, out_cells[:n_out].copy()), out_counts[:n_out].copy(), held.n_cells), cost_of_all


@njit(cache=True, nogil=True)
def _entries(mine: Int64s, held: Holdings) -> tuple[Int64s, Int32s, Int64s]:
    """Return who of the group has how many rows in which cell, by cell."""
    (ptr, cells), counts, _ = held
    lengths = ptr[mine + 1] - ptr[mine]
    owner = np.repeat(np.arange(len(mine)), lengths)
    entry = np.arange(len(owner)) + np.repeat(ptr[mine + 1] - np.cumsum(lengths), lengths)
    order = order_of(cells[entry])
    return owner[order], cells[entry][order], counts[entry][order]


@njit(cache=True, nogil=True)
def _totals(rows: Int64s) -> Int64s:
    """Return the sums to try: what members have, from few to many, whole, half and a third of it."""
    sizes = rows.copy()
    sort_in_place(sizes)
    n_sizes = min(len(sizes), _N_TOTALS // 3)
    out = np.empty(3 * n_sizes, np.int64)
    for i in range(n_sizes):
        size = sizes[i * (len(sizes) - 1) // max(1, n_sizes - 1)]
        out[3 * i], out[3 * i + 1], out[3 * i + 2] = size, max(1, size // 2), max(1, size // 3)
    sort_in_place(out)
    distinct: Int64s = out[np.append(True, out[1:] != out[:-1])]
    return distinct


@njit(cache=True, nogil=True)
def _fill(total: int, rows: Int64s, owner: Int64s, cell: Int32s, count: Int64s) -> Int64s:
    """Return the counts of the centroid of this sum that keeps most rows, over their greatest common divisor.

    They stand beside the first entry of each cell. A sum that has no use for all of its rows gives -1 there.
    """
    chosen = np.zeros(len(cell), np.int64)
    times = np.empty(len(rows), np.int64)
    for i in range(len(rows)):
        times[i] = multiple(rows[i], total)
    n_most = 0
    for i in range(len(cell)):
        n_most += min(total, -(-count[i] // times[owner[i]]))
    gains, of_cell = np.empty(n_most, np.int64), np.empty(n_most, np.int64)
    n, first = 0, 0
    while first < len(cell):
        last = first
        while last < len(cell) and cell[last] == cell[first]:
            last += 1
        for n_before in range(total):
            gain = 0
            for i in range(first, last):
                step = times[owner[i]]
                gain += min(count[i], step * (n_before + 1)) - min(count[i], step * n_before)
            if gain == 0:
                break
            gains[n], of_cell[n] = gain, first
            n += 1
        first = last
    if n < total:
        chosen[0] = -1
        return chosen
    order = order_of(-gains[:n])
    for i in range(total):
        chosen[of_cell[order[i]]] += 1
    divisor = 0
    for i in range(len(cell)):
        divisor = gcd(divisor, chosen[i])
    return chosen // divisor


_N_TRIED = 4
"""Groups that each user is tried in."""


@njit(cache=True, nogil=True)
def swap_users(
    order: Int64s, group_of: Int32s, group_members: Rows[np.int64], held: Holdings, n_rows: Int64s, centroids: Holdings
) -> int:
    """Swap users between groups, in place, where that costs less; centroids stay. Return how many rows it saves.

    By `order` each user is tried in the groups whose centroids would cost it least, in the stead of each member.
    """
    (ptr, cells), counts, n_cells = held
    (centroid_ptr, centroid_cells), centroid_counts, _ = centroids
    member_ptr, members = group_members
    n_groups = len(member_ptr) - 1
    # The groups whose centroid has each cell, and its count there.
    post_ptr, posts = group(centroid_cells, n_cells)
    post_group = np.repeat(np.arange(n_groups), np.diff(centroid_ptr))[posts]
    post_count = centroid_counts[posts]
    place_of = np.empty(len(group_of), np.int64)
    place_of[members] = np.arange(len(members))
    step = np.empty(n_groups, np.int64)
    overlap = np.zeros(n_groups, np.int64)
    touched = np.empty(n_groups, np.int64)
    costs = np.empty(n_groups, np.int64)
    dense = np.zeros(n_cells, np.int64)
    now = np.zeros(len(group_of), np.int64)
    for g in range(n_groups):
        mine = slice(centroid_ptr[g], centroid_ptr[g + 1])
        step[g] = centroid_counts[mine].sum()
        dense[centroid_cells[mine]] = centroid_counts[mine]
        for user in members[member_ptr[g] : member_ptr[g + 1]]:
            now[user] = edits(user, step[g], held, n_rows, dense)
        dense[centroid_cells[mine]] = 0

    saved = 0
    for user in order:
        home = group_of[user]
        if now[user] == 0:
            continue
        n_touched = 0
        for i in range(ptr[user], ptr[user + 1]):
            for j in range(post_ptr[cells[i]], post_ptr[cells[i] + 1]):
                there = post_group[j]
                if overlap[there] == 0:
                    touched[n_touched] = there
                    n_touched += 1
                overlap[there] += min(counts[i], multiple(n_rows[user], step[there]) * post_count[j])
        n_cheaper = 0
        for i in range(n_touched):
            there = touched[i]
            cost = n_rows[user] + multiple(n_rows[user], step[there]) * step[there] - 2 * overlap[there]
            overlap[there] = 0
            if cost < now[user]:
                touched[n_cheaper], costs[n_cheaper] = there, cost
                n_cheaper += 1
        if n_cheaper == 0:
            continue
        mine = slice(centroid_ptr[home], centroid_ptr[home + 1])
        dense[centroid_cells[mine]] = centroid_counts[mine]
        best, best_saved, best_cost, best_users = -1, 0, 0, 0
        for i in order_of(costs[:n_cheaper])[:_N_TRIED]:
            there = touched[i]
            for other in members[member_ptr[there] : member_ptr[there + 1]]:
                gain = now[user] - costs[i] + now[other]
                if gain <= best_saved:
                    continue
                cost = edits(other, step[home], held, n_rows, dense)
                if gain - cost > best_saved:
                    best, best_saved, best_cost, best_users = other, gain - cost, cost, costs[i]
        dense[centroid_cells[mine]] = 0
        if best >= 0:
            there = group_of[best]
            group_of[user], group_of[best] = there, home
            members[place_of[user]], members[place_of[best]] = best, user
            place_of[user], place_of[best] = place_of[best], place_of[user]
            now[user], now[best] = best_users, best_cost
            saved += best_saved
    return saved
