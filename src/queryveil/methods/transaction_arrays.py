"""Arrays as the kernels of clump and partition take them."""

from __future__ import annotations

import numpy as np

from queryveil.kernels.arrays import Floats, Int32s, Int64s


def as_kernels_take(
    row_ptr: Int64s, items: Int32s, parent: Int32s, loss: Floats
) -> tuple[Int64s, Int32s, Int32s, Floats]:
    """Give the arrays in the kernels' types and writable, copied where they are not.

    A kernel is compiled for each kind of array it meets, and read-only is a kind of its own.

    >>> frozen = np.zeros(1)
    >>> frozen.flags.writeable = False
    >>> as_kernels_take(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(1, np.int32), frozen)[3].flags.writeable
    True
    """
    return (
        np.require(row_ptr, np.int64, ["C", "W"]),
        np.require(items, np.int32, ["C", "W"]),
        np.require(parent, np.int32, ["C", "W"]),
        np.require(loss, np.float64, ["C", "W"]),
    )
