"""Groups of at least k users with alike shares, and the centroid of each."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from queryveil import progress
from queryveil.data import Floats, Int32s, Int64s
from queryveil.data.rows import Rows, group, insert_best
from queryveil.kernels import njit
from queryveil.methods.kdelta._group_kernels import choose_centroids, swap_users
from queryveil.methods.kdelta._objects import Holdings, hold


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
    entry_user = np.repeat(np.arange(n_users), np.diff(ptr))
    post_end = post_ptr[1:].copy()
    rank = np.empty(n_users, np.int64)
    rank[order] = np.arange(n_users)
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
            n_best = insert_best(user, overlap[user] / n_rows[user], best, best_value, n_best, rank)
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


_NEARLY = 1e-9
_MAX_ROUNDS = 8
_LEAST_PROGRESS = 0.005
"""Stop when a round of swaps saves less than this share of the edits."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Grouping:
    """The group of each user, and the centroid of each group."""

    group_of: Int32s
    centroids: Holdings


def form(holdings: Holdings, *, k: int) -> Grouping:
    """Group k users or more as the paper does: who has most rows takes the k-1 nearest; the rest join the nearest."""
    progress.step("grouping users")
    h, n_rows = holdings, holdings.n_rows
    order = np.argsort(-n_rows, kind="stable")
    group_of, seeds = form_groups(order, h, n_rows, group(h.cells, h.n_cells), k)
    counts_of_seeds = multiply(h, seeds, np.ones(len(seeds), np.int64))
    for user in np.flatnonzero(group_of < 0).tolist():
        group_of[user] = _nearest(user, h, counts_of_seeds)
    return Grouping(group_of=group_of, centroids=users_as_centroids(h, seeds))


def _nearest(user: int, holdings: Holdings, centroids: Holdings) -> int:
    """Return the group whose centroid is nearest; of those equally near one with as many rows, then the first."""
    mine = slice(*holdings.owner_cells.ptr[user : user + 2])
    counts = np.zeros(holdings.n_cells, np.int64)
    counts[holdings.cells[mine]] = holdings.counts[mine]
    n_mine, n_rows, owner = counts.sum(), centroids.n_rows, centroids.entry_owner
    smaller = np.minimum(counts[centroids.cells] * n_rows[owner], centroids.counts * n_mine)
    shared = np.bincount(owner, weights=smaller, minlength=centroids.n_owners) / n_rows
    return int(np.lexsort((np.abs(n_rows - n_mine), -shared))[0])


def users_as_centroids(holdings: Holdings, users: Int64s) -> Holdings:
    """Return the counts of some users, each over their greatest common divisor."""
    chosen = multiply(holdings, users, np.ones(len(users), np.int64))
    return chosen._replace(counts=chosen.in_lowest_terms)


def improve(holdings: Holdings, grouping: Grouping, *, rng: np.random.Generator) -> Grouping:
    """Lower the number of rows to add and to suppress: other centroids, then users swapped between groups, in turns."""
    # Differs: the paper's centroid is a user. Ours are the counts that cost a group least, which may be no user's.
    group_of = grouping.group_of.copy()
    members = group(group_of, grouping.centroids.n_owners)
    best, cost = choose_centroids(members, holdings, holdings.n_rows)
    for n_round in range(_MAX_ROUNDS):
        progress.step("swapping users", n_round / _MAX_ROUNDS)
        before, order = cost, rng.permutation(holdings.n_owners)
        swap_users(order, group_of, members, holdings, holdings.n_rows, best)
        best, cost = choose_centroids(members, holdings, holdings.n_rows)
        if before - cost <= _LEAST_PROGRESS * before:
            break
    return Grouping(group_of=group_of, centroids=best)


def exact_counts(holdings: Holdings, grouping: Grouping) -> Holdings:
    """Return for each user the multiple, 1 or more, of the centroid nearest to its rows, the smaller of two."""
    step = grouping.centroids.n_rows[grouping.group_of]
    times, rest = np.divmod(holdings.n_rows, step)
    return multiply(grouping.centroids, grouping.group_of, np.maximum(1, times + (2 * rest > step)))


def rounded_counts(holdings: Holdings, grouping: Grouping) -> Holdings:
    """Return for each user the centroid's shares of the rows it has, rounded up, as the paper does."""
    # Paper: it adds ceil(M_x N_y - N_y(ij)) and suppresses floor(N_y(ij) - M_x N_y): either leaves ceil(M_x N_y).
    step = grouping.centroids.n_rows[grouping.group_of]
    whole = multiply(grouping.centroids, grouping.group_of, holdings.n_rows)
    return whole._replace(counts=-(-whole.counts // step[whole.entry_owner]))


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
        left = distances_left(near, grouping)
        is_far = (left > max_distance / 2 + _NEARLY) & (max_distance > 0)
        return near._replace(counts=np.where(is_far[near.entry_owner], want.counts, near.counts))
    if not max_distance:
        return want
    n_users = want.n_owners
    lack = np.maximum(0, want.counts - matching(want, holdings))
    surplus = np.maximum(0, holdings.counts - matching(holdings, want))
    user_lacks = np.bincount(want.entry_owner, weights=lack, minlength=n_users)
    user_surplus = np.bincount(holdings.entry_owner, weights=surplus, minlength=n_users)
    allowed = np.floor(want.n_rows * (max_distance / 2) + _NEARLY)
    n_changed = np.minimum(allowed, np.minimum(user_lacks, user_surplus)).astype(np.int64)
    less = _draw(want.entry_owner, lack, n_changed, rng=rng)
    more = _draw(holdings.entry_owner, surplus, n_changed, rng=rng)
    user = np.concatenate([np.repeat(want.entry_owner, want.counts - less), np.repeat(holdings.entry_owner, more)])
    cell = np.concatenate([np.repeat(want.cells, want.counts - less), np.repeat(holdings.cells, more)])
    return hold(user, cell, n_owners=n_users, n_cells=holdings.n_cells)


def _draw(owner: Int64s, counts: Int64s, n: Int64s, *, rng: np.random.Generator) -> Int64s:
    """Draw n of each owner's rows, given how many there are in each entry; return how many of each entry."""
    entry = np.repeat(np.arange(len(counts)), counts)
    order = np.lexsort((rng.random(len(entry)), owner[entry]))
    rows = Rows.from_entries(owner[entry], entry[order], n_rows=len(n))
    drawn = rows.values[rows.place_in_row < n[rows.row_of_entry]]
    return np.bincount(drawn, minlength=len(counts))


def multiply(centroids: Holdings, group_of: Int32s | Int64s, times: Int64s) -> Holdings:
    """Return for each user its group's centroid so many times; nothing to users without a group or with 0 times."""
    (ptr, cells), counts, _ = centroids
    # Behind the others stands an empty row, for users without a group.
    with_none = Rows(np.append(ptr, ptr[-1]), cells)
    entries = with_none.entries(np.where((times > 0) & (group_of >= 0), group_of, len(ptr) - 1))
    user_cells = Rows(entries.ptr, cells[entries.values])
    return centroids._replace(owner_cells=user_cells, counts=counts[entries.values] * times[entries.row_of_entry])


class Edits(NamedTuple):
    """How many rows are added and suppressed."""

    n_added: int
    n_suppressed: int


def edits_between(have: Holdings, want: Holdings) -> Edits:
    """Count the rows to add and to suppress."""
    n_kept = int(np.minimum(want.counts, matching(want, have)).sum())
    return Edits(n_added=int(want.counts.sum()) - n_kept, n_suppressed=int(have.counts.sum()) - n_kept)


def matching(these: Holdings, others: Holdings) -> Int64s:
    """Return the others' count for each entry of these, 0 where they have none."""
    place = entries_in(others, these.entry_owner, these.cells)
    return np.where(place >= 0, np.append(others.counts, 0)[place], 0)


def entries_in(holdings: Holdings, user: Int64s, cell: Int32s) -> Int64s:
    """Return the entry of each user in each cell, -1 where there is none."""
    width = max(1, holdings.n_cells)
    keys, wanted = holdings.entry_owner * width + holdings.cells, user * width + cell
    if not len(keys):
        return np.full(len(wanted), -1, np.int64)
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[place] == wanted, place, -1)


def distances_left(have: Holdings, grouping: Grouping) -> Floats:
    """Return D between each user's shares and those of the group's centroid."""
    centroid = multiply(grouping.centroids, grouping.group_of, np.ones(have.n_owners, np.int64))
    owner = centroid.entry_owner
    # Half the sum of |x - y| is 1 less the sum of the smaller ones, as shares add up to 1.
    shared = np.minimum(centroid.counts / centroid.n_rows[owner], matching(centroid, have) / have.n_rows[owner])
    return np.maximum(0.0, 1 - np.bincount(owner, weights=shared, minlength=have.n_owners))
