"""How near users are to the centroid of their group before anything is added or suppressed."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import fmean

import numpy as np

from queryveil.kernels.arrays import Floats
from queryveil.log import QueryLog
from queryveil.methods.kdelta_clusters import cluster_queries
from queryveil.methods.kdelta_counts import matching, multiply
from queryveil.methods.kdelta_equal import Table
from queryveil.methods.kdelta_groups import Grouping, form, improve
from queryveil.methods.kdelta_objects import Holdings, read_objects
from queryveil.reproduce.kdelta_runs import Run, Variant
from queryveil.rng import generator


def mean_nearness(logs: Iterable[QueryLog], *, run: Run, seed: int) -> float:
    """Give the mean of D between users and the centroids of the groups that a run makes, over several logs."""
    return fmean(_mean_distance(log, run=run, seed=seed + i) for i, log in enumerate(logs))


def _mean_distance(log: QueryLog, *, run: Run, seed: int) -> float:
    have = without_rare(log, run=run)
    grouping = form(have, k=run.k)
    if run.variant is Variant.BEST:
        grouping = improve(have, grouping, rng=generator(seed))
    return float(distances(have, grouping).mean())


def without_rare(log: QueryLog, *, run: Run) -> Holdings:
    """Count each user's rows in each pair of a cluster and a URL, rare clusters left out as the method does."""
    objects = read_objects(log.frame)
    n_queries = len(objects.texts)
    cluster = cluster_queries(objects.query, objects.url, n_queries=n_queries, delta=run.delta)
    of_row = cluster[objects.query]
    asked_by = objects.n_users_by(of_row, n_numbers=n_queries)
    return Table(objects.keep(asked_by[of_row] >= run.min_cluster_users), cluster).hold()


def distances(have: Holdings, grouping: Grouping) -> Floats:
    """Give D between each user's shares and those of its centroid.

    >>> from queryveil.methods.kdelta_groups import Centroids
    >>> users = Holdings(ptr=np.array([0, 1, 3]), cells=np.array([0, 0, 1]), counts=np.array([4, 1, 3]), n_cells=2)
    >>> centroid = Centroids(ptr=np.array([0, 1]), cells=np.array([0]), counts=np.array([1]))
    >>> distances(users, Grouping(group_of=np.array([0, 0]), centroids=centroid)).tolist()
    [0.0, 0.75]
    """
    ones = np.ones(have.n_users, np.int64)
    aim = multiply(grouping.centroids, grouping.group_of, ones, n_cells=have.n_cells)
    owner = aim.entry_user
    # Half the sum of |x - y| is 1 less the sum of the smaller ones, as shares add up to 1.
    shared = np.minimum(aim.counts / aim.n_rows[owner], matching(aim, have) / have.n_rows[owner])
    in_common: Floats = np.bincount(owner, weights=shared, minlength=have.n_users).astype(np.float64)
    return np.maximum(0.0, 1 - in_common)
