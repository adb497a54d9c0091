"""The same texts for all users of a group: beyond the paper, whose groups share clusters of queries only."""

from __future__ import annotations

import numpy as np

from queryveil.kernels.arrays import Int32s, Int64s
from queryveil.methods.kdelta_counts import matching
from queryveil.methods.kdelta_groups import Grouping
from queryveil.methods.kdelta_objects import Holdings, hold


def shared_texts(
    user: Int32s,
    cell: Int32s,
    query: Int32s,
    want: Holdings,
    grouping: Grouping,
    *,
    asked_by: Int64s,
    rng: np.random.Generator,
) -> Int32s:
    """Give the queries of the rows so that a group's users have the same ones in the same shares.

    A group's centroid has a place for each of its rows in a cell, and every user some multiple of these. A place takes,
    of the queries of the group's rows that are drawn for it, the one that most users asked.
    """
    times = want.n_rows // grouping.centroids.n_rows[grouping.group_of]
    n_places = want.counts // times[want.entry_user]
    have = hold(user, cell, n_users=want.n_users, n_cells=want.n_cells)
    places = Holdings(ptr=want.ptr, cells=want.cells, counts=n_places, n_cells=want.n_cells)
    order = np.lexsort((rng.random(len(user)), cell, user))
    number = np.arange(len(user)) - np.repeat(np.cumsum(have.counts) - have.counts, have.counts)
    place = np.empty(len(user), np.int64)
    place[order] = number % np.repeat(matching(have, places), have.counts)
    pair = grouping.group_of[user].astype(np.int64) * want.n_cells + cell
    _, place_of = np.unique(pair * (int(place.max(initial=0)) + 1) + place, return_inverse=True)
    # Privacy: a query that one person asked is taken only where nobody asked another.
    # Of the rows of a place the last one written stays.
    rising = np.lexsort((rng.random(len(user)), asked_by[query]))
    text = np.empty(int(place_of.max(initial=-1)) + 1, np.int32)
    text[place_of[rising]] = query[rising]
    return text[place_of]
