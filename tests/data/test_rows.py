"""Compressed rows do what lists of lists do."""

from __future__ import annotations

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st
from numba import njit
from tests.support.examples import examples

from queryveil.data.rows import Rows, group, pointers

N_VALUES = 6
LISTS = st.lists(st.lists(st.integers(0, N_VALUES - 1), max_size=5), max_size=6)


@examples(40)
@given(LISTS)
def test_rows_hold_what_the_lists_held(lists: list[list[int]]) -> None:
    rows = Rows.from_lists(lists)
    assert rows.to_lists() == lists
    assert rows.n_rows == len(lists)
    assert rows.lengths.tolist() == [len(row) for row in lists]
    assert rows.ptr.tolist() == pointers(rows.lengths).tolist()
    assert rows.row_of_entry.tolist() == [number for number, row in enumerate(lists) for _ in row]
    assert rows.place_in_row.tolist() == [place for row in lists for place in range(len(row))]
    assert Rows.from_entries(rows.row_of_entry, rows.values, n_rows=len(lists)).to_lists() == lists
    assert [rows.row(number).tolist() for number in range(len(lists))] == lists


@given(LISTS, st.data())
def test_masks_leave_the_marked_entries_of_each_row(lists: list[list[int]], data: st.DataObject) -> None:
    marks = [data.draw(st.lists(st.booleans(), min_size=len(row), max_size=len(row))) for row in lists]
    mask = np.array([mark for row in marks for mark in row], np.bool_)
    wanted = [
        [v for v, mark in zip(row, of_row, strict=True) if mark] for row, of_row in zip(lists, marks, strict=True)
    ]
    assert Rows.from_lists(lists).keep(mask).to_lists() == wanted


@given(LISTS.filter(bool), st.data())
def test_rows_are_taken_in_the_order_asked_for(lists: list[list[int]], data: st.DataObject) -> None:
    numbers = data.draw(st.lists(st.integers(0, len(lists) - 1), max_size=8))
    rows, asked = Rows.from_lists(lists), np.array(numbers, np.int64)
    beside = 10 * rows.values + 1
    assert rows.take(asked).to_lists() == [lists[number] for number in numbers]
    ptr, places = rows.entries(asked)
    assert Rows(ptr, beside[places]).to_lists() == [[10 * v + 1 for v in lists[number]] for number in numbers]


@given(LISTS)
def test_transposed_rows_tell_where_each_value_stands(lists: list[list[int]]) -> None:
    rows = Rows.from_lists(lists)
    found = rows.transpose(N_VALUES).to_lists()
    assert found == [[n for n, row in enumerate(lists) for v in row if v == value] for value in range(N_VALUES)]
    places = group(rows.values, N_VALUES).to_lists()
    assert places == [np.flatnonzero(rows.values == value).tolist() for value in range(N_VALUES)]


@given(LISTS)
def test_a_column_of_lists_has_the_values_or_what_stands_beside_them(lists: list[list[int]]) -> None:
    rows = Rows.from_lists(lists)
    assert rows.to_series().to_list() == lists
    texts = pl.Series(list("abcdef")).gather(rows.values)
    assert rows.to_series(texts).to_list() == [["abcdef"[v] for v in row] for row in lists]


@njit(cache=True, nogil=True)
def _reversed(rows: Rows[np.int32]) -> Rows[np.int32]:
    return Rows(rows.ptr[-1] - rows.ptr[::-1], rows.values[::-1].copy())


def test_kernels_take_and_return_rows_as_they_are() -> None:
    assert _reversed(Rows.from_lists([[1, 2], [], [5]])).to_lists() == [[5], [], [2, 1]]


def test_the_repr_tells_sizes_alone() -> None:
    assert repr(Rows.from_lists([[1, 2], []])) == "Rows(n_rows=2, n_entries=2)"
