"""Clusters that are tight in the released log too.

A query loses URLs when rows are suppressed, so queries that were near in the log may be far in the release, and whoever
checks the promise sees the release alone. Each cluster is clustered again by what is released. If that splits a cell,
one part of it wins, and the rows of the others must go or get another query, which takes more URLs away from queries,
so it goes on until no cell is split. A cluster that falls apart between its cells leaves all shares equal.
"""

from __future__ import annotations

import numpy as np

from queryveil.kernels.arrays import Bools, Int32s, Int64s
from queryveil.kernels.rows import group
from queryveil.methods.kdelta_clusters import cluster_queries

_MAX_ROUNDS = 20
"""After so many rounds the clusters at fault keep one query in each cell, which are then clusters of their own."""


class Repair:
    """The clusters of the queries, made anew round by round from the rows that are to be released.

    `cluster` is each query's cluster in the log; `part` becomes the one it has in the release.
    """

    def __init__(self, cluster: Int32s, *, delta: float, max_rounds: int = _MAX_ROUNDS) -> None:
        self.cluster, self.delta, self._max_rounds = cluster, delta, max_rounds
        self.part: Int64s = cluster.astype(np.int64)
        self._n_parts = int(cluster.max(initial=-1)) + 1
        self._apart = np.zeros(self._n_parts, np.bool_)
        self._n_rounds = 0

    def split_off(self, query: Int32s, url: Int32s, cell: Int32s) -> Bools:
        """Cluster the queries of these rows again; give the rows that are outside the winning part of their cell.

        The rows are all that there are of their clusters.
        """
        if self.delta >= 1 or not len(query):
            return np.zeros(len(query), np.bool_)
        n_queries = len(self.cluster)
        found = cluster_queries(query, url, n_queries=n_queries, delta=self.delta, within=self.cluster)
        part = np.where(self._apart[self.cluster], n_queries + np.arange(n_queries), found)
        self.part = np.where(found >= 0, part + self._n_parts, self.part)
        self._n_parts = int(self.part.max()) + 1
        lost = _outside_the_largest_part(cell, part[query])
        self._n_rounds += 1
        if self._n_rounds >= self._max_rounds:
            self._apart[self.cluster[query[lost]]] = True
        return lost

    def exchange(self, query: Int32s, url: Int32s, cell: Int32s, *, rng: np.random.Generator) -> Int32s:
        """Give the queries of the rows: those outside the winning part of their cell get one of that part's there."""
        now = query.copy()
        rows = np.arange(len(query))
        while len(rows):
            lost = self.split_off(now[rows], url[rows], cell[rows])
            at_fault = np.zeros(len(self._apart), np.bool_)
            at_fault[self.cluster[now[rows[lost]]]] = True
            now[rows[lost]] = _others_of_the_cell(now[rows], cell[rows], lost, rng)
            rows = rows[at_fault[self.cluster[now[rows]]]]
        return now


def _outside_the_largest_part(cell: Int32s, part: Int64s) -> Bools:
    width = int(part.max()) + 1
    pairs, pair_of, n_rows = np.unique(cell.astype(np.int64) * width + part, return_inverse=True, return_counts=True)
    by_size = np.lexsort((np.arange(len(pairs)), -n_rows, pairs // width))
    of_cell = pairs[by_size] // width
    wins = np.zeros(len(pairs), np.bool_)
    wins[by_size[np.flatnonzero(np.diff(of_cell, prepend=-1))]] = True
    return ~wins[pair_of]


def _others_of_the_cell(query: Int32s, cell: Int32s, lost: Bools, rng: np.random.Generator) -> Int32s:
    """Draw for each lost row the query of a row of its cell that is not lost."""
    stay = np.flatnonzero(~lost)
    ptr, places = group(cell[stay], int(cell.max(initial=-1)) + 1)
    needy = cell[lost]
    if not len(needy):
        return query[:0]
    return query[stay[places[rng.integers(ptr[needy], ptr[needy + 1])]]]
