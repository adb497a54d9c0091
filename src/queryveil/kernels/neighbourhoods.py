"""Near transactions together: a random k-d tree over weighted sparse vectors.

A *vector* of a transaction says for each node how many of its items lie at or below it (`under`); its nodes are in
falling order. A node's weight is what the loss falls from its parent to it.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from queryveil.kernels.arrays import Floats, Int32s, Int64s

_N_CHOICES = 4


@njit(cache=True, nogil=True)
def split(
    rows: Int64s, ptr: Int64s, nodes: Int32s, under: Int32s, weight: Floats, most: int, step: int, draws: Floats
) -> tuple[Int64s, Int64s]:
    """Order the rows into blocks of at most `most`, each a multiple of `step` but for the last; give order and ends.

    A block is cut in two near the median of one node's count, drawn among the nodes of widest weighted spread, so
    that other `draws` (numbers in [0, 1)) give other blocks.
    """
    rows = rows.copy()
    n_cuts = 0
    count = np.zeros(len(rows), np.int32)
    spread = np.zeros((2, len(weight)))
    stack = [(0, len(rows))]
    ends = [0]
    while len(stack) > 0:
        first, last = stack.pop()
        if last - first <= max(most, step):
            ends.append(last)
            continue
        node = _wide_node(rows[first:last], ptr, nodes, under, weight, spread, draws[n_cuts % len(draws)])
        n_cuts += 1
        block = rows[first:last]
        for i in range(len(block)):
            count[i] = _count_of(node, block[i], ptr, nodes, under)
        _sort_by(count[: len(block)], block)
        middle = first + _cut(count[: len(block)], step)
        stack.append((middle, last))
        stack.append((first, middle))
    return rows, np.array(ends)


@njit(cache=True, nogil=True)
def _wide_node(
    block: Int64s, ptr: Int64s, nodes: Int32s, under: Int32s, weight: Floats, spread: Floats, draw: float
) -> int:
    """Draw one of the nodes whose weighted count varies most among the rows; -1 if none does."""
    met = [np.int32(0) for _ in range(0)]
    for row in block:
        for i in range(ptr[row], ptr[row + 1]):
            if spread[0, nodes[i]] == 0:
                met.append(nodes[i])
            spread[0, nodes[i]] += under[i]
            spread[1, nodes[i]] += under[i] * under[i]
    widest = np.zeros(_N_CHOICES)
    choices = np.full(_N_CHOICES, -1, np.int64)
    for node in met:
        mean = spread[0, node] / len(block)
        wide = weight[node] * np.sqrt(max(0.0, spread[1, node] / len(block) - mean * mean))
        spread[:, node] = 0
        if wide > widest[-1]:
            j = _N_CHOICES - 1
            while j > 0 and widest[j - 1] < wide:
                widest[j], choices[j] = widest[j - 1], choices[j - 1]
                j -= 1
            widest[j], choices[j] = wide, node
    rest = draw * widest.sum()
    for j in range(_N_CHOICES):
        if rest < widest[j]:
            return int(choices[j])
        rest -= widest[j]
    return int(choices[0])


@njit(cache=True, nogil=True)
def _count_of(node: int, row: int, ptr: Int64s, nodes: Int32s, under: Int32s) -> int:
    first, last = ptr[row], ptr[row + 1]
    while first < last:
        middle = (first + last) // 2
        if nodes[middle] > node:
            first = middle + 1
        else:
            last = middle
    return under[first] if first < ptr[row + 1] and nodes[first] == node else 0


@njit(cache=True, nogil=True)
def _sort_by(count: Int32s, block: Int64s) -> None:
    """Sort rows and their counts in place, equals as they stand."""
    start = np.zeros(count.max() + 2, np.int64)
    for value in count:
        start[value + 1] += 1
    for value in range(len(start) - 1):
        start[value + 1] += start[value]
    old_count, old_block = count.copy(), block.copy()
    for i in range(len(block)):
        place = start[old_count[i]]
        count[place], block[place] = old_count[i], old_block[i]
        start[old_count[i]] += 1


@njit(cache=True, nogil=True)
def _cut(count: Int32s, step: int) -> int:
    """Give where to cut sorted counts, never at an end: where the count changes near the median, or right there."""
    n = len(count)
    low = high = n // 2
    while low > 0 and count[low - 1] == count[n // 2]:
        low -= 1
    while high < n and count[high] == count[n // 2]:
        high += 1
    middle = n // 2
    if low >= n // 4 and n // 2 - low <= high - n // 2:
        middle = low
    elif n - high >= n // 4:
        middle = high
    elif low >= n // 4:
        middle = low
    return min(max(1, (middle + step // 2) // step), (n - 1) // step) * step
