"""From rows and clusters to the rows of a release in which groups of users have equal shares."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

import numpy as np

from queryveil import progress
from queryveil.data import Bools, Int32s, Int64s
from queryveil.data.rows import Rows, group, pointers
from queryveil.errors import TooFewUsers
from queryveil.methods.kdelta import _groups, _shared_kernels
from queryveil.methods.kdelta._clusters import Repair
from queryveil.methods.kdelta._groups import Edits, Grouping, edits_between, entries_in, matching
from queryveil.methods.kdelta._objects import Holdings, Objects, cells_of, hold
from queryveil.methods.settings import KdeltaSettings


class ReleasedRows(NamedTuple):
    """Rows to release: the user of each, and the row of the log that it shows and the one its time is from."""

    user: Int32s
    source: Int64s
    time_source: Int64s


def _shuffled(user: Int32s, cell: Int32s, have: Holdings, *, rng: np.random.Generator) -> Rows[np.int64]:
    """Return the rows that each user has in each cell, in random order."""
    return Rows(pointers(have.counts), np.lexsort((rng.random(len(user)), cell, user)))


def kept_rows(user: Int32s, cell: Int32s, have: Holdings, want: Holdings, *, rng: np.random.Generator) -> Bools:
    """Return which rows stay: in each cell as many of a user's as wanted, drawn equiprobably."""
    rows = _shuffled(user, cell, have, rng=rng)
    stays = np.empty(len(user), np.bool_)
    stays[rows.values] = rows.place_in_row < np.repeat(matching(have, want), have.counts)
    return stays


def added_rows(
    user: Int32s, cell: Int32s, have: Holdings, want: Holdings, *, one_by_one: bool = False, rng: np.random.Generator
) -> ReleasedRows:
    """Copy rows for what users lack, so that they look like rows of one person.

    Whoever has rows in a cell gets these again. Anybody else gets there what another user has, one who has as many
    rows in the cell or the next more; where nobody has as many, the largest number is repeated. The whole row is
    copied, because empty columns would tell which rows are made up; the time is one of the user's own. As in the paper,
    `one_by_one`, each is any row of the cell.
    """
    lack = np.maximum(0, want.counts - matching(want, have))
    entry = np.flatnonzero(lack)
    needy, needed, n = want.entry_owner[entry], want.cells[entry], lack[entry]
    # Differs: the paper draws each row by itself. Then nothing is repeated as people repeat themselves, and real rows
    # are told by that.
    # Differs: it may also mean distinct queries. Drawn by rows, a query is added as often as it was asked; otherwise
    # the frequent ones would lose their rank.
    giver = _givers(have, needed, n, rng=rng)
    own = entries_in(have, needy, needed)
    new = Rows(pointers(n), np.repeat(np.where(own >= 0, own, giver), n))
    rows = _shuffled(user, cell, have, rng=rng)
    source = rows.values[rows.ptr[new.values] + new.place_in_row % have.counts[new.values]]
    if one_by_one:
        cell_ptr, of_cell = group(cell, have.n_cells)
        new_cell = np.repeat(needed, n)
        source = of_cell[rng.integers(cell_ptr[new_cell], cell_ptr[new_cell + 1])]
    user_ptr, of_user = group(user, have.n_owners)
    new_user = np.repeat(needy, n).astype(np.int32)
    time_source = of_user[rng.integers(user_ptr[new_user], user_ptr[new_user + 1])]
    return ReleasedRows(user=new_user, source=source, time_source=time_source)


def _givers(have: Holdings, cell: Int32s, n: Int64s, *, rng: np.random.Generator) -> Int64s:
    """Draw for each cell an entry of somebody who has n rows there, or the next more; if nobody has, most."""
    by_count = np.lexsort((have.counts, have.cells))
    width = int(max(have.counts.max(initial=0), n.max(initial=0))) + 1
    keys = have.cells[by_count].astype(np.int64) * width + have.counts[by_count]
    wanted = cell.astype(np.int64) * width
    beyond = np.searchsorted(keys, wanted + width)
    first = np.minimum(np.searchsorted(keys, wanted + n), beyond - 1)
    last = np.searchsorted(keys, keys[first], side="right")
    return by_count[rng.integers(first, last)]


def share_groups(holdings: Holdings, *, k: int) -> Int32s:
    """Return for each user a group of at least k with cells in common; -1 for users who share with too few others."""
    progress.step("grouping users")
    h = holdings
    order = np.argsort(-h.n_rows, kind="stable")
    post_ptr, posts = group(h.cells, h.n_cells)
    group_of, n_groups = _shared_kernels.gather_sharing(order, h, Rows(post_ptr, posts.copy()), k)
    cell_users = Rows(post_ptr, h.entry_owner[posts])
    n_groups = _shared_kernels.gather_by_cell(group_of, n_groups, h.owner_cells, cell_users, k)
    if n_groups:
        profiles = _profiles(h, group_of, n_groups)
        by_first = group(profiles.cells[profiles.owner_cells.ptr[:-1]], h.n_cells)
        _shared_kernels.join_fitting(np.flatnonzero(group_of < 0), group_of, h, profiles, by_first)
    return group_of


def shared_counts(holdings: Holdings, group_of: Int32s) -> Holdings:
    """Return for each user its group's common profile as many times as it has it; nothing to users without a group."""
    profiles = _profiles(holdings, group_of, int(group_of.max(initial=-1)) + 1)
    once = _groups.multiply(profiles, group_of, np.ones(len(group_of), np.int64))
    some = np.flatnonzero(once.owner_cells.lengths)
    times = np.zeros(len(group_of), np.int64)
    times[some] = np.minimum.reduceat(matching(once, holdings) // once.counts, once.owner_cells.ptr[some])
    return _groups.multiply(profiles, group_of, times)


def _profiles(holdings: Holdings, group_of: Int32s, n_groups: int) -> Holdings:
    grouped: Int64s = np.flatnonzero(group_of >= 0)
    ptr, members = group(group_of[grouped], n_groups)
    return _shared_kernels.choose_profiles(Rows(ptr, grouped[members]), holdings)


def places_in_group(user: Int32s, cell: Int32s, group_of: Int32s, *, n_cells: int, rng: np.random.Generator) -> Int64s:
    """Return the place of each row in its user's group: every member has the same number of rows in each, as shares.

    A group has some places in each cell, and a user each of them equally often. Which row takes which is drawn.
    """
    have = hold(user, cell, n_owners=len(group_of), n_cells=n_cells)
    rows = _shuffled(user, cell, have, rng=rng)
    place = np.empty(len(user), np.int64)
    place[rows.values] = rows.place_in_row % np.repeat(have.in_lowest_terms, have.counts)
    pair = group_of[user].astype(np.int64) * n_cells + cell
    places: Int64s = np.unique(pair * (int(place.max(initial=0)) + 1) + place, return_inverse=True)[1]
    return places


def shared_texts(query: Int32s, cell: Int32s, place_of: Int64s, *, table: Table, rng: np.random.Generator) -> Int32s:
    """Return the queries of the rows so that a group's users have the same ones in the same shares.

    A place takes, of the queries of its rows, the one that most users asked; if one person alone asked it, a query of
    the cell that two or more asked, drawn by rows, if there is any.
    """
    # Of the rows of a place the last one written stays.
    rising = np.lexsort((rng.random(len(query)), table.asked_by[query]))
    text, text_cell = (np.empty(int(place_of.max(initial=-1)) + 1, np.int32) for _ in range(2))
    text[place_of[rising]], text_cell[place_of] = query[rising], cell
    # Privacy: a query that one person asked is taken only where no query of the cell was asked by two.
    common = np.flatnonzero(table.asked_by[table.query] > 1)
    ptr, rows = group(table.cell[common], table.n_cells)
    lone = (table.asked_by[text] == 1) & (ptr[text_cell + 1] > ptr[text_cell])
    of = text_cell[lone]
    text[lone] = table.query[common[rows[rng.integers(ptr[of], ptr[of + 1])]]]
    return text[place_of]


def shared_days(time_source: Int64s, place_of: Int64s, *, rng: np.random.Generator) -> Int64s:
    """Return the row that each row has its day from: in each place that of one of its rows, drawn equiprobably."""
    drawn = rng.permutation(len(time_source))
    source = np.empty(int(place_of.max(initial=-1)) + 1, np.int64)
    source[place_of[drawn]] = time_source[drawn]
    return source[place_of]


_N_REGROUPINGS = 3
"""How often users are grouped anew without the rows that would split a cell; made-up logs kept 2 to 15 % more rows."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcome:
    """The rows to release, the query of each, the row its day is from, and each query's cluster among them."""

    rows: ReleasedRows
    query: Int32s
    day_source: Int64s
    part: Int64s
    edits: Edits
    n_exchanged: int = 0
    measures: dict[str, float] = field(default_factory=dict)


class Table:
    """The rows of a log as users and cells; both are numbered without gaps."""

    def __init__(self, objects: Objects, cluster: Int32s) -> None:
        self.query, self.url = objects.query, objects.url
        self.cluster = cluster
        self.cell, self.n_cells = cells_of(cluster[objects.query], objects.url)
        present, user = np.unique(objects.user, return_inverse=True)
        self.user: Int32s = user.astype(np.int32)
        self.n_users = len(present)
        self.asked_by: Int64s = objects.n_users_by(objects.query, n_numbers=len(cluster))

    def check_enough(self, k: int) -> None:
        """Raise if a group of k cannot be made."""
        if self.n_users < k:
            raise TooFewUsers(self.n_users, needed=k, way_out="a smaller k, or leaving out fewer rare queries")

    def hold(self, rows: Int64s | slice = slice(None)) -> Holdings:
        """Count the rows of each user in each cell: all of them, or some."""
        return hold(self.user[rows], self.cell[rows], n_owners=self.n_users, n_cells=self.n_cells)


def nothing(cluster: Int32s) -> Outcome:
    """Return the outcome of an empty log."""
    none, part = np.zeros(0, np.int64), cluster.astype(np.int64)
    rows = ReleasedRows(user=none.astype(np.int32), source=none, time_source=none)
    return Outcome(rows=rows, query=rows.user, day_source=none, part=part, edits=Edits(0, 0), measures={"groups": 0})


def equal_by_edits(table: Table, settings: KdeltaSettings, *, same_days: bool, rng: np.random.Generator) -> Outcome:
    """Add and suppress rows until each group has its centroid's shares, or nearly.

    Where they are rounded as in the paper or may differ by `max_distance`, nearly. With `same_texts` they have them of
    texts too, and each text is a cluster of its own; with `same_days` of days.
    """
    table.check_enough(settings.k)
    have, rounded, same_texts = table.hold(), settings.mode == "paper", settings.same_texts

    def counts(grouping: Grouping) -> Holdings:
        return _groups.near_counts(have, grouping, max_distance=settings.max_distance, rounded=rounded, rng=rng)

    as_paper = _groups.form(have, k=settings.k)
    papers = edits_between(have, counts(as_paper))
    grouping = _groups.improve(have, as_paper, rng=rng) if settings.centroids == "best" else as_paper
    want = counts(grouping)
    edits = edits_between(have, want)
    if sum(edits) > sum(papers):
        # Centroids are chosen by what exact counts cost; rounded ones may differ.
        grouping, want, edits = as_paper, counts(as_paper), papers
    progress.step("adding and suppressing rows")
    stay = np.flatnonzero(kept_rows(table.user, table.cell, have, want, rng=rng))
    own = table.user[stay], stay, stay
    added = added_rows(table.user, table.cell, have, want, one_by_one=rounded, rng=rng)
    rows = ReleasedRows(*(np.concatenate([mine, new]) for mine, new in zip(own, added, strict=True)))
    before, cell = table.query[rows.source], table.cell[rows.source]
    if same_texts or same_days:
        place_of = places_in_group(rows.user, cell, grouping.group_of, n_cells=table.n_cells, rng=rng)
    if same_texts:
        part = np.arange(len(table.cluster))
        query = shared_texts(before, cell, place_of, table=table, rng=rng)
    else:
        progress.step("clustering what is released")
        repair = Repair(table.cluster, delta=settings.delta)
        query = repair.exchange(before, table.url[rows.source], cell, rng=rng)
        part = repair.part
    measures = _measures(grouping.group_of, edits, n_users=table.n_users)
    measures["additions_paper_centroids"], measures["suppressions_paper_centroids"] = papers
    if rounded or settings.max_distance:
        left = _groups.distances_left(want, grouping)
        measures["largest_distance_left"] = round(float(left.max()), 6)
        measures["mean_distance_left"] = round(float(left.mean()), 6)
    return Outcome(
        rows=rows,
        query=query,
        day_source=shared_days(rows.time_source, place_of, rng=rng) if same_days else rows.time_source,
        part=part,
        edits=edits,
        n_exchanged=int((query != before).sum()),
        measures=measures,
    )


def equal_by_suppression(
    table: Table, settings: KdeltaSettings, *, same_days: bool, rng: np.random.Generator
) -> Outcome:
    """Suppress rows until each group has equal shares, with `same_days` of days too; nothing is added or exchanged."""
    k = settings.k
    table.check_enough(k)
    repair = Repair(table.cluster, delta=settings.delta)
    pair = table.cell.astype(np.int64) * len(table.cluster) + table.query
    usable = rows = np.arange(len(table.user))
    group_of = share_groups(table.hold(), k=k)
    for n_round in count():
        progress.step("suppressing rows")
        have = table.hold(rows)
        rows = rows[kept_rows(table.user[rows], table.cell[rows], have, shared_counts(have, group_of), rng=rng)]
        lost = repair.split_off(table.query[rows], table.url[rows], table.cell[rows])
        if not lost.any():
            break
        if n_round < _N_REGROUPINGS:
            usable = rows = usable[~np.isin(pair[usable], pair[rows[lost]])]
            group_of = share_groups(table.hold(usable), k=k)
        else:
            # From here on rows only become fewer, so this ends.
            rows = rows[~lost]
    if not len(rows):
        raise TooFewUsers(0, needed=k, way_out="a smaller k, or additions: too few users share a query and a URL")
    edits = Edits(n_added=0, n_suppressed=len(table.user) - len(rows))
    user, day_source = table.user[rows], rows
    if same_days:
        place_of = places_in_group(user, table.cell[rows], group_of, n_cells=table.n_cells, rng=rng)
        day_source = shared_days(rows, place_of, rng=rng)
    return Outcome(
        rows=ReleasedRows(user=user, source=rows, time_source=rows),
        query=table.query[rows],
        day_source=day_source,
        part=repair.part,
        edits=edits,
        measures=_measures(group_of[np.unique(user)], edits, n_users=table.n_users),
    )


def _measures(group_of: Int32s, edits: Edits, *, n_users: int) -> dict[str, float]:
    _, sizes = np.unique(group_of, return_counts=True)
    return {
        "groups": len(sizes),
        "largest_group": int(sizes.max()),
        "additions_per_user": round(edits.n_added / n_users, 4),
        "suppressions_per_user": round(edits.n_suppressed / n_users, 4),
    }
