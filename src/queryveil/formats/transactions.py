"""Read and write transactions: plain files of items, and CSV, TSV, JSON lines and Parquet with id and items."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from queryveil.data import TRANSACTIONS_SCHEMA, Bytes, Format, Layout, Transactions
from queryveil.errors import BadFile, BadInput, BadParameter
from queryveil.formats import delimited, jsonl, layouts, parquet, roles
from queryveil.formats.read import parse_choice, read_streams
from queryveil.formats.records import BadRowPolicy, Reader, Tally, first_record, read_records
from queryveil.formats.streams import ByteStream, Content, Source, open_streams
from queryveil.formats.write import write_frame

NO_ID, NO_ITEMS, EMPTY_ITEM = 111, 112, 113
REASONS: Mapping[int, str] = {
    **jsonl.JSON_REASONS,
    NO_ID: "the id is missing, or neither text nor a number",
    NO_ITEMS: "the items are missing, or not a list of texts or numbers",
    EMPTY_ITEM: "an item is missing or empty",
}

_ESCAPES = {"%": "%25", "|": "%7C", "\t": "%09", "\n": "%0A", "\r": "%0D", "\0": "%00"}
_OTHERS = "write TSV, CSV, JSON lines or Parquet"
_NO_COLUMNS = "it has no columns id and items; a plain file of items needs --format transactions"


def escaped(text: pl.Expr) -> pl.Expr:
    """Percent-encode the characters that CSV and TSV of items use as separators."""
    return text.str.replace_many(list(_ESCAPES), list(_ESCAPES.values()))


def unescaped(text: pl.Expr) -> pl.Expr:
    """Decode what `escaped` has encoded."""
    return text.str.replace_many(list(_ESCAPES.values()), list(_ESCAPES))


def join_items(items: pl.Series) -> pl.Series:
    """Return each list as one text with `|` between the items, separators inside items percent-encoded.

    >>> join_items(pl.Series([["ice cream", "50% off", "a|b"], []], dtype=pl.List(pl.String))).to_list()
    ['ice cream|50%25 off|a%7Cb', '']
    """
    return items.list.eval(escaped(pl.element())).list.join("|")


def split_joined(texts: pl.Series) -> pl.Series:
    """Return the lists that `join_items` has joined."""
    lists = texts.str.split("|").list.eval(unescaped(pl.element()))
    none = pl.lit([], dtype=pl.List(pl.String))
    return pl.select(pl.when(texts != "").then(lists).otherwise(none).alias("items")).to_series()


class RowReader(Reader):
    """Reads CSV, TSV, JSON lines and Parquet with the columns id and items; other columns are left out."""

    def add(self, stream: ByteStream) -> None:
        if self.format is Format.PARQUET:
            self._add_parquet(stream)
        elif self.format is Format.JSONL:
            self._add_jsonl(stream)
        else:
            self._add_table(stream)

    def finish(self) -> tuple[pl.DataFrame, Layout]:
        compression = "" if self.format is Format.PARQUET else self.compression
        frame = pl.concat([pl.DataFrame(schema=TRANSACTIONS_SCHEMA), *self.frames], rechunk=False)
        return frame, Layout(format=self.format, columns=tuple(TRANSACTIONS_SCHEMA), compression=compression)

    def _add_table(self, stream: ByteStream) -> None:
        delimiter = delimited.delimiter_of(self.format)
        found = first_record(stream, delimiter=delimiter)
        if any(found.count(name) != 1 for name in TRANSACTIONS_SCHEMA):
            raise BadFile(stream.name, _NO_COLUMNS)
        roles.check_width(found, file=stream.name)
        for records, wrong in read_records(
            stream, tally=self.tally, reasons=REASONS, delimiter=delimiter, n_columns=len(found), has_header=True
        ):
            good = records.only(np.flatnonzero(wrong == 0))
            ids, items = (good.column(found.index(name)) for name in TRANSACTIONS_SCHEMA)
            ids = pl.select(unescaped(pl.lit(ids))).to_series()
            wrong[wrong == 0] = self._take(ids, split_joined(items))

    def _add_jsonl(self, stream: ByteStream) -> None:
        for records, wrong in read_records(stream, tally=self.tally, reasons=REASONS):
            ids: list[str | None] = []
            items: list[list[str | None] | None] = []
            for one in jsonl.iter_objects(records, wrong=wrong):
                ids.append(jsonl.scalar_as_text(one.get("id")))
                items.append(_list(one.get("items")))
            # Arrow makes lists of texts much faster than Polars does.
            lists = pa.array(items, type=pa.large_list(pa.large_string()))
            wrong[wrong == 0] = self._take(pl.Series(ids, dtype=pl.String), pl.Series(lists))

    def _add_parquet(self, stream: ByteStream) -> None:
        wrong_file = "this is not a whole Parquet file of ids and lists of items"
        with parquet.open_parquet(stream, otherwise=wrong_file) as file:
            if not set(TRANSACTIONS_SCHEMA) <= set(file.schema_arrow.names):
                raise BadFile(stream.name, _NO_COLUMNS)
            for frame, rows in parquet.frames_of(file, columns=list(TRANSACTIONS_SCHEMA)):
                wrong = self._take(frame["id"].cast(pl.String), frame["items"].cast(TRANSACTIONS_SCHEMA["items"]))
                self.tally.add(stream.name, wrong, lines=rows, reason=lambda _, code: REASONS[code])

    def _take(self, ids: pl.Series, items: pl.Series) -> Bytes:
        """Keep the rows that can be read; return per row 0 or a code of `REASONS`."""
        frame = pl.DataFrame({"id": ids, "items": items}, schema=TRANSACTIONS_SCHEMA)
        has_gap = pl.col("items").list.contains("") | pl.col("items").list.contains(None, nulls_equal=True)
        faults = (pl.col("id").fill_null("") == "", pl.col("items").is_null(), has_gap.fill_null(False))
        found = [frame.select(fault).to_series().to_numpy() for fault in faults]
        wrong = np.select(found, [NO_ID, NO_ITEMS, EMPTY_ITEM]).astype(np.uint8)
        self.frames.append(frame.filter(pl.Series(wrong == 0)))
        return wrong


def _list(value: Any) -> list[str | None] | None:
    """Return a list with its numbers as text; None for anything but a list of texts and numbers."""
    if not isinstance(value, list):
        return None
    kinds = set(map(type, value))
    if kinds <= {str}:
        return value
    return [jsonl.as_text(one) for one in value] if kinds <= {str, int, float, type(None)} else None


_READABLE = (Format.TRANSACTIONS, Format.CSV, Format.TSV, Format.JSONL, Format.PARQUET)
_BY_ENDING = {"tsv": Format.TSV, **layouts.FORMAT_OF_ENDING, **dict.fromkeys(layouts.JSON_ENDINGS, Format.JSONL)}


def transactions_layout(layout: Layout) -> Layout:
    """Return the layout in which transactions made from a log of this layout are released.

    Formats that cannot hold every item become TSV or JSON lines; see `tabular_format`.

    >>> transactions_layout(Layout(format=Format.AOL, compression="gz")).format
    <Format.TSV: 'tsv'>
    """
    chosen = layouts.tabular_format(layout.format)
    return Layout(format=chosen, columns=tuple(TRANSACTIONS_SCHEMA), compression=layout.compression)


def read_transactions(
    source: Source | Sequence[Content],
    *,
    format: Format | str | None = None,  # noqa: A002
    bad_rows: BadRowPolicy | str = BadRowPolicy.FAIL,
) -> Transactions:
    """Read transactions: a path, a glob, a list of paths, or `-` for stdin.

    Parquet and JSON lines have a column `items` of lists, CSV and TSV one of texts with `|` between the items, beside a
    column `id`; other columns are left out. In CSV and TSV `%25`, `%7C`, `%09`, `%0A`, `%0D` and `%00` stand for `%`,
    `|`, tab, line ends and NUL. The format is detected from ending and content unless `format` is given. Any other file
    is read as a plain one: one transaction per line, its items separated by blanks, its id the line number. A line
    without items is no transaction.
    """
    chosen = None if format is None else parse_choice(Format, format, name="format")
    if chosen is not None and chosen not in _READABLE:
        raise BadParameter("format", chosen, allowed=f"one of {', '.join(_READABLE)}")
    tally = Tally(policy=parse_choice(BadRowPolicy, bad_rows, name="bad_rows"))
    found = read_streams(
        open_streams(source),
        detect=lambda stream: chosen or _sniff(stream),
        reader_for=lambda kind: (delimited.PlainReader if kind is Format.TRANSACTIONS else RowReader)(
            tally=tally, format=kind
        ),
    )
    frame = found.frame
    if found.layout.format is Format.TRANSACTIONS:
        frame = frame.select(pl.col("user").alias("id"), delimited.split_items(frame["query"]).alias("items"))
    return Transactions(frame=frame, layout=found.layout, reading=found.reading)


def write_transactions(transactions: Transactions, path: Path, *, layout: Layout | None = None) -> None:
    """Write transactions to a file, by default in their own layout; `read_transactions` reads it back.

    A plain file has no ids, and raises for transactions without items and for items with blanks.
    """
    layout, frame = layout or transactions.layout, transactions.frame
    if layout.format is Format.TRANSACTIONS:
        if (frame["items"].list.len() == 0).any():
            raise BadInput(f"a plain file cannot hold a transaction without items; {_OTHERS}")
        if frame["items"].explode(empty_as_null=False).str.contains(f"[{delimited.BLANKS}\0]").any():
            raise BadInput(f"a plain file cannot hold items with blanks in them; {_OTHERS}")
        layout = replace(layout, has_header=False)
    else:
        layout = transactions_layout(layout)
    write_frame(arrange_transactions(frame, layout=layout), path, layout=layout)


def arrange_transactions(frame: pl.DataFrame, *, layout: Layout) -> pl.DataFrame:
    """Return ids and items as they are written: in CSV and TSV lists become texts."""
    if layout.format not in (Format.CSV, Format.TSV):
        return frame
    return frame.with_columns(escaped(pl.col("id")), join_items(frame["items"]).alias("items"))


def _sniff(stream: ByteStream) -> Format:
    if stream.head.startswith(b"PAR1"):
        return Format.PARQUET
    by_ending = _BY_ENDING.get(layouts.ending(stream.path))
    if by_ending is not None:
        return by_ending
    first = stream.head.partition(b"\n")[0].strip()
    if first.startswith(b"{"):
        return Format.JSONL
    return {b"id\titems": Format.TSV, b"id,items": Format.CSV}.get(first, Format.TRANSACTIONS)
