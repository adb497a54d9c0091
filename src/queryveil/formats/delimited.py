"""Read delimited text as a log: the readers of AOL, Excite, CSV and TSV files and of plain transactions.

A plain transaction file has one transaction per line, its items separated by blanks. A line without items is no
transaction, as a blank line is no row in any format, so such a file cannot hold a transaction without items. Blanks are
space, tab and line ends; upper and lower case differ.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from queryveil.data import ROLES, Format, Layout
from queryveil.errors import BadFile
from queryveil.formats import roles, values
from queryveil.formats.records import COMMA, TAB, Reader, first_record, read_records
from queryveil.formats.streams import ByteStream


class DelimitedReader(Reader):
    """Reads delimited files."""

    def add(self, stream: ByteStream) -> None:
        layout = detect(stream, format=self.format, columns=self.columns)
        self.keep_layout(layout, file=stream.name)
        inside = roles.frame_names(layout.columns, names=layout.names)
        for records, wrong in read_records(
            stream,
            tally=self.tally,
            reasons=values.REASONS,
            delimiter=delimiter_of(self.format),
            n_columns=len(layout.columns),
            has_header=layout.has_header,
        ):
            good = records.only(np.flatnonzero(wrong == 0))
            text = {inside[name]: good.column(i) for i, name in enumerate(layout.columns)}
            self.take(values.type_columns(text, has_compact_times=self.format is Format.EXCITE), wrong=wrong)

    def finish(self) -> tuple[pl.DataFrame, Layout]:
        layout = self.layout
        assert layout is not None
        inside = roles.in_role_order(roles.frame_names(layout.columns, names=layout.names).values())
        empty = pl.DataFrame(schema={name: ROLES.get(name, pl.String()) for name in inside})
        frame = pl.concat([empty, *self.frames], rechunk=False)
        return frame, replace(layout, time_format=layout.time_format or values.merge_formats(self.time_formats))


AOL_NAMES = {"user": "AnonID", "query": "Query", "time": "QueryTime", "rank": "ItemRank", "url": "ClickURL"}
AOL_LAYOUT = Layout(format=Format.AOL, names=AOL_NAMES, columns=tuple(AOL_NAMES.values()), time_format=values.SECONDS)
EXCITE_NAMES = {"user": "user", "time": "time", "query": "query"}
EXCITE_LAYOUT = Layout(
    format=Format.EXCITE,
    names=EXCITE_NAMES,
    columns=tuple(EXCITE_NAMES),
    has_header=False,
    time_format=values.COMPACT,
)


def is_aol_header(fields: list[str]) -> bool:
    """Return whether these fields are the header of an AOL file.

    >>> is_aol_header(["AnonID", "Query", "QueryTime", "ItemRank", "ClickURL"])
    True
    """
    return [name.strip().lower() for name in fields] == [name.lower() for name in AOL_NAMES.values()]


def delimiter_of(format: Format) -> str:  # noqa: A002
    """Return what stands between the fields of a format."""
    return COMMA if format is Format.CSV else TAB


def detect(stream: ByteStream, *, format: Format, columns: Mapping[str, str]) -> Layout:  # noqa: A002
    """Return the layout of a file from its beginning; raise if user or query has no column of a CSV or TSV file."""
    if format is Format.EXCITE:
        return replace(EXCITE_LAYOUT, compression=stream.compression)
    found = first_record(stream, delimiter=delimiter_of(format))
    if format is Format.AOL:
        return replace(AOL_LAYOUT, has_header=is_aol_header(found), compression=stream.compression)
    if not found:
        raise BadFile(stream.name, "it has no header that can be read; its first line must name its columns")
    roles.check_width(found, file=stream.name)
    names = roles.assign_roles(found, file=stream.name, columns=columns, is_surely_header=False)
    return Layout(format=format, names=names, columns=tuple(found), compression=stream.compression)


BLANKS = r" \t\r\n"
"""The separators of items, for use inside the brackets of a regular expression."""


@dataclass(slots=True, kw_only=True)
class PlainReader(Reader):
    """Reads plain files; the user is the line number, counted on from file to file."""

    n_lines: int = 0

    def add(self, stream: ByteStream) -> None:
        if b"\n" not in stream.head and b"\r" in stream.head.rstrip(b"\r"):
            # They would all be one transaction.
            raise BadFile(stream.name, "its lines end in CR alone; convert them to LF")
        n_before = self.n_lines
        for records, wrong in read_records(stream, tally=self.tally, reasons={}):
            good = records.only(np.flatnonzero(wrong == 0))
            self.n_lines = n_before + int(records.lines[-1])
            frame = pl.DataFrame({"user": n_before + good.lines, "query": good.column(0)})
            has_items = pl.col("query").str.contains(f"[^{BLANKS}]")
            self.frames.append(frame.filter(has_items).with_columns(pl.col("user").cast(pl.String)))

    def finish(self) -> tuple[pl.DataFrame, Layout]:
        """Return the lines as a log, one row each."""
        empty = pl.DataFrame(schema={"user": pl.String, "query": pl.String})
        layout = Layout(format=Format.TRANSACTIONS, has_header=False, compression=self.compression)
        return pl.concat([empty, *self.frames], rechunk=False), layout


def split_items(lines: pl.Series) -> pl.Series:
    """Return the items of each line, in their order.

    >>> split_items(pl.Series([" 7 Milk  7", ""])).to_list()
    [['7', 'Milk', '7'], []]
    """
    return lines.str.extract_all(f"[^{BLANKS}]+")


def gather_users(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the items of all queries of each user who has any, users by first appearance."""
    lines = frame.group_by("user", maintain_order=True).agg(pl.col("query").str.join(" "))
    # NUL would make the line one that cannot be read.
    items = split_items(lines["query"].str.replace_all("\0", " ", literal=True)).alias("items")
    return items.to_frame().filter(pl.col("items").list.len() > 0)


def encode_items(items: pl.Series) -> bytes:
    """Encode lists of items as lines; the items must not contain blanks."""
    return "".join(f"{line}\n" for line in items.list.join(" ")).encode()
