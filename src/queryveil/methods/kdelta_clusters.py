"""Clusters of queries for which people clicked the same URLs."""

from __future__ import annotations

import numpy as np

from queryveil.kernels.arrays import Int32s, Int64s
from queryveil.kernels.click_clusters import grow_clusters


def cluster_queries(
    query: Int32s, url: Int32s, *, n_queries: int, delta: float, within: Int32s | None = None
) -> Int32s:
    """Give each query's cluster, in which any two queries are within `delta` of each other; -1 without a row.

    Row i asked `query[i]` and clicked `url[i]`, -1 for no click. Clusters grow from the query sets with most rows first
    and take the nearest first. A query that nobody clicked a result of is a cluster by itself. Only queries with the
    same `within` get together.

    >>> query, url = np.array([0, 0, 1, 2, 3], np.int32), np.array([0, 1, 1, 2, -1], np.int32)
    >>> cluster_queries(query, url, n_queries=4, delta=0.5).tolist()
    [0, 0, 1, 2]
    """
    n_rows = np.bincount(query, minlength=n_queries)
    within = np.zeros(n_queries, np.int32) if within is None else within
    clicked, ptr, urls = _clicked(query, url)
    out = np.full(n_queries, -1, np.int32)
    if delta >= 1:
        # Paper: no distance is above 1, so this is what its definition says.
        out[clicked] = np.unique(within[clicked], return_inverse=True)[1]
    else:
        set_of, first = _equal_sets(ptr, urls, within[clicked])
        cluster_of_set = _cluster_sets(
            *_some(ptr, urls, first),
            within=within[clicked][first],
            n_rows=np.bincount(set_of, weights=n_rows[clicked], minlength=len(first)).astype(np.int64),
            similarity=1 - delta,
        )
        out[clicked] = cluster_of_set[set_of]
    alone = np.flatnonzero((n_rows > 0) & (out < 0))
    out[alone] = np.arange(len(alone)) + out.max(initial=-1) + 1
    return out


def _clicked(query: Int32s, url: Int32s) -> tuple[Int64s, Int64s, Int32s]:
    """Give the queries with a click, and the URLs of each as compressed rows; URLs get numbers by falling rarity."""
    is_click = url >= 0
    n_urls = int(url.max(initial=-1)) + 1
    edges = np.unique(query[is_click].astype(np.int64) * max(1, n_urls) + url[is_click])
    queries, urls = edges // max(1, n_urls), edges % max(1, n_urls)
    number = np.empty(n_urls, np.int32)
    number[np.argsort(np.bincount(urls, minlength=n_urls), kind="stable")] = np.arange(n_urls)
    urls = number[urls]
    order = np.lexsort((urls, queries))
    clicked, first = np.unique(queries, return_index=True)
    return clicked, np.append(first, len(edges)).astype(np.int64), urls[order]


def _equal_sets(ptr: Int64s, urls: Int32s, within: Int32s) -> tuple[Int64s, Int64s]:
    """Number the different sets in the order in which they first appear; give that of each query, and the first query.

    Queries with the same URLs are at distance 0 and equally far from all others, so only sets are compared.
    """
    number: dict[tuple[int, bytes], int] = {}
    set_of = np.empty(len(ptr) - 1, np.int64)
    bounds = ptr.tolist()
    for i, where in enumerate(within.tolist()):
        set_of[i] = number.setdefault((where, urls[bounds[i] : bounds[i + 1]].tobytes()), len(number))
    return set_of, np.unique(set_of, return_index=True)[1]


def _some(ptr: Int64s, urls: Int32s, rows: Int64s) -> tuple[Int64s, Int32s]:
    """Give some of the rows, as compressed rows."""
    length = np.diff(ptr)[rows]
    out = np.concatenate([[0], np.cumsum(length)])
    place = np.repeat(ptr[rows] - out[:-1], length) + np.arange(out[-1])
    return out, urls[place]


def _cluster_sets(ptr: Int64s, urls: Int32s, *, within: Int32s, n_rows: Int64s, similarity: float) -> Int32s:
    size = np.diff(ptr)
    owner = np.repeat(np.arange(len(size), dtype=np.int32), size)
    posts = owner[np.lexsort((owner, size[owner], urls))]
    post_ptr = np.concatenate([[0], np.cumsum(np.bincount(urls))]).astype(np.int64)
    order = np.argsort(-n_rows, kind="stable")
    return grow_clusters(ptr, urls, within, order, post_ptr, posts, similarity)
