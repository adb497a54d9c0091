"""Rows of id and items, from tables, JSON lines and Parquet: the forms in which transactions are released."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from queryveil.errors import BadFile
from queryveil.formats.bad_rows import Tally
from queryveil.formats.delimited import COMMA_SEPARATED, TAB_SEPARATED, Table, report, structural_faults
from queryveil.formats.jsonl import JSON_REASONS, as_text, decode_lines
from queryveil.formats.records import LINES, first_record, split
from queryveil.formats.streams import ByteStream
from queryveil.log import Format, Layout
from queryveil.transactions import SCHEMA

NO_ID, NO_ITEMS, EMPTY_ITEM = 111, 112, 113
REASONS: Mapping[int, str] = {
    **JSON_REASONS,
    NO_ID: "the id is missing, or neither text nor a number",
    NO_ITEMS: "the items are missing, or not a list of texts or numbers",
    EMPTY_ITEM: "an item is missing or empty",
}

_ESCAPES = {"%": "%25", "|": "%7C", "\t": "%09", "\n": "%0A", "\r": "%0D", "\0": "%00"}
_NO_COLUMNS = "it has no columns id and items; a plain file of items needs --format transactions"


def escaped(text: pl.Expr) -> pl.Expr:
    """Write what could be taken for a separator as in a URL."""
    return text.str.replace_many(list(_ESCAPES), list(_ESCAPES.values()))


def unescaped(text: pl.Expr) -> pl.Expr:
    """Give the text that `escaped` has written."""
    return text.str.replace_many(list(_ESCAPES.values()), list(_ESCAPES))


def join_items(items: pl.Series) -> pl.Series:
    """Write each list as one text, `|` between the items; what could be taken for a separator is written as in a URL.

    >>> join_items(pl.Series([["ice cream", "50% off", "a|b"], []], dtype=pl.List(pl.String))).to_list()
    ['ice cream|50%25 off|a%7Cb', '']
    """
    return items.list.eval(escaped(pl.element())).list.join("|")


def split_joined(texts: pl.Series) -> pl.Series:
    """Give the lists that `join_items` has written."""
    lists = texts.str.split("|").list.eval(unescaped(pl.element()))
    none = pl.lit([], dtype=pl.List(pl.String))
    return pl.select(pl.when(texts != "").then(lists).otherwise(none).alias("items")).to_series()


@dataclass(slots=True, kw_only=True)
class RowReader:
    """Reads files of id and items one after the other; other columns are left out."""

    tally: Tally
    format: Format
    frames: list[pl.DataFrame] = field(default_factory=list)
    compression: str = ""

    def add(self, stream: ByteStream) -> None:
        """Read one file."""
        self.compression = self.compression or stream.compression
        if self.format is Format.PARQUET:
            self._add_parquet(stream)
        elif self.format is Format.JSONL:
            self._add_jsonl(stream)
        else:
            self._add_table(stream)

    def finish(self) -> tuple[pl.DataFrame, Layout]:
        """Give all rows read."""
        compression = "" if self.format is Format.PARQUET else self.compression
        frame = pl.concat([pl.DataFrame(schema=SCHEMA), *self.frames], rechunk=False)
        return frame, Layout(format=self.format, columns=tuple(SCHEMA), compression=compression)

    def _add_table(self, stream: ByteStream) -> None:
        dialect = COMMA_SEPARATED if self.format is Format.CSV else TAB_SEPARATED
        found = first_record(stream, dialect=dialect)
        if any(found.count(name) != 1 for name in SCHEMA):
            raise BadFile(stream.name, _NO_COLUMNS)
        table = Table(dialect=dialect, inside=tuple(found), layout=Layout(format=self.format))
        is_header = True
        for block in split(stream.blocks(), dialect=dialect, n_columns=len(found)):
            records = block.without_first() if is_header else block
            is_header = False
            wrong = structural_faults(records, n_columns=len(found))
            good = records.only(np.flatnonzero(wrong == 0))
            ids, items = (good.column(found.index(name)) for name in SCHEMA)
            ids = pl.select(unescaped(pl.lit(ids))).to_series()
            wrong[wrong == 0] = self._take(ids, split_joined(items))
            self.tally.n_latin1 += int((records.is_latin1 & (wrong == 0)).sum())
            if wrong.any():
                report(self.tally, file=stream.name, records=records, wrong=wrong, table=table, reasons=REASONS)

    def _add_jsonl(self, stream: ByteStream) -> None:
        for records in split(stream.blocks(), dialect=LINES, n_columns=1):
            wrong = structural_faults(records, n_columns=1)
            ids: list[str | None] = []
            items: list[list[str | None] | None] = []
            for one in decode_lines(records, wrong=wrong):
                ids.append(_scalar(one.get("id")))
                items.append(_list(one.get("items")))
            # Arrow makes lists of texts much faster than Polars does.
            lists = pa.array(items, type=pa.large_list(pa.large_string()))
            wrong[wrong == 0] = self._take(pl.Series(ids, dtype=pl.String), pl.Series(lists))
            self.tally.n_latin1 += int((records.is_latin1 & (wrong == 0)).sum())
            if wrong.any():
                report(self.tally, file=stream.name, records=records, wrong=wrong, reasons=REASONS)

    def _add_parquet(self, stream: ByteStream) -> None:
        try:
            file = pq.ParquetFile(stream.seekable())
            if not set(SCHEMA) <= set(file.schema_arrow.names):
                raise BadFile(stream.name, _NO_COLUMNS)
            n_before = 0
            for batch in file.iter_batches(columns=list(SCHEMA)):
                frame = pl.from_arrow(pa.Table.from_batches([batch]))
                assert isinstance(frame, pl.DataFrame)
                wrong = self._take(frame["id"].cast(pl.String), frame["items"].cast(SCHEMA["items"]))
                bad = np.flatnonzero(wrong)
                reasons = [REASONS[code] for code in wrong[bad].tolist()]
                self.tally.add(stream.name, bad + n_before + 1, reason=reasons.__getitem__)
                n_before += frame.height
        except (pa.ArrowException, OSError, ValueError, pl.exceptions.PolarsError, pl.exceptions.PanicException):
            # Privacy: the cause may quote values, so it is dropped.
            raise BadFile(stream.name, "this is not a whole Parquet file of ids and lists of items") from None

    def _take(self, ids: pl.Series, items: pl.Series) -> NDArray[np.uint8]:
        """Keep the rows that can be read; gives the code of what is wrong with each, 0 for nothing."""
        frame = pl.DataFrame({"id": ids, "items": items}, schema=SCHEMA)
        has_gap = pl.col("items").list.contains("") | pl.col("items").list.contains(None, nulls_equal=True)
        wrong = frame.select(
            pl.when(pl.col("id").is_null() | (pl.col("id") == ""))
            .then(NO_ID)
            .when(pl.col("items").is_null())
            .then(NO_ITEMS)
            .when(has_gap.fill_null(False))
            .then(EMPTY_ITEM)
            .otherwise(0)
            .cast(pl.UInt8)
            .alias("wrong")
        )["wrong"]
        self.frames.append(frame.filter(wrong == 0))
        return wrong.to_numpy().copy()


def _scalar(value: Any) -> str | None:
    return None if isinstance(value, bool | list | dict) else as_text(value)


def _list(value: Any) -> list[str | None] | None:
    """Give a list with its numbers as text; None for what is no list of texts and numbers."""
    if not isinstance(value, list):
        return None
    kinds = set(map(type, value))
    if kinds <= {str}:
        return value
    return [as_text(one) for one in value] if kinds <= {str, int, float, type(None)} else None
