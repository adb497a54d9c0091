"""Clusters of sets of URLs in which any two sets are near: grown greedily, neighbours found by URL."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from queryveil.kernels.arrays import Int32s, Int64s
from queryveil.kernels.sorting import order_of

_EPSILON = 1e-12
"""1 - 1/3 and its like are not exact: without a margin a distance of exactly delta could be above it."""
_SCALE = 2**31


@njit(cache=True, nogil=True)
def grow_clusters(
    ptr: Int64s,
    urls: Int32s,
    within: Int32s,
    order: Int64s,
    post_ptr: Int64s,
    posts: Int32s,
    similarity: float,
) -> Int32s:
    """Give each set's cluster: its sets, two and two, share at least `similarity` of their URLs (Jaccard).

    The sets take turns by `order` as seeds, their URLs stand by falling rarity; `posts` are the sets with each URL by
    rising size. Only sets with the same `within` get together. Sets are not empty, `similarity` is above 0.
    """
    n_sets = len(ptr) - 1
    rank = np.empty(n_sets, np.int64)
    rank[order] = np.arange(n_sets)
    cluster_of = np.full(n_sets, -1, np.int32)
    is_seeds = np.full(len(post_ptr) - 1, -1, np.int64)
    seen = np.full(n_sets, -1, np.int64)
    found, keys = np.empty(n_sets, np.int64), np.empty(n_sets, np.int64)
    taken = np.empty(n_sets, np.int64)
    n_clusters = 0
    for seed in order:
        if cluster_of[seed] >= 0:
            continue
        cluster_of[seed] = n_clusters
        for i in range(ptr[seed], ptr[seed + 1]):
            is_seeds[urls[i]] = seed
        seen[seed] = seed
        n_found = _near(
            seed, ptr, urls, within, post_ptr, posts, similarity, cluster_of, rank, is_seeds, seen, found, keys
        )
        n_taken = 0
        for place in order_of(keys[:n_found]):
            other = found[place]
            fits = True
            for i in range(n_taken):
                if not _alike(taken[i], other, ptr, urls, similarity):
                    fits = False
                    break
            if fits:
                taken[n_taken] = other
                n_taken += 1
                cluster_of[other] = n_clusters
        n_clusters += 1
    return cluster_of


@njit(cache=True, nogil=True)
def _near(
    seed: int,
    ptr: Int64s,
    urls: Int32s,
    within: Int32s,
    post_ptr: Int64s,
    posts: Int32s,
    similarity: float,
    cluster_of: Int32s,
    rank: Int64s,
    is_seeds: Int64s,
    seen: Int64s,
    found: Int64s,
    keys: Int64s,
) -> int:
    """Find the sets without a cluster that are near the seed, with keys that rise with distance, then with rank.

    Two sets of sizes a and b are near only if they share s / (1 + s) * (a + b) URLs, so one of the few rarest of the
    seed is among them: common URLs, whose lists are long, are looked up for the small sets alone.
    """
    n_found = 0
    size = ptr[seed + 1] - ptr[seed]
    for i in range(size):
        url = urls[ptr[seed] + i]
        place = post_ptr[url]
        while place < post_ptr[url + 1]:
            other_size = ptr[posts[place] + 1] - ptr[posts[place]]
            end = _last_of_size(other_size, place, post_ptr[url + 1], ptr, posts)
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
def _last_of_size(size: int, first: int, last: int, ptr: Int64s, posts: Int32s) -> int:
    """Give the place behind the last set of this size, by halving."""
    while first < last:
        middle = (first + last) // 2
        if ptr[posts[middle] + 1] - ptr[posts[middle]] <= size:
            first = middle + 1
        else:
            last = middle
    return first


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
