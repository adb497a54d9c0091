"""Groups of at least k users with alike shares, and the centroid of each."""

from dataclasses import dataclass

import numpy as np

from queryveil import progress
from queryveil.data import Floats, Int32s, Int64s
from queryveil.data.rows import Rows, group
from queryveil.kernels import njit
from queryveil.methods.kdelta._group_kernels import choose_centroids, nearest_centroids, steps_of, swap_users
from queryveil.methods.kdelta._objects import Centroids, Holdings, hold


@njit(cache=True, nogil=True)
def form_groups(
    order: Int64s, held: Holdings, n_rows: Int64s, cell_entries: Rows[np.int64], k: int
) -> tuple[Int32s, Int64s]:
    """Return each user's group and each group's seed; users left over, fewer than k, have the group -1.

    By falling number of rows, the `order`, each user that is still free is a seed and takes the k-1 free users nearest
    to it. Users who have no cell in common with the seed are equally far: of these it takes the ones with most rows,
    which have no more than it has. `cell_entries` are the entries of each cell and are used up.
    """
    (ptr, cells), counts, _ = held
    post_ptr, posts = cell_entries
    n_users = len(order)
    entry_user = np.empty(len(cells), np.int64)
    for user in range(n_users):
        entry_user[ptr[user] : ptr[user + 1]] = user
    post_end = post_ptr[1:].copy()
    group_of = np.full(n_users, -1, np.int32)
    seeds = np.empty(n_users // k, np.int64)
    overlap = np.zeros(n_users, np.int64)
    touched = np.empty(n_users, np.int64)
    best, best_value = np.empty(k - 1, np.int64), np.empty(k - 1)
    n_groups = 0
    for start in range(n_users):
        seed = order[start]
        if n_groups == len(seeds):
            break
        if group_of[seed] >= 0:
            continue
        seeds[n_groups] = seed
        group_of[seed] = n_groups
        n_touched = 0
        for i in range(ptr[seed], ptr[seed + 1]):
            cell, own = cells[i], counts[i]
            end = post_ptr[cell]
            for j in range(post_ptr[cell], post_end[cell]):
                user = entry_user[posts[j]]
                if group_of[user] >= 0:
                    continue
                posts[end] = posts[j]
                end += 1
                if overlap[user] == 0:
                    touched[n_touched] = user
                    n_touched += 1
                overlap[user] += min(own * n_rows[user], counts[posts[j]] * n_rows[seed])
            post_end[cell] = end
        n_best = 0
        for i in range(n_touched):
            user = touched[i]
            n_best = _insert(user, overlap[user] / n_rows[user], best, best_value, n_best, n_rows)
            overlap[user] = 0
        for i in range(n_best):
            group_of[best[i]] = n_groups
        n_missing = k - 1 - n_best
        place = start
        while n_missing > 0:
            if group_of[order[place]] < 0:
                group_of[order[place]] = n_groups
                n_missing -= 1
            place += 1
        n_groups += 1
    return group_of, seeds


@njit(cache=True, nogil=True)
def _insert(user: int, value: float, best: Int64s, best_value: Floats, n_best: int, n_rows: Int64s) -> int:
    """Keep the best: by falling value, then by falling number of rows, then by number."""
    place = n_best
    while place > 0:
        other = best[place - 1]
        if best_value[place - 1] > value:
            break
        if best_value[place - 1] == value and (
            n_rows[other] > n_rows[user] or (n_rows[other] == n_rows[user] and other < user)
        ):
            break
        place -= 1
    if place == len(best):
        return n_best
    n_best = min(n_best + 1, len(best))
    for i in range(n_best - 1, place, -1):
        best[i], best_value[i] = best[i - 1], best_value[i - 1]
    best[place], best_value[place] = user, value
    return n_best


_NEARLY = 1e-9
_MAX_ROUNDS = 8
_LEAST_PROGRESS = 0.005
"""Stop when a round of swaps saves less than this share of the edits."""


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
    group_of, seeds = form_groups(order, h, n_rows, group(h.cells, h.n_cells), k)
    rest = np.flatnonzero(group_of < 0)
    group_of[rest] = nearest_centroids(rest, seeds, h, n_rows)
    return Grouping(group_of=group_of, centroids=users_as_centroids(h, seeds))


def users_as_centroids(holdings: Holdings, users: Int64s) -> Centroids:
    """Return the counts of some users, each over their greatest common divisor."""
    h = holdings
    entries = h.user_cells.entries(users)
    ptr, place = entries
    divisor = steps_of(h.user_cells.ptr, h.counts)[users]
    counts = h.counts[place] // divisor[entries.row_of_entry]
    return Centroids(group_cells=Rows(ptr, h.cells[place]), counts=counts)


def improve(holdings: Holdings, grouping: Grouping, *, rng: np.random.Generator) -> Grouping:
    """Lower the number of rows to add and to suppress: other centroids, then users swapped between groups, in turns."""
    # Differs: the paper's centroid is a user. Ours are the counts that cost a group least, which may be no user's.
    h, n_rows = holdings, holdings.n_rows
    group_of = grouping.group_of.copy()
    members = group(group_of, grouping.centroids.group_cells.n_rows)
    best, cost = cheapest_centroids(h, members)
    for n_round in range(_MAX_ROUNDS):
        progress.step("swapping users", n_round / _MAX_ROUNDS)
        before, order = cost, rng.permutation(h.n_users)
        swap_users(order, group_of, members, h, n_rows, best, *by_cell(best, n_cells=h.n_cells))
        best, cost = cheapest_centroids(h, members)
        if before - cost <= _LEAST_PROGRESS * before:
            break
    return Grouping(group_of=group_of, centroids=best)


def cheapest_centroids(holdings: Holdings, members: Rows[np.int64]) -> tuple[Centroids, int]:
    """Return the centroids for which the groups need fewest edits, and how many."""
    centroids, costs = choose_centroids(members, holdings, holdings.n_rows)
    return centroids, int(costs.sum())


def by_cell(centroids: Centroids, *, n_cells: int) -> tuple[Rows[np.int32], Int64s]:
    """Return for each cell the groups whose centroid has it, and its count there."""
    owner = centroids.group_cells.row_of_entry.astype(np.int32)
    ptr, places = group(centroids.cells, n_cells)
    return Rows(ptr, owner[places]), centroids.counts[places]


def exact_counts(holdings: Holdings, grouping: Grouping) -> Holdings:
    """Return for each user the multiple of the centroid that is nearest to the rows it has.

    Of two equally near it is the smaller one; everybody gets it once at least. Then all of a group have equal shares.
    """
    centroids = grouping.centroids
    step = centroids.n_rows[grouping.group_of]
    times, rest = np.divmod(holdings.n_rows, step)
    times = np.maximum(1, times + (2 * rest > step))
    return multiply(centroids, grouping.group_of, times, n_cells=holdings.n_cells)


def rounded_counts(holdings: Holdings, grouping: Grouping) -> Holdings:
    """Return for each user the centroid's shares of the rows it has, rounded up, as the paper does."""
    # Paper: it adds ceil(M_x N_y - N_y(ij)) and suppresses floor(N_y(ij) - M_x N_y): either leaves ceil(M_x N_y).
    centroids = grouping.centroids
    step = centroids.n_rows[grouping.group_of]
    whole = multiply(centroids, grouping.group_of, holdings.n_rows, n_cells=holdings.n_cells)
    counts = -(-whole.counts // step[whole.entry_user])
    return whole._replace(counts=counts)


def near_counts(
    holdings: Holdings, grouping: Grouping, *, max_distance: float, rounded: bool, rng: np.random.Generator
) -> Holdings:
    """Return for each user counts of which D to those of any other of the group is at most `max_distance`.

    Nobody is further than half of it from the centroid, and so nobody further than all of it from another. The exact
    counts are changed so far: for a row that would be added, one that would be suppressed stays. Where counts are
    `rounded`, they are if that is near enough, and exact otherwise; at a distance of 0 rounded for everybody.
    """
    want = exact_counts(holdings, grouping)
    if rounded:
        near = rounded_counts(holdings, grouping)
        left = distances_left(near, holdings, grouping)
        is_far = (left > max_distance / 2 + _NEARLY) & (max_distance > 0)
        return near._replace(counts=np.where(is_far[near.entry_user], want.counts, near.counts))
    if not max_distance:
        return want
    n_rows, n_users = want.n_rows, want.n_users
    lack = np.maximum(0, want.counts - matching(want, holdings))
    surplus = np.maximum(0, holdings.counts - matching(holdings, want))
    user_lacks = np.bincount(want.entry_user, weights=lack, minlength=n_users)
    user_surplus = np.bincount(holdings.entry_user, weights=surplus, minlength=n_users)
    allowed = np.floor(n_rows * (max_distance / 2) + _NEARLY)
    n_changed = np.minimum(allowed, np.minimum(user_lacks, user_surplus)).astype(np.int64)
    less = _draw(want.entry_user, lack, n_changed, rng=rng)
    more = _draw(holdings.entry_user, surplus, n_changed, rng=rng)
    user = np.concatenate([np.repeat(want.entry_user, want.counts - less), np.repeat(holdings.entry_user, more)])
    cell = np.concatenate([np.repeat(want.cells, want.counts - less), np.repeat(holdings.cells, more)])
    return hold(user.astype(np.int32), cell, n_users=n_users, n_cells=holdings.n_cells)


def _draw(owner: Int64s, counts: Int64s, n: Int64s, *, rng: np.random.Generator) -> Int64s:
    """Draw n of each owner's rows, given how many there are in each entry; return how many of each entry."""
    entry = np.repeat(np.arange(len(counts)), counts)
    order = np.lexsort((rng.random(len(entry)), owner[entry]))
    rows = Rows.from_entries(owner[entry], entry[order], n_rows=len(n))
    drawn = rows.values[rows.place_in_row < n[rows.row_of_entry]]
    return np.bincount(drawn, minlength=len(counts))


def multiply(centroids: Centroids, group_of: Int32s, times: Int64s, *, n_cells: int) -> Holdings:
    """Return for each user its group's centroid so many times; nothing to users without a group or with 0 times."""
    ptr, cells = centroids.group_cells
    # Behind the others stands an empty row, for users without a group.
    with_none = Rows(np.append(ptr, ptr[-1]), cells)
    entries = with_none.entries(np.where((times > 0) & (group_of >= 0), group_of, len(ptr) - 1))
    counts = centroids.counts[entries.values] * times[entries.row_of_entry]
    return Holdings(user_cells=Rows(entries.ptr, cells[entries.values]), counts=counts, n_cells=n_cells)


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
    """Return the others' count for each entry of these, 0 where they have none."""
    place = entries_in(others, these.entry_user, these.cells)
    return np.where(place >= 0, np.append(others.counts, 0)[place], 0)


def entries_in(holdings: Holdings, user: Int64s, cell: Int32s) -> Int64s:
    """Return the entry of each user in each cell, -1 where there is none."""
    width = max(1, holdings.n_cells)
    keys, wanted = holdings.entry_user * width + holdings.cells, user * width + cell
    if not len(keys):
        return np.full(len(wanted), -1, np.int64)
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[place] == wanted, place, -1)


def distances_left(want: Holdings, have: Holdings, grouping: Grouping) -> Floats:
    """Return D between each user's new shares and those of the group's centroid."""
    ones = np.ones(have.n_users, np.int64)
    centroid = multiply(grouping.centroids, grouping.group_of, ones, n_cells=have.n_cells)
    owner = centroid.entry_user
    # Half the sum of |x - y| is 1 less the sum of the smaller ones, as shares add up to 1.
    shared = np.minimum(centroid.counts / centroid.n_rows[owner], matching(centroid, want) / want.n_rows[owner])
    return np.maximum(0.0, 1 - np.bincount(owner, weights=shared, minlength=have.n_users))
