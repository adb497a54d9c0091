"""Read delimited text as a log: the reader of AOL, Excite, CSV and TSV files, and how each format is recognised."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl

from queryveil.data import ROLES, Format, Layout
from queryveil.errors import BadFile
from queryveil.formats.records import COMMA_SEPARATED, TAB_SEPARATED, Dialect, Reader, Records, first_record, split
from queryveil.formats.roles import assign_roles, check_width, frame_names, in_role_order
from queryveil.formats.streams import ByteStream
from queryveil.formats.values import COMPACT, REASONS, SECONDS, merge_formats, time_formats, type_columns


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """How one delimited file is read.

    - `dialect`: delimiter and quoting.
    - `frame_columns`: the name in the frame of each column of the file, in the file's order.
    - `layout`: the layout that a release of this file is written in.
    - `has_compact_times`: whether times are Excite's digits (yyMMddHHmmss).
    """

    dialect: Dialect
    frame_columns: tuple[str, ...]
    layout: Layout
    has_compact_times: bool = False


@dataclass(slots=True, kw_only=True)
class DelimitedReader(Reader):
    """Reads delimited files.

    - `detect`: returns the table of a file from its first bytes: `detect_aol`, `detect_csv` or `detect_excite`.
    """

    detect: Callable[[ByteStream], Table]
    tables: list[Table] = field(default_factory=list)

    def add(self, stream: ByteStream) -> None:
        table = self.detect(stream)
        if self.tables and table.layout.columns != self.tables[0].layout.columns:
            raise BadFile(stream.name, "its columns differ from those of the first file; read them one by one")
        self.tables.append(table)
        n_columns, has_header = len(table.frame_columns), table.layout.has_header
        for records in split(stream.blocks(), dialect=table.dialect, n_columns=n_columns, has_header=has_header):
            self.frames.append(self._read(records, table=table, file=stream.name))

    def _read(self, records: Records, *, table: Table, file: str) -> pl.DataFrame:
        wrong = records.faults()
        whole = np.flatnonzero(wrong == 0)
        good = records.only(whole)
        typed = type_columns(
            {name: good.column(i) for i, name in enumerate(table.frame_columns)},
            has_compact_times=table.has_compact_times,
        )
        wrong[whole] = typed.wrong
        self.tally.add_records(records, wrong, file=file, reasons=REASONS)
        self.time_formats |= time_formats(typed.time_kinds)
        return typed.frame()

    def finish(self) -> tuple[pl.DataFrame, Layout]:
        first = self.tables[0]
        empty = pl.DataFrame(schema={name: ROLES.get(name, pl.String()) for name in in_role_order(first.frame_columns)})
        frame = pl.concat([empty, *self.frames], rechunk=False)
        layout = first.layout
        if layout.time_format is None:
            layout = replace(layout, time_format=merge_formats(self.time_formats))
        return frame, layout


AOL_NAMES = {"user": "AnonID", "query": "Query", "time": "QueryTime", "rank": "ItemRank", "url": "ClickURL"}
AOL_LAYOUT = Layout(format=Format.AOL, names=AOL_NAMES, columns=tuple(AOL_NAMES.values()), time_format=SECONDS)


def is_aol_header(fields: list[str]) -> bool:
    """Return whether these fields are the header of an AOL file.

    >>> is_aol_header(["AnonID", "Query", "QueryTime", "ItemRank", "ClickURL"])
    True
    """
    return [name.strip().lower() for name in fields] == [name.lower() for name in AOL_NAMES.values()]


def is_aol_header_line(line: bytes) -> bool:
    r"""Return whether this line is the header of an AOL file.

    >>> is_aol_header_line(b"AnonID\tQuery\tQueryTime\tItemRank\tClickURL\r")
    True
    """
    return is_aol_header(line.decode("latin-1").split("\t"))


def detect_aol(stream: ByteStream) -> Table:
    """Return the table of an AOL file, with or without a header."""
    has_header = is_aol_header(first_record(stream, dialect=TAB_SEPARATED))
    layout = replace(AOL_LAYOUT, has_header=has_header, compression=stream.compression)
    return Table(dialect=TAB_SEPARATED, frame_columns=tuple(AOL_NAMES), layout=layout)


def dialect_of(format: Format) -> Dialect:  # noqa: A002
    """Return the dialect of a format: commas and quotes for CSV, else tabs."""
    return COMMA_SEPARATED if format is Format.CSV else TAB_SEPARATED


def detect_csv(stream: ByteStream, *, format: Format, columns: Mapping[str, str]) -> Table:  # noqa: A002
    """Return the table of a CSV or TSV file from its header; raise if user or query has no column."""
    dialect = dialect_of(format)
    found = first_record(stream, dialect=dialect)
    if not found:
        raise BadFile(stream.name, "it has no header that can be read; its first line must name its columns")
    check_width(found, file=stream.name)
    names = assign_roles(found, file=stream.name, columns=columns, is_surely_header=False)
    inside = frame_names(found, names=names)
    layout = Layout(format=format, names=names, columns=tuple(found), compression=stream.compression)
    return Table(dialect=dialect, frame_columns=tuple(inside[name] for name in found), layout=layout)


EXCITE_COLUMNS = ("user", "time", "query")


def excite_layout(compression: str = "") -> Layout:
    """Return the layout of Excite files, which is fixed."""
    return Layout(
        format=Format.EXCITE,
        names={name: name for name in EXCITE_COLUMNS},
        columns=EXCITE_COLUMNS,
        has_header=False,
        time_format=COMPACT,
        compression=compression,
    )


def detect_excite(stream: ByteStream) -> Table:
    """Return the table of an Excite file, which is fixed."""
    return Table(
        dialect=TAB_SEPARATED,
        frame_columns=EXCITE_COLUMNS,
        layout=excite_layout(stream.compression),
        has_compact_times=True,
    )
