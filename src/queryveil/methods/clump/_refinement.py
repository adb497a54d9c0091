"""Better clusters at the same k: near transactions gathered wherever they stand, then moved and swapped.

With left-overs carried up, the LCG of a set has, at or below each node, as many items as the least of its members
has there. A node's weight is the fall in loss from its parent to it, so a cluster of n keeps n times the weighted
sum of these least counts, and the total distortion is the number of items minus what all clusters keep. That makes
transactions sparse vectors and LCGs their minima, and near ones can be found in space instead of in the list by
length. The upper nodes weigh most: not shared rare items bring transactions together but like shares of the
large branches. A random k-d tree over the nodes of widest weighted spread finds these, and shared items where the
tree is flat.
"""

import numpy as np
from numba import get_num_threads

from queryveil import progress
from queryveil.data import Floats, Int32s
from queryveil.data.rows import Rows, group
from queryveil.methods.clump._exchange_kernels import WORK_ROWS, exchange
from queryveil.methods.clump._gather_kernels import Vectors, gather, heads_of, place_rest, sizes, split
from queryveil.methods.clump._greedy_kernels import Closures

_BLOCK = 4000
"""Transactions gathered at once; four times as many gave one percent less distortion in more than twice the time."""
_EXCHANGE_BLOCK = 200
"""Transactions among which all swaps are weighed; more for large k, so that a few clusters meet."""
_MAX_ROUNDS = 6
_LEAST_PROGRESS = 0.0005
"""Stop when a round gains less than this share of the number of items."""
_N_DRAWS = 1024
_N_HEADS = 16


def vectors_of(closures: Closures, parent: Int32s, loss: Floats, *, at_least: int) -> Vectors:
    """Return the vectors; nodes without weight or over fewer than `at_least` transactions can be in no LCG."""
    ptr, nodes, own, under = closures
    weight = np.zeros(len(loss))
    weight[1:] = loss[parent[1:]] - loss[1:]
    counts = (np.bincount(nodes, minlength=len(loss)) >= at_least) & (weight > 0)
    stays = counts[nodes]
    left = Rows(ptr, nodes).keep(stays)
    number = np.cumsum(counts) - 1
    return Vectors(
        ptr=left.ptr,
        nodes=number[left.values].astype(np.int32),
        under=under[stays],
        weight=weight[counts],
        n_items=int(own.sum()),
    )


def gather_near(vectors: Vectors, *, k: int, rng: np.random.Generator) -> Int32s:
    """Return the cluster of each transaction, made of transactions near it: as many clusters as k allows."""
    progress.step("gathering")
    v = vectors
    rows, ends = split(rng.permutation(v.n_rows), v, max(_BLOCK, 4 * k), k, rng.random(_N_DRAWS))
    size = sizes(v)
    block_of = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
    rows = rows[np.lexsort((-size[rows], block_of))]
    work = np.zeros((get_num_threads(), len(v.weight)), np.int32)
    head_nodes = np.argsort(-v.weight * v.deviations(), kind="stable")[:_N_HEADS].astype(np.int32)
    heads = heads_of(head_nodes, v)
    cluster_of = gather(rows, ends, v, size, head_nodes, heads, k, work)
    placed = np.flatnonzero(cluster_of >= 0)
    ptr, members = group(cluster_of[placed], v.n_rows // k)
    place_rest(cluster_of, Rows(ptr, placed[members]), v)
    return cluster_of


def refine_clusters(cluster_of: Int32s, vectors: Vectors, *, k: int, rng: np.random.Generator) -> Int32s:
    """Move and swap transactions between near clusters, in rounds, while the total distortion falls."""
    v = vectors
    work = np.zeros((get_num_threads(), WORK_ROWS, len(v.weight)), np.int32)
    for n_round in range(_MAX_ROUNDS):
        progress.step("swapping", n_round / _MAX_ROUNDS)
        cluster_of = _without_gaps(cluster_of)
        n_clusters = int(cluster_of.max()) + 1
        members = group(cluster_of, n_clusters)
        # A member drawn at random stands for its cluster, so an ill-placed one gets to meet its own kind.
        drawn = members.ptr[:-1] + (rng.random(n_clusters) * members.lengths).astype(np.int64)
        n_meeting = max(2, _EXCHANGE_BLOCK // k, min(8, 3 * _EXCHANGE_BLOCK // k))
        draws = rng.random(_N_DRAWS)
        seeds, ends = split(members.values[drawn], v, n_meeting, 1, draws)
        gain = exchange(cluster_of[seeds].astype(np.int64), ends, members, v, k, work, cluster_of)
        if gain <= _LEAST_PROGRESS * v.n_items:
            break
    return _without_gaps(cluster_of)


def _without_gaps(cluster_of: Int32s) -> Int32s:
    """Number the clusters anew, those without members left out."""
    return np.unique(cluster_of, return_inverse=True)[1].astype(np.int32)
