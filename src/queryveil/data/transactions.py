"""Transactions: bags of items, one per user or per query."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import polars as pl

from queryveil.data.frames import Framed, to_frame
from queryveil.data.log import Layout, Reading
from queryveil.errors import BadInput, BadParameter

TRANSACTIONS_SCHEMA: Mapping[str, pl.DataType] = {"id": pl.String(), "items": pl.List(pl.String())}
"""The columns of transactions and their types."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Transactions(Framed):
    """Bags of items, one row per transaction; immutable.

    - `frame`: the columns `id` and `items`. An item may occur in a transaction more than once; order has no meaning. A
      transaction may have no items; neither an item nor an id is the empty text.
    - `layout`: how the file was written.
    - `reading`: counts of the rows that needed care when the transactions were read.

    Examples
    --------
    >>> Transactions.from_frame({"items": [["apple", "milk"], ["apple", "apple", "beef"]]})
    Transactions(n_transactions=2, n_items=5)
    """

    kind: ClassVar[str] = "transactions"
    noun: ClassVar[str] = "transactions"
    caption: ClassVar[str] = "Transactions"
    shown: ClassVar[Mapping[str, str]] = {"transactions": "n_transactions", "items": "n_items"}

    layout: Layout = field(default_factory=Layout)
    reading: Reading = field(default_factory=Reading)

    def __post_init__(self) -> None:
        if self.frame.schema != pl.Schema(TRANSACTIONS_SCHEMA):
            raise BadInput("transactions have the columns id (text) and items (lists of text) and no other")
        ids = self.frame["id"]
        if ids.null_count() or (ids == "").any() or self.frame["items"].null_count():
            raise BadInput("an id or a list of items is missing; a transaction without items has an empty list")
        items = self.frame["items"].explode(empty_as_null=False, keep_nulls=True)
        if items.null_count() or (items == "").any():
            raise BadInput("an item is missing or empty; leave it out of its list")

    @classmethod
    def from_frame(cls, data: Any, *, columns: Mapping[str, str] | None = None) -> Self:
        """Return the transactions in a Polars, pandas or Arrow frame, or a dict of columns; items are lists.

        `columns` names the columns of `id` and `items` where they have other names; further columns are left out.
        Without ids the transactions are numbered from 1. Items and ids that are numbers become text.
        """
        frame = to_frame(data, what="a set of transactions")
        names = {"id": "id", "items": "items", **(columns or {})}
        for role in names:
            if role not in TRANSACTIONS_SCHEMA:
                raise BadParameter("a role in columns", role, allowed="id or items")
        if names["items"] not in frame.columns or ("id" in (columns or {}) and names["id"] not in frame.columns):
            raise BadInput(f"the frame has no such column among {', '.join(frame.columns)}; name id and items")
        has_id = names["id"] in frame.columns
        id_column = pl.col(names["id"]) if has_id else pl.int_range(1, pl.len() + 1)
        try:
            frame = frame.select(
                id_column.cast(pl.String).alias("id"),
                pl.col(names["items"]).cast(TRANSACTIONS_SCHEMA["items"]).alias("items"),
            )
        except pl.exceptions.PolarsError:
            # Privacy: the cause would quote the values, so it is dropped.
            raise BadInput("the ids must be text or numbers, and the items lists of them") from None
        return cls(frame=frame)

    @property
    def n_transactions(self) -> int:
        """The number of transactions."""
        return self.frame.height

    @property
    def n_items(self) -> int:
        """The total number of items in all transactions."""
        return int(self.frame["items"].list.len().sum())
