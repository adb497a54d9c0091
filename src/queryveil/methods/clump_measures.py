"""What a clustering of transactions costs: distortion, normalised loss, length and level."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from queryveil.kernels.arrays import Floats, Int32s, Int64s
from queryveil.kernels.covering import covering_loss
from queryveil.methods.transaction_arrays import as_kernels_take


def total_distortion(
    cluster_of: Int32s, released_ptr: Int64s, released: Int32s, *, row_ptr: Int64s, loss: Floats
) -> float:
    """Give the sum over the clusters of size times loss of what they release, plus the number of suppressed items.

    Every released item stands for one item of each member; the others are suppressed. That holds for Partition and
    for releases without duplicates too, as the paper's formula for Partition shows.
    """
    size = np.bincount(cluster_of, minlength=len(released_ptr) - 1)
    lost = _sums(loss[released] - 1.0, released_ptr)
    return float(size @ lost) + float(row_ptr[-1])


def without_duplicates(released_ptr: Int64s, released: Int32s) -> tuple[Int64s, Int32s]:
    """Give the released rows with each item once (the paper's Clump2); rows must be sorted.

    >>> ptr, items = without_duplicates(np.array([0, 3, 4]), np.array([2, 2, 1, 1], np.int32))
    >>> ptr.tolist(), items.tolist()
    ([0, 2, 3], [2, 1, 1])
    """
    row = np.repeat(np.arange(len(released_ptr) - 1), np.diff(released_ptr))
    first = np.ones(len(released), np.bool_)
    first[1:] = (released[1:] != released[:-1]) | (row[1:] != row[:-1])
    return np.concatenate([[0], np.cumsum(first)])[released_ptr], released[first]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The measures of a clustering.

    `ncp` is the distortion per original item: each released item costs its loss, each suppressed one 1. `set_ncp`
    asks of every original item, as He and Naughton do for sets, how much the lowest released item above it loses,
    and 1 if none is: duplicates of an item are not missed there. Lengths and levels are averages over transactions
    and over the items of their releases; the root is at level 1.
    """

    distortion: float
    ncp: float
    set_ncp: float
    average_length: float
    average_level: float


def cost(
    cluster_of: Int32s,
    released_ptr: Int64s,
    released: Int32s,
    *,
    row_ptr: Int64s,
    items: Int32s,
    parent: Int32s,
    loss: Floats,
    level: Int32s,
) -> Cost:
    """Measure what the clusters release against the transactions."""
    row_ptr, items, parent, loss = as_kernels_take(row_ptr, items, parent, loss)
    n_rows, n_items = len(row_ptr) - 1, max(1, len(items))
    size = np.bincount(cluster_of, minlength=len(released_ptr) - 1)
    n_released = int(size @ np.diff(released_ptr))
    distortion = total_distortion(cluster_of, released_ptr, released, row_ptr=row_ptr, loss=loss)
    covered = covering_loss(cluster_of, released_ptr, released, row_ptr, items, parent, loss)
    return Cost(
        distortion=distortion,
        ncp=distortion / n_items,
        set_ncp=covered / n_items,
        average_length=n_released / max(1, n_rows),
        average_level=float(size @ _sums(level[released].astype(np.float64), released_ptr)) / max(1, n_released),
    )


def _sums(values: Floats, ptr: Int64s) -> Floats:
    """Sum the values of each row."""
    row = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
    return np.asarray(np.bincount(row, weights=values, minlength=len(ptr) - 1), np.float64)
