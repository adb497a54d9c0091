"""Clusters of queries for which people clicked the same URLs.

A query loses URLs when rows are suppressed, so queries that were near in the log may be far in the release, and whoever
checks the promise sees the release alone. Each cluster is clustered again by what is released. If that splits a cell,
one part of it wins, and the rows of the others must go or get another query, which takes more URLs away from queries,
so it goes on until no cell is split. A cluster that falls apart between its cells leaves all shares equal.
"""

import math
from typing import NamedTuple

import numpy as np

from queryveil.data import Bools, Int32s, Int64s
from queryveil.data.rows import Rows, group, order_of, pointers
from queryveil.kernels import njit
from queryveil.methods.kdelta._objects import hold

_EPSILON = 1e-12
"""1 - 1/3 and its like are not exact: without a margin a distance of exactly delta could be above it."""
_SCALE = 2**31


class Sets(NamedTuple):
    """Sets of URLs that get together only if they have the same `within` and share `similarity` (above 0, Jaccard).

    No set is empty. The URLs of each stand by falling rarity; `url_sets` are the sets with each URL by rising size,
    and `sizes` their sizes.
    """

    urls: Rows[np.int32]
    within: Int32s
    url_sets: Rows[np.int32]
    sizes: Int64s
    similarity: float


@njit(cache=True, nogil=True)
def grow_clusters(sets: Sets, order: Int64s) -> Int32s:
    """Return each set's cluster, any two sets of which are similar; the sets take turns by `order` as seeds."""
    ptr, urls = sets.urls
    n_sets = len(ptr) - 1
    rank = np.empty(n_sets, np.int64)
    rank[order] = np.arange(n_sets)
    cluster_of = np.full(n_sets, -1, np.int32)
    is_seeds = np.full(len(sets.url_sets.ptr) - 1, -1, np.int64)
    seen = np.full(n_sets, -1, np.int64)
    found, keys, taken = np.empty(n_sets, np.int64), np.empty(n_sets, np.int64), np.empty(n_sets, np.int64)
    n_clusters = 0
    for seed in order:
        if cluster_of[seed] >= 0:
            continue
        cluster_of[seed] = n_clusters
        is_seeds[urls[ptr[seed] : ptr[seed + 1]]] = seed
        seen[seed] = seed
        n_found = _near(seed, sets, cluster_of, rank, is_seeds, seen, found, keys)
        n_taken = 0
        for place in order_of(keys[:n_found]):
            other = found[place]
            for member in taken[:n_taken]:
                if not _alike(member, other, ptr, urls, sets.similarity):
                    break
            else:
                taken[n_taken] = other
                n_taken += 1
                cluster_of[other] = n_clusters
        n_clusters += 1
    return cluster_of


@njit(cache=True, nogil=True)
def _near(
    seed: int, sets: Sets, cluster_of: Int32s, rank: Int64s, is_seeds: Int64s, seen: Int64s, found: Int64s,
    keys: Int64s,
) -> int:  # fmt: skip
    """Find the sets without a cluster that are near the seed, with keys that rise with distance, then with rank.

    Two sets of sizes a and b are near only if they share s / (1 + s) * (a + b) URLs, so one of the few rarest of the
    seed is among them: common URLs, whose lists are long, are looked up for the small sets alone.
    """
    (ptr, urls), within, (post_ptr, posts), sizes, similarity = sets
    n_found = 0
    size = ptr[seed + 1] - ptr[seed]
    for i in range(size):
        url = urls[ptr[seed] + i]
        place = post_ptr[url]
        while place < post_ptr[url + 1]:
            other_size = sizes[place]
            end = place + np.searchsorted(sizes[place : post_ptr[url + 1]], other_size, side="right")
            needed = max(1, math.ceil(similarity / (1 + similarity) * (size + other_size) - 1e-9))
            if needed > size:
                break
            if needed <= other_size and i <= size - needed:
                for j in range(place, end):
                    other = posts[j]
                    if seen[other] == seed or cluster_of[other] >= 0 or within[other] != within[seed]:
                        continue
                    seen[other] = seed
                    n_shared = 0
                    for m in range(ptr[other], ptr[other + 1]):
                        n_shared += is_seeds[urls[m]] == seed
                    n_either = size + other_size - n_shared
                    if n_shared >= similarity * n_either - _EPSILON:
                        found[n_found] = other
                        keys[n_found] = ((_SCALE - round(n_shared / n_either * _SCALE)) << 31) | rank[other]
                        n_found += 1
            place = end
    return n_found


@njit(cache=True, nogil=True)
def _alike(one: int, other: int, ptr: Int64s, urls: Int32s, similarity: float) -> bool:
    i, j, n_shared = ptr[one], ptr[other], 0
    while i < ptr[one + 1] and j < ptr[other + 1]:
        if urls[i] == urls[j]:
            n_shared += 1
            i += 1
            j += 1
        elif urls[i] < urls[j]:
            i += 1
        else:
            j += 1
    n_either = ptr[one + 1] - ptr[one] + ptr[other + 1] - ptr[other] - n_shared
    return bool(n_shared >= similarity * n_either - _EPSILON)


def cluster_queries(
    query: Int32s, url: Int32s, *, n_queries: int, delta: float, within: Int32s | None = None
) -> Int32s:
    """Return each query's cluster, in which any two queries are within `delta` of each other; -1 without a row.

    Row i asked `query[i]` and clicked `url[i]`, -1 for no click. Clusters grow from the query sets with most rows first
    and take the nearest first. A query that nobody clicked a result of is a cluster by itself. Only queries with the
    same `within` get together.

    >>> query, url = np.array([0, 0, 1, 2, 3], np.int32), np.array([0, 1, 1, 2, -1], np.int32)
    >>> cluster_queries(query, url, n_queries=4, delta=0.5).tolist()
    [0, 0, 1, 2]
    """
    n_rows = np.bincount(query, minlength=n_queries)
    within = np.zeros(n_queries, np.int32) if within is None else within
    clicked, urls = _clicked(query, url)
    out = np.full(n_queries, -1, np.int32)
    if delta >= 1:
        # Paper: no distance is above 1, so this is what its definition says.
        out[clicked] = np.unique(within[clicked], return_inverse=True)[1]
    else:
        # Queries with the same URLs are at distance 0 and equally far from all others, so only sets are compared.
        set_of, first = _equal_sets(urls, within[clicked])
        of_set = urls.take(first)
        owner = of_set.row_of_entry.astype(np.int32)
        posts = owner[np.lexsort((owner, of_set.lengths[owner], of_set.values))]
        url_sets = Rows(pointers(np.bincount(of_set.values)), posts)
        sets = Sets(of_set, within[clicked][first], url_sets, sizes=of_set.lengths[posts], similarity=1 - delta)
        most_rows_first = np.argsort(-np.bincount(set_of, weights=n_rows[clicked]), kind="stable")
        out[clicked] = grow_clusters(sets, most_rows_first)[set_of]
    alone = np.flatnonzero((n_rows > 0) & (out < 0))
    out[alone] = np.arange(len(alone)) + out.max(initial=-1) + 1
    return out


def _clicked(query: Int32s, url: Int32s) -> tuple[Int64s, Rows[np.int32]]:
    """Return the queries with a click, and the URLs of each; URLs get numbers by falling rarity."""
    is_click = url >= 0
    n_urls = int(url.max(initial=-1)) + 1
    found = hold(query[is_click], url[is_click], n_owners=0, n_cells=n_urls)
    number = np.argsort(np.argsort(np.bincount(found.cells, minlength=n_urls), kind="stable")).astype(np.int32)
    urls = number[found.cells]
    by_number = Rows(found.owner_cells.ptr, urls[np.lexsort((urls, found.entry_owner))])
    clicked = np.flatnonzero(by_number.lengths)
    return clicked, by_number.take(clicked)


def _equal_sets(urls: Rows[np.int32], within: Int32s) -> tuple[Int64s, Int64s]:
    """Number the different sets as they first appear; return the number of each query, and the first query of each."""
    # Most sets are of one URL, which needs no dictionary.
    is_single, n_urls = urls.lengths == 1, int(urls.values.max(initial=0)) + 1
    code = within.astype(np.int64) * n_urls + urls.values[urls.ptr[:-1]]
    number: dict[tuple[int, bytes], int] = {}
    for i in np.flatnonzero(~is_single).tolist():
        code[i] = -1 - number.setdefault((within[i], urls.row(i).tobytes()), len(number))
    _, first, of_code = np.unique(code, return_index=True, return_inverse=True)
    in_order = np.argsort(first)
    place = np.empty(len(first), np.int64)
    place[in_order] = np.arange(len(first))
    return place[of_code], first[in_order]


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
        """Cluster the queries of all rows of some clusters; return which are outside the winning part of their cell."""
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
        """Return the queries of the rows: those outside the winning part of their cell get one of that part's there."""
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
    by_size = np.lexsort((-n_rows, pairs // width))
    _, first = np.unique(pairs[by_size] // width, return_index=True)
    return ~np.isin(pair_of, by_size[first])


def _others_of_the_cell(query: Int32s, cell: Int32s, lost: Bools, rng: np.random.Generator) -> Int32s:
    """Draw for each lost row the query of a row of its cell that is not lost."""
    stay = np.flatnonzero(~lost)
    ptr, places = group(cell[stay], int(cell.max(initial=-1)) + 1)
    needy = cell[lost]
    return query[stay[places[rng.integers(ptr[needy], ptr[needy + 1])]]]
