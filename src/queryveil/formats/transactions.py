"""Transactions as files: plain lists of items, and the forms in which they are released."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl

from queryveil.errors import BadInput, BadParameter, OtherFormat
from queryveil.formats.bad_rows import BadRowPolicy, Tally
from queryveil.formats.plain import BLANKS, PlainReader, split_items
from queryveil.formats.read import choose
from queryveil.formats.sniff import ending
from queryveil.formats.streams import ByteStream, Source, find_sources
from queryveil.formats.transaction_rows import RowReader, escaped, join_items
from queryveil.formats.write import write_frame
from queryveil.log import Format, Layout
from queryveil.transactions import SCHEMA, Transactions

_RELEASED_AS = {
    Format.AOL: Format.TSV,
    Format.EXCITE: Format.TSV,
    Format.TRANSACTIONS: Format.TSV,
    Format.UBI: Format.JSONL,
}
_READ = (Format.TRANSACTIONS, Format.CSV, Format.TSV, Format.JSONL, Format.PARQUET)
_BY_ENDING = {
    "csv": Format.CSV,
    "tsv": Format.TSV,
    "jsonl": Format.JSONL,
    "ndjson": Format.JSONL,
    "json": Format.JSONL,
    "parquet": Format.PARQUET,
    "pq": Format.PARQUET,
}


def transactions_layout(layout: Layout) -> Layout:
    """Give the layout in which transactions made from a log of this layout are released.

    Parquet, JSON lines, CSV and TSV stay; other formats cannot hold every item, so they become TSV or JSON lines.

    >>> transactions_layout(Layout(format=Format.AOL, compression="gz")).format
    <Format.TSV: 'tsv'>
    """
    chosen = _RELEASED_AS.get(layout.format, layout.format)
    return Layout(format=chosen, columns=tuple(SCHEMA), compression=layout.compression)


def read_transactions(
    source: Source,
    *,
    format: Format | str | None = None,  # noqa: A002
    bad_rows: BadRowPolicy | str = BadRowPolicy.FAIL,
) -> Transactions:
    """Read transactions: a path, a glob, a list of paths, or `-` for stdin.

    Parquet and JSON lines have a column `items` of lists, CSV and TSV one of texts with `|` between the items; beside
    it a column `id`, and others are left out. In CSV and TSV `%25`, `%7C`, `%09`, `%0A`, `%0D` and `%00` stand for `%`,
    `|`, tab, line ends and NUL. These are told by ending and content unless `format` is given. Any other file is taken
    for a plain one: a transaction a line, its items separated by blanks, its id the number of the line. A line without
    items is no transaction.
    """
    chosen = None if format is None else choose(Format, format, name="format")
    if chosen is not None and chosen not in _READ:
        raise BadParameter("format", chosen, allowed=f"one of {', '.join(_READ)}")
    tally = Tally(policy=choose(BadRowPolicy, bad_rows, name="bad_rows"))
    reader: PlainReader | RowReader | None = None
    for path in find_sources(source):
        with ByteStream(path) as stream:
            found = chosen or _sniff(stream)
            if reader is None:
                first, reader = found, _reader_of(found, tally=tally)
            elif found is not first:
                raise OtherFormat(stream.name, found, first=first)
            reader.add(stream)
    assert reader is not None
    reading = tally.close()
    frame, layout = reader.finish()
    if isinstance(reader, PlainReader):
        frame = frame.select(pl.col("user").alias("id"), split_items(frame["query"]).alias("items"))
    return Transactions(frame=frame, layout=layout, reading=reading)


def write_transactions(transactions: Transactions, path: Path, *, layout: Layout | None = None) -> None:
    """Write transactions to a file, by default in their own layout; `read_transactions` gives them back.

    A plain file holds neither ids, nor transactions without items, nor items with blanks: the latter two are refused.
    """
    layout = layout or transactions.layout
    if layout.format is not Format.TRANSACTIONS:
        layout = transactions_layout(layout)
    frame = transactions.frame
    if layout.format is Format.TRANSACTIONS:
        _check_plain(frame["items"])
        layout = replace(layout, has_header=False)
    write_frame(arrange_transactions(frame, layout=layout), path, layout=layout)


def arrange_transactions(frame: pl.DataFrame, *, layout: Layout) -> pl.DataFrame:
    """Give ids and items as the file has them: in CSV and TSV lists become texts."""
    if layout.format not in (Format.CSV, Format.TSV):
        return frame
    return frame.with_columns(escaped(pl.col("id")), join_items(frame["items"]).alias("items"))


def _check_plain(items: pl.Series) -> None:
    if (items.list.len() == 0).any():
        raise BadInput("a plain file cannot hold a transaction without items; write TSV, CSV, JSON lines or Parquet")
    if items.explode(empty_as_null=False).str.contains(f"[{BLANKS}\0]").any():
        raise BadInput("a plain file cannot hold items with blanks in them; write TSV, CSV, JSON lines or Parquet")


def _reader_of(format: Format, *, tally: Tally) -> PlainReader | RowReader:  # noqa: A002
    if format is Format.TRANSACTIONS:
        return PlainReader(tally=tally)
    return RowReader(tally=tally, format=format)


def _sniff(stream: ByteStream) -> Format:
    if stream.head.startswith(b"PAR1"):
        return Format.PARQUET
    by_ending = _BY_ENDING.get(ending(stream.path))
    if by_ending is not None:
        return by_ending
    first = stream.head.partition(b"\n")[0].strip()
    if first.startswith(b"{"):
        return Format.JSONL
    return {b"id\titems": Format.TSV, b"id,items": Format.CSV}.get(first, Format.TRANSACTIONS)
