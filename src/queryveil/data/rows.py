"""Compressed rows (CSR), and the sorts that kernels use.

Numba's own sorts are closures whose names in the compiled cache can be the same for different sorts, and a process that
loads two of them from the cache may run the wrong one (seen with Numba 0.68): a wrong result or a crash.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, pairwise
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from queryveil.data.frames import Bools, Floats, Int32s, Int64s, UInt64s
from queryveil.kernels import njit

T = TypeVar("T", bound=np.generic)


def pointers(lengths: Any) -> Int64s:
    """Return where each row begins, and behind that where the last one ends.

    >>> pointers([2, 0, 3]).tolist()
    [0, 2, 2, 5]
    """
    ptr = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=ptr[1:])
    return ptr


class Rows(NamedTuple, Generic[T]):
    """Lists of numbers, one after another in one array (compressed sparse rows).

    A named tuple, so that kernels take it as it is; `ptr, values = rows` unpacks it.

    - `ptr`: row r has the values `values[ptr[r]:ptr[r + 1]]`, so there is one number more than there are rows.
    - `values`: the entries of all rows, row after row.

    Examples
    --------
    >>> rows = Rows.from_lists([[4, 0], [], [4]])
    >>> rows.lengths.tolist(), rows.row_of_entry.tolist(), rows.place_in_row.tolist()
    ([2, 0, 1], [0, 0, 2], [0, 1, 0])
    >>> rows.transpose(5).to_lists()
    [[0], [], [], [], [0, 2]]
    """

    ptr: Int64s
    values: NDArray[T]

    @classmethod
    def from_lists(cls, lists: Sequence[Sequence[int]]) -> Rows[np.int32]:
        """Return rows of 32-bit numbers."""
        values = np.fromiter(chain.from_iterable(lists), np.int32)
        return Rows(pointers([len(row) for row in lists]), values)

    @classmethod
    def from_entries(cls, row: Int32s | Int64s, values: NDArray[T], *, n_rows: int) -> Rows[T]:
        """Return rows made of entries: `row` has the row of each and ascends.

        >>> Rows.from_entries(np.array([0, 0, 2]), np.array([7, 5, 7]), n_rows=3).to_lists()
        [[7, 5], [], [7]]
        """
        return Rows(pointers(np.bincount(row, minlength=n_rows)), values)

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(self.ptr) - 1

    @property
    def lengths(self) -> Int64s:
        """The number of entries of each row."""
        return np.diff(self.ptr)

    @property
    def row_of_entry(self) -> Int64s:
        """The row of each entry."""
        return np.repeat(np.arange(self.n_rows), self.lengths)

    @property
    def place_in_row(self) -> Int64s:
        """The place of each entry within its row, from 0."""
        return np.arange(len(self.values)) - np.repeat(self.ptr[:-1], self.lengths)

    def row(self, number: int) -> NDArray[T]:
        """Return the values of one row."""
        return self.values[self.ptr[number] : self.ptr[number + 1]]

    def keep(self, mask: Bools) -> Rows[T]:
        """Return the rows with only the entries that the mask marks."""
        return Rows(pointers(mask)[self.ptr], self.values[mask])

    def entries(self, rows: Int32s | Int64s) -> Rows[np.int64]:
        """Return the places in `values` of the entries of some rows, for arrays that stand beside `values`.

        >>> Rows.from_lists([[7, 8], [9], [5, 6]]).entries(np.array([2, 0])).to_lists()
        [[3, 4], [0, 1]]
        """
        first = self.ptr[rows]
        lengths = self.ptr[rows + 1] - first
        ptr = pointers(lengths)
        return Rows(ptr, np.repeat(first - ptr[:-1], lengths) + np.arange(ptr[-1]))

    def take(self, rows: Int32s | Int64s) -> Rows[T]:
        """Return some of the rows, in the order asked for."""
        ptr, places = self.entries(rows)
        return Rows(ptr, self.values[places])

    def transpose(self, n_values: int) -> Rows[np.int32]:
        """Return for each value from 0 to `n_values` - 1 the rows that have it, in ascending order."""
        ptr, places = group(self.values, n_values)
        return Rows(ptr, self.row_of_entry.astype(np.int32)[places])

    def to_lists(self) -> list[list[Any]]:
        """Return the rows as lists."""
        return [self.values[first:last].tolist() for first, last in pairwise(self.ptr)]

    def to_series(self, values: pl.Series | NDArray[Any] | None = None) -> pl.Series:
        """Return a column of lists: of the rows' own values, or of others that stand beside them.

        >>> Rows.from_lists([[0, 1], []]).to_series(pl.Series(["red", "wine"])).to_list()
        [['red', 'wine'], []]
        """
        column = pl.Series(self.values if values is None else values)
        array: Any = column.to_arrow()
        if column.dtype == pl.String:
            array = array.cast(pa.large_string())
        return pl.Series(pa.LargeListArray.from_arrays(pa.array(self.ptr), array))

    def __repr__(self) -> str:
        return f"Rows(n_rows={self.n_rows}, n_entries={len(self.values)})"


@njit(cache=True, nogil=True)
def group(codes: NDArray[Any], n_codes: int) -> Rows[np.int64]:
    """Return the places of each code from 0 to `n_codes` - 1, in ascending order."""
    ptr = np.zeros(n_codes + 1, np.int64)
    for code in codes:
        ptr[code + 1] += 1
    for i in range(n_codes):
        ptr[i + 1] += ptr[i]
    fill = ptr[:-1].copy()
    places = np.empty(len(codes), np.int64)
    for i in range(len(codes)):
        places[fill[codes[i]]] = i
        fill[codes[i]] += 1
    return Rows(ptr, places)


def sort_in_rows(row: Int32s | Int64s, codes: Int32s, *, n_rows: int, n_codes: int) -> Rows[np.int64]:
    """Return the places of entries row by row, in each row by their codes, equal ones in their order.

    >>> sort_in_rows(np.array([1, 0, 1, 1]), np.array([3, 4, 2, 3]), n_rows=2, n_codes=5).to_lists()
    [[1], [2, 0, 3]]
    """
    by_code = group(codes, n_codes).values
    ptr, by_row = group(row[by_code], n_rows)
    return Rows(ptr, by_code[by_row])


@njit(cache=True, nogil=True)
def sort_in_place(values: Int32s | Int64s) -> None:
    """Sort numbers, the smallest first: a Shell sort, which for up to 32 of them is an insertion sort."""
    n, gap = len(values), 1
    while gap < n // 32:
        gap = 9 * gap // 4 + 1
    while gap > 0:
        for i in range(gap, n):
            value = values[i]
            j = i
            while j >= gap and values[j - gap] > value:
                values[j] = values[j - gap]
                j -= gap
            values[j] = value
        gap = 4 * gap // 9


@njit(cache=True, nogil=True)
def order_of(keys: Int32s | Int64s | UInt64s) -> Int64s:
    """Return the places of the keys from the smallest to the largest, equal ones in their order: a merge sort."""
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


@njit(cache=True, nogil=True)
def insert_best(item: int, value: float, best: NDArray[Any], best_value: Floats, n_best: int, rank: Int64s) -> int:
    """Put an item among the best if it is one of them, by falling value, then rising rank; return how many they are."""
    place = n_best
    while place > 0:
        other = best_value[place - 1]
        if other > value or (other == value and rank[best[place - 1]] < rank[item]):
            break
        place -= 1
    if place == len(best):
        return n_best
    n_best = min(n_best + 1, len(best))
    for i in range(n_best - 1, place, -1):
        best[i], best_value[i] = best[i - 1], best_value[i - 1]
    best[place], best_value[place] = item, value
    return n_best
