"""Kernels for the centroids of groups: the counts that need fewest additions and suppressions."""

import numpy as np

from queryveil.data import Int32s, Int64s
from queryveil.data.rows import Rows, order_of, sort_in_place
from queryveil.kernels import njit
from queryveil.methods.kdelta._objects import Centroids, Holdings


@njit(cache=True, nogil=True)
def multiple(n_rows: int, step: int) -> int:
    """Return how many times `step` comes nearest to `n_rows`, once at least; of two equally near the fewer."""
    times = n_rows // step
    if 2 * (n_rows - times * step) > step:
        times += 1
    return max(1, times)


@njit(cache=True, nogil=True)
def steps_of(ptr: Int64s, counts: Int64s) -> Int64s:
    """Return each user's greatest common divisor of counts."""
    out = np.ones(len(ptr) - 1, np.int64)
    for user in range(len(out)):
        divisor = 0
        for i in range(ptr[user], ptr[user + 1]):
            a, b = divisor, counts[i]
            while b:
                a, b = b, a % b
            divisor = a
        out[user] = max(1, divisor)
    return out


@njit(cache=True, nogil=True)
def spread(row: int, rows: Rows[np.int32], counts: Int64s, dense: Int64s) -> int:
    """Write the counts of a row into `dense`; return their sum."""
    step = 0
    for i in range(rows.ptr[row], rows.ptr[row + 1]):
        dense[rows.values[i]] = counts[i]
        step += counts[i]
    return step


@njit(cache=True, nogil=True)
def clear(row: int, rows: Rows[np.int32], dense: Int64s) -> None:
    """Undo `spread`."""
    for cell in rows.values[rows.ptr[row] : rows.ptr[row + 1]]:
        dense[cell] = 0


@njit(cache=True, nogil=True)
def edits(user: int, step: int, held: Holdings, n_rows: Int64s, dense: Int64s) -> int:
    """Return the rows to add to and to suppress of a user, in `exact`, towards the centroid in `dense`."""
    ptr, cells = held.user_cells
    times = multiple(n_rows[user], step)
    shared = 0
    for i in range(ptr[user], ptr[user + 1]):
        shared += min(held.counts[i], times * dense[cells[i]])
    return int(n_rows[user] + times * step - 2 * shared)


@njit(cache=True, nogil=True)
def nearest_centroids(users: Int64s, seeds: Int64s, held: Holdings, n_rows: Int64s) -> Int32s:
    """Return the place of each user's nearest seed; of those equally near one with as many rows, then the first."""
    (ptr, cells), counts, n_cells = held
    found = np.full(len(users), -1, np.int32)
    value, apart = np.zeros(len(users)), np.zeros(len(users), np.int64)
    dense = np.zeros(n_cells, np.int64)
    for group in range(len(seeds)):
        seed = seeds[group]
        step = spread(seed, held.user_cells, counts, dense)
        for i in range(len(users)):
            user = users[i]
            shared = 0
            for j in range(ptr[user], ptr[user + 1]):
                shared += min(counts[j] * step, dense[cells[j]] * n_rows[user])
            new = -shared / step
            differs = abs(n_rows[user] - n_rows[seed])
            if found[i] < 0 or new < value[i] or (new == value[i] and differs < apart[i]):
                found[i], value[i], apart[i] = group, new, differs
        clear(seed, held.user_cells, dense)
    return found


_N_TOTALS = 12
"""How many sums of counts are tried for a group at most."""


@njit(cache=True, nogil=True)
def choose_centroids(members: Rows[np.int64], held: Holdings, n_rows: Int64s) -> tuple[Centroids, Int64s]:
    """Return each group's centroid, and the rows to add and to suppress for it.

    Every user gets the multiple of the centroid that comes nearest to its rows. For a given sum of the centroid these
    multiples are known, and what another row in a cell adds to what users can keep becomes less with each one. So
    filling the cells by what they add, most first, keeps most; several sums are tried.
    """
    n_groups, n_entries = len(members.ptr) - 1, len(held.counts)
    out_ptr = np.zeros(n_groups + 1, np.int64)
    costs = np.empty(n_groups, np.int64)
    out_cells, out_counts = np.empty(n_entries, np.int32), np.empty(n_entries, np.int64)
    for group in range(n_groups):
        mine = members.values[members.ptr[group] : members.ptr[group + 1]]
        rows = np.empty(len(mine), np.int64)
        for i in range(len(mine)):
            rows[i] = n_rows[mine[i]]
        owner, cell, count = _entries(mine, held)
        best, best_cost = np.zeros(len(cell), np.int64), -1
        for total in _totals(rows):
            found = _fill(total, rows, owner, cell, count)
            if found[0] < 0:
                continue
            cost = _cost(found, rows, owner, cell, count)
            if best_cost < 0 or cost < best_cost:
                best, best_cost = found, cost
        n_out = out_ptr[group]
        for i in range(len(cell)):
            if best[i] > 0:
                out_cells[n_out], out_counts[n_out] = cell[i], best[i]
                n_out += 1
        out_ptr[group + 1], costs[group] = n_out, best_cost
    n_out = out_ptr[n_groups]
    return Centroids(Rows(out_ptr, out_cells[:n_out].copy()), out_counts[:n_out].copy()), costs


@njit(cache=True, nogil=True)
def _entries(mine: Int64s, held: Holdings) -> tuple[Int64s, Int64s, Int64s]:
    """Return who of the group has how many rows in which cell, by cell."""
    ptr, cells = held.user_cells
    n = 0
    for user in mine:
        n += ptr[user + 1] - ptr[user]
    owner, cell, count = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    n = 0
    for i in range(len(mine)):
        for j in range(ptr[mine[i]], ptr[mine[i] + 1]):
            owner[n], cell[n], count[n] = i, cells[j], held.counts[j]
            n += 1
    order = order_of(cell)
    return owner[order], cell[order], count[order]


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
    n = 0
    for i in range(len(out)):
        if n == 0 or out[i] != out[n - 1]:
            out[n] = out[i]
            n += 1
    return out[:n]


@njit(cache=True, nogil=True)
def _fill(total: int, rows: Int64s, owner: Int64s, cell: Int64s, count: Int64s) -> Int64s:
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
        a, b = divisor, chosen[i]
        while b:
            a, b = b, a % b
        divisor = a
    return chosen // divisor


@njit(cache=True, nogil=True)
def _cost(chosen: Int64s, rows: Int64s, owner: Int64s, cell: Int64s, count: Int64s) -> int:
    """Return the rows to add to and to suppress of the group's users for a centroid."""
    step = chosen.sum()
    cost = 0
    for i in range(len(rows)):
        cost += rows[i] + multiple(rows[i], step) * step
    of_cell = 0
    for i in range(len(cell)):
        if i == 0 or cell[i] != cell[i - 1]:
            of_cell = chosen[i]
        cost -= 2 * min(count[i], multiple(rows[owner[i]], step) * of_cell)
    return int(cost)


_N_TRIED = 4
"""Groups that each user is tried in."""


@njit(cache=True, nogil=True)
def swap_users(
    order: Int64s, group_of: Int32s, group_members: Rows[np.int64], held: Holdings, n_rows: Int64s,
    centroids: Centroids, cell_groups: Rows[np.int32], post_count: Int64s,
) -> int:  # fmt: skip
    """Swap users between groups, in place, where that costs less; centroids stay. Return how many rows it saves.

    `cell_groups` are the groups whose centroid has each cell, `post_count` its count there. By `order` each user is
    tried in the groups whose centroids would cost it least, in the stead of each of their members.
    """
    (ptr, cells), counts, _ = held
    member_ptr, members = group_members
    post_ptr, post_group = cell_groups
    n_groups = len(member_ptr) - 1
    place_of = np.empty(len(group_of), np.int64)
    place_of[members] = np.arange(len(members))
    step = np.empty(n_groups, np.int64)
    overlap = np.zeros(n_groups, np.int64)
    touched = np.empty(n_groups, np.int64)
    tried, tried_cost = np.empty(_N_TRIED, np.int64), np.empty(_N_TRIED, np.int64)
    dense = np.zeros(len(post_ptr) - 1, np.int64)
    now = np.zeros(len(group_of), np.int64)
    for group in range(n_groups):
        step[group] = spread(group, centroids.group_cells, centroids.counts, dense)
        for user in members[member_ptr[group] : member_ptr[group + 1]]:
            now[user] = edits(user, step[group], held, n_rows, dense)
        clear(group, centroids.group_cells, dense)

    saved = 0
    for user in order:
        home = group_of[user]
        if now[user] == 0:
            continue
        n_touched = 0
        for i in range(ptr[user], ptr[user + 1]):
            for j in range(post_ptr[cells[i]], post_ptr[cells[i] + 1]):
                group = post_group[j]
                if overlap[group] == 0:
                    touched[n_touched] = group
                    n_touched += 1
                overlap[group] += min(counts[i], multiple(n_rows[user], step[group]) * post_count[j])
        n_best = 0
        for i in range(n_touched):
            group = touched[i]
            cost = n_rows[user] + multiple(n_rows[user], step[group]) * step[group] - 2 * overlap[group]
            overlap[group] = 0
            if cost >= now[user] or group == home:
                continue
            place = n_best
            while place > 0 and tried_cost[place - 1] > cost:
                place -= 1
            if place < _N_TRIED:
                n_best = min(n_best + 1, _N_TRIED)
                for m in range(n_best - 1, place, -1):
                    tried[m], tried_cost[m] = tried[m - 1], tried_cost[m - 1]
                tried[place], tried_cost[place] = group, cost
        if n_best == 0:
            continue
        spread(home, centroids.group_cells, centroids.counts, dense)
        best, best_saved, best_cost, best_users = -1, 0, 0, 0
        for i in range(n_best):
            group = tried[i]
            for other in members[member_ptr[group] : member_ptr[group + 1]]:
                gain = now[user] - tried_cost[i] + now[other]
                if gain <= best_saved:
                    continue
                cost = edits(other, step[home], held, n_rows, dense)
                if gain - cost > best_saved:
                    best, best_saved, best_cost, best_users = other, gain - cost, cost, tried_cost[i]
        clear(home, centroids.group_cells, dense)
        if best >= 0:
            there = group_of[best]
            group_of[user], group_of[best] = there, home
            members[place_of[user]], members[place_of[best]] = best, user
            place_of[user], place_of[best] = place_of[best], place_of[user]
            now[user], now[best] = best_users, best_cost
            saved += best_saved
    return saved
