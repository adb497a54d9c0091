"""Clusters of sets that are wider than they may be."""

from __future__ import annotations

import numba as nb
import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


@nb.njit(cache=True)
def far_pairs(
    order: Ints, cluster_starts: Ints, starts: Ints, elements: Ints, n_elements: int, allowed: Ints
) -> tuple[Ints, Ints, Ints]:
    """Give for each cluster the first two sets that are too far apart, and how many elements they share.

    Cluster c has the sets `order[cluster_starts[c] : cluster_starts[c + 1]]`, ascending; set s has the elements
    `elements[starts[s] : starts[s + 1]]`. Two sets with a union of u elements may differ in `allowed[u]` of them; two
    empty sets are too far apart. The first pair is the one with the smallest first set, then the smallest second
    one; -1 stands for a cluster that has none.
    """
    n_clusters = cluster_starts.size - 1
    first, second = np.full(n_clusters, -1, np.int64), np.full(n_clusters, -1, np.int64)
    n_shared = np.zeros(n_clusters, np.int64)
    sizes = np.diff(starts)
    marks, tally = np.full(n_elements, -1, np.int64), np.zeros(n_elements, np.int64)
    for cluster in range(n_clusters):
        sets = order[cluster_starts[cluster] : cluster_starts[cluster + 1]]
        if sets.size < 2:
            continue
        n_common = _n_in_all(sets, starts, elements, tally)
        if _always_near(_two_largest(sizes, sets), n_common, allowed):
            continue
        a, b, shared = _first_far(sets, sizes, starts, elements, n_common, allowed, marks)
        first[cluster], second[cluster], n_shared[cluster] = a, b, shared
    return first, second, n_shared


@nb.njit(cache=True)
def _first_far(
    sets: Ints, sizes: Ints, starts: Ints, elements: Ints, n_common: int, allowed: Ints, marks: Ints
) -> tuple[int, int, int]:
    for i in range(sets.size - 1):
        a = sets[i]
        for element in elements[starts[a] : starts[a + 1]]:
            marks[element] = a
        for b in sets[i + 1 :]:
            both = sizes[a] + sizes[b]
            if _always_near(both, n_common, allowed):
                continue
            shared = 0
            for element in elements[starts[b] : starts[b + 1]]:
                if marks[element] == a:
                    shared += 1
            if both == 0 or both - 2 * shared > allowed[both - shared]:
                return a, b, shared
    return -1, -1, 0


@nb.njit(cache=True)
def _always_near(both: int, n_common: int, allowed: Ints) -> bool:
    """Whether any two sets with `both` elements together are near, as they share at least `n_common`.

    The more elements besides those, the further apart they can be: what holds for the largest holds for all.
    """
    return bool(n_common > 0 and both - 2 * n_common <= allowed[both - n_common])


@nb.njit(cache=True)
def _n_in_all(sets: Ints, starts: Ints, elements: Ints, tally: Ints) -> int:
    """Count the elements that every set has; `tally` is all zero before and after."""
    n = 0
    for one in sets:
        for element in elements[starts[one] : starts[one + 1]]:
            tally[element] += 1
            if tally[element] == sets.size:
                n += 1
    for one in sets:
        for element in elements[starts[one] : starts[one + 1]]:
            tally[element] = 0
    return n


@nb.njit(cache=True)
def _two_largest(sizes: Ints, sets: Ints) -> int:
    """Give the elements of the two largest sets together."""
    largest, next_largest = 0, 0
    for one in sets:
        size = sizes[one]
        if size > largest:
            largest, next_largest = size, largest
        elif size > next_largest:
            next_largest = size
    return largest + next_largest
