"""From terms to nodes of a taxonomy: the sense that fits the rest of a profile, and the nodes above it."""

from __future__ import annotations

import numpy as np
from numba import njit

from queryveil.kernels.arrays import Floats, Int32s, Int64s

_MARGIN = 1e-9
"""A later sense must be better by this much, so that rounding does not decide."""


@njit(cache=True, nogil=True)
def choose_senses(
    ptr: Int64s, terms: Int32s, weights: Floats, sense_ptr: Int64s, senses: Int32s, parent: Int32s, rise: Floats
) -> Int32s:
    """Give the node of every entry, -1 for a term without senses.

    A sense is worth the sum, over the other terms of the profile, of their weight times how specific the lowest node is
    that the path of the sense shares with any path of the other term; the first of the best counts. `rise` is by how
    much a node is more specific than its parent, so that the sum of rises down a path is how specific its end is.
    """
    chosen = np.full(len(terms), -1, np.int32)
    weight_under = np.zeros(len(parent))
    seen_by = np.full(len(parent), -1, np.int64)
    met = np.empty(len(parent), np.int32)
    for user in range(len(ptr) - 1):
        n_met = 0
        for i in range(ptr[user], ptr[user + 1]):
            for j in range(sense_ptr[terms[i]], sense_ptr[terms[i] + 1]):
                node = senses[j]
                # What is above a node that this term has reached before, it has reached too.
                while node >= 0 and seen_by[node] != i:
                    if weight_under[node] == 0:
                        met[n_met] = node
                        n_met += 1
                    seen_by[node] = i
                    weight_under[node] += weights[i]
                    node = parent[node]
        for i in range(ptr[user], ptr[user + 1]):
            best = -np.inf
            for j in range(sense_ptr[terms[i]], sense_ptr[terms[i] + 1]):
                worth = 0.0
                node = senses[j]
                while node >= 0:
                    worth += rise[node] * (weight_under[node] - weights[i])
                    node = parent[node]
                if worth > best + _MARGIN:
                    best, chosen[i] = worth, senses[j]
        for k in range(n_met):
            weight_under[met[k]] = 0
    return chosen


@njit(cache=True, nogil=True)
def augment(
    ptr: Int64s, chosen: Int32s, weights: Floats, parent: Int32s, n_steps: int, n_nodes: int
) -> tuple[Int64s, Int32s, Floats]:
    """Give every profile as nodes with weights: those of its terms and those up to `n_steps` above them.

    Where several terms reach a node the largest weight counts. Nodes without a place in `parent` have nothing above.
    """
    out_ptr = np.zeros(len(ptr), np.int64)
    out = np.empty(len(chosen) * (n_steps + 1), np.int32)
    out_weights = np.empty(len(out))
    weight = np.zeros(n_nodes)
    n = 0
    for user in range(len(ptr) - 1):
        for i in range(ptr[user], ptr[user + 1]):
            node = chosen[i]
            for _ in range(n_steps + 1):
                if weight[node] == 0:
                    out[n] = node
                    n += 1
                weight[node] = max(weight[node], weights[i])
                node = parent[node] if node < len(parent) else np.int32(-1)
                if node < 0:
                    break
        out_ptr[user + 1] = n
        for i in range(out_ptr[user], n):
            out_weights[i] = weight[out[i]]
            weight[out[i]] = 0
    return out_ptr, out[:n].copy(), out_weights[:n].copy()
