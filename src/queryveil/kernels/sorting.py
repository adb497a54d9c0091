"""Sorting for kernels.

Numba's own sorts are closures whose names in the compiled cache can be the same for different sorts, and a process that
loads two of them from the cache may run the wrong one (seen with Numba 0.68): a wrong result or a crash.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from queryveil.kernels.arrays import Int32s, Int64s, UInt64s

_SHORT = 32


@njit(cache=True, nogil=True)
def sort_in_place(values: Int32s | Int64s) -> None:
    """Sort numbers, the smallest first: by insertion if there are few, else by a heap."""
    n = len(values)
    if n <= _SHORT:
        for i in range(1, n):
            value = values[i]
            j = i
            while j > 0 and values[j - 1] > value:
                values[j] = values[j - 1]
                j -= 1
            values[j] = value
        return
    for start in range(n // 2 - 1, -1, -1):
        _sink(values, start, n)
    for end in range(n - 1, 0, -1):
        values[0], values[end] = values[end], values[0]
        _sink(values, 0, end)


@njit(cache=True, nogil=True)
def _sink(values: Int32s | Int64s, place: int, end: int) -> None:
    """Let the value at a place of a heap sink to where no child is larger."""
    while True:
        child = 2 * place + 1
        if child >= end:
            return
        if child + 1 < end and values[child + 1] > values[child]:
            child += 1
        if values[place] >= values[child]:
            return
        values[place], values[child] = values[child], values[place]
        place = child


@njit(cache=True, nogil=True)
def order_of(keys: Int64s | UInt64s) -> Int64s:
    """Give the places of the keys from the smallest to the largest, equal ones in their order: a merge sort."""
    n = len(keys)
    order = np.arange(n)
    other = np.empty(n, np.int64)
    width = 1
    while width < n:
        for first in range(0, n, 2 * width):
            middle, last = min(first + width, n), min(first + 2 * width, n)
            i, j = first, middle
            for k in range(first, last):
                if i < middle and (j >= last or keys[order[i]] <= keys[order[j]]):
                    other[k] = order[i]
                    i += 1
                else:
                    other[k] = order[j]
                    j += 1
        order, other = other, order
        width *= 2
    return order
