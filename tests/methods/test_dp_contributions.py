from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from queryveil.methods.dp.dp import take_largest


def taken(rows: list[list[int]], *, most: int) -> list[list[int]]:
    row_ptr = np.cumsum([0, *map(len, rows)]).astype(np.int64)
    keys = np.array([key for row in rows for key in row], np.uint64)
    marks = take_largest(row_ptr, keys, most)
    return [np.flatnonzero(marks[row_ptr[i] : row_ptr[i + 1]]).tolist() for i in range(len(rows))]


@given(rows=st.lists(st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 3), max_size=9)), most=st.integers(1, 5))
def test_the_largest_of_each_row_are_taken_and_of_equal_ones_the_first(rows: list[list[int]], most: int) -> None:
    expected = [sorted(sorted(range(len(row)), key=lambda i: (-row[i], i))[:most]) for row in rows]
    assert taken(rows, most=most) == expected


def test_a_row_with_no_more_than_allowed_is_taken_whole() -> None:
    assert taken([[5, 1, 3], [], [7]], most=3) == [[0, 1, 2], [], [0]]
