"""Transactions as a value: made from any frame, given back as any frame, never shown."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from queryveil.data import TRANSACTIONS_SCHEMA, Transactions
from queryveil.errors import BadInput, BadParameter

ROWS: dict[str, list[Any]] = {"id": ["t1", "t2", "t3"], "items": [["milk", "tea"], [], ["tea", "tea"]]}


@pytest.mark.parametrize("make", [dict, pl.DataFrame, pl.LazyFrame, pd.DataFrame, pa.table], ids=lambda f: f.__name__)
def test_transactions_come_from_any_frame(make: Any) -> None:
    transactions = Transactions.from_frame(make(ROWS))
    assert transactions.frame.equals(pl.DataFrame(ROWS, schema=TRANSACTIONS_SCHEMA))
    assert (transactions.n_transactions, transactions.n_rows, transactions.n_items) == (3, 3, 4)


def test_transactions_go_to_any_frame() -> None:
    transactions = Transactions.from_frame(ROWS)
    for back in (transactions.to_polars(), transactions.to_arrow(), transactions.to_pandas()):
        assert Transactions.from_frame(back).frame.equals(transactions.frame)
    assert isinstance(transactions.to_arrow(), pa.Table)
    assert isinstance(transactions.to_pandas(), pd.DataFrame)


def test_pandas_frames_of_arrays_are_read() -> None:
    frame = pd.DataFrame({"items": [np.array([3, 1]), np.array([2])]})
    assert Transactions.from_frame(frame).frame["items"].to_list() == [["3", "1"], ["2"]]


def test_without_ids_transactions_are_numbered() -> None:
    assert Transactions.from_frame({"items": [["a"], ["b"]]}).frame["id"].to_list() == ["1", "2"]


def test_columns_may_be_named_and_others_are_left_out() -> None:
    frame = {"user": [7, 8], "basket": [["a"], ["b"]], "shop": ["x", "y"]}
    transactions = Transactions.from_frame(frame, columns={"id": "user", "items": "basket"})
    assert transactions.frame.to_dict(as_series=False) == {"id": ["7", "8"], "items": [["a"], ["b"]]}


def test_no_transactions_and_only_empty_ones_are_fine() -> None:
    assert Transactions.from_frame({"items": []}).n_transactions == 0
    assert Transactions.from_frame({"items": [[], []]}).n_items == 0
    assert Transactions(frame=pl.DataFrame(schema=TRANSACTIONS_SCHEMA)).n_items == 0


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"items": [["milk", None]]}, "an item is missing or empty"),
        ({"items": [["milk", ""]]}, "an item is missing or empty"),
        ({"items": [["milk"], None]}, "a list of items is missing"),
        ({"id": [None], "items": [["milk"]]}, "an id or a list of items is missing"),
        ({"id": [""], "items": [["milk"]]}, "an id or a list of items is missing"),
        ({"items": ["milk tea"]}, "items lists of them"),
        ({"items": [[["milk"]]]}, "items lists of them"),
        ({"id": ["t1"]}, "no such column"),
        (["milk"], "a set of transactions is"),
        ({"items": [["milk"]], "id": ["t1", "t2"]}, "the same length"),
    ],
)
def test_what_cannot_be_read_is_a_clear_error_without_text(data: Any, message: str) -> None:
    with pytest.raises(BadInput, match=message) as caught:
        Transactions.from_frame(data)
    assert "milk" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_only_the_two_roles_can_be_named() -> None:
    with pytest.raises(BadParameter, match="id or items"):
        Transactions.from_frame(ROWS, columns={"user": "id"})
    with pytest.raises(BadInput, match="no such column"):
        Transactions.from_frame(ROWS, columns={"id": "nowhere"})


def test_a_frame_of_other_types_is_refused() -> None:
    with pytest.raises(BadInput, match="columns id"):
        Transactions(frame=pl.DataFrame({"id": [1], "items": [["milk"]]}))
    with pytest.raises(BadInput, match="columns id"):
        Transactions(frame=pl.DataFrame({"id": ["1"], "items": [["milk"]], "time": [1]}))


def test_the_repr_shows_no_item_and_no_id() -> None:
    shown = repr(Transactions.from_frame(ROWS)) + str(Transactions.from_frame(ROWS))
    assert "n_transactions=3" in shown
    assert not any(text in shown for text in ("milk", "tea", "t1"))


def test_transactions_cannot_be_changed() -> None:
    transactions = Transactions.from_frame(ROWS)
    with pytest.raises(dataclasses.FrozenInstanceError):
        transactions.frame = pl.DataFrame()  # type: ignore[misc]
    transactions.to_polars().drop_in_place("items")
    assert transactions.columns == ["id", "items"]
