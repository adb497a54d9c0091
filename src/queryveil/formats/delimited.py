"""Delimited text to a log: what AOL, Excite, CSV and TSV have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from queryveil.data import ROLES, Format, Layout
from queryveil.errors import BadFile
from queryveil.formats import _field_kernels as fields
from queryveil.formats.records import MAX_RECORD_BYTES, Dialect, Records, Tally, first_record, split
from queryveil.formats.roles import assign_roles, carried_names
from queryveil.formats.streams import ByteStream
from queryveil.formats.values import COMPACT, REASONS, SECONDS, format_of, merge_formats, type_columns

TAB_SEPARATED = Dialect(delimiter="\t")
COMMA_SEPARATED = Dialect(delimiter=",", is_quoted=True)

_WRONG_COUNT = 100
_FLAG_REASONS = {
    fields.TOO_LONG: f"the line is longer than {MAX_RECORD_BYTES >> 20} MiB",
    fields.UNCLOSED_QUOTE: "a quote is opened and never closed",
    fields.TEXT_AFTER_QUOTE: "text follows a closing quote; a quote inside a quoted field must be doubled",
    fields.HAS_NUL: "the line has a NUL byte",
}
_SEPARATORS = {"\t": "tab", ",": "comma"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A delimited file as found: its dialect, its columns' names in the frame in order, its layout."""

    dialect: Dialect
    inside: tuple[str, ...]
    layout: Layout
    has_compact_times: bool = False


@dataclass(slots=True, kw_only=True)
class DelimitedReader:
    """Reads delimited files one after the other into one frame; each format says how to look at a file."""

    tally: Tally
    frames: list[pl.DataFrame] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    time_formats: set[str] = field(default_factory=set)

    def add(self, stream: ByteStream, *, table: Table) -> None:
        """Read one file."""
        if self.tables and table.layout.columns != self.tables[0].layout.columns:
            raise BadFile(stream.name, "its columns differ from those of the first file; read them one by one")
        self.tables.append(table)
        is_header = table.layout.has_header
        for block in split(stream.blocks(), dialect=table.dialect, n_columns=len(table.inside)):
            records = block.without_first() if is_header else block
            is_header = False
            self.frames.append(self._read(records, table=table, file=stream.name))

    def _read(self, records: Records, *, table: Table, file: str) -> pl.DataFrame:
        wrong = structural_faults(records, n_columns=len(table.inside))
        whole = np.flatnonzero(wrong == 0)
        good = records.only(whole)
        typed = type_columns(
            {name: good.column(i) for i, name in enumerate(table.inside)}, has_compact_times=table.has_compact_times
        )
        wrong[whole] = typed.wrong
        self.tally.n_latin1 += int((records.is_latin1 & (wrong == 0)).sum())
        if wrong.any():
            report(self.tally, file=file, records=records, wrong=wrong, table=table)
        time_format = format_of(typed.time_kinds)
        if time_format is not None:
            self.time_formats.add(time_format)
        return typed.frame()

    def finish(self) -> tuple[pl.DataFrame, Layout]:
        """Return all rows read, and the layout of the first file."""
        first = self.tables[0]
        empty = pl.DataFrame(schema={name: ROLES.get(name, pl.String()) for name in in_role_order(first.inside)})
        frame = pl.concat([empty, *self.frames], rechunk=False)
        layout = first.layout
        if layout.time_format is None:
            layout = replace(layout, time_format=merge_formats(sorted(self.time_formats)))
        return frame, layout


def in_role_order(names: tuple[str, ...]) -> list[str]:
    """Put the roles first, the rest as they come."""
    return [role for role in ROLES if role in names] + [name for name in names if name not in ROLES]


def structural_faults(records: Records, *, n_columns: int) -> NDArray[np.uint8]:
    """Say per record what is wrong with its form: a flag of the splitter, or the number of its fields."""
    wrong = np.zeros(len(records.lines), dtype=np.uint8)
    wrong[records.counts != n_columns] = _WRONG_COUNT
    for flag in reversed(_FLAG_REASONS):
        wrong[(records.flags & flag) != 0] = flag
    return wrong


def report(
    tally: Tally,
    *,
    file: str,
    records: Records,
    wrong: NDArray[np.uint8],
    table: Table | None = None,
    reasons: Mapping[int, str] = REASONS,
) -> None:
    """Count the bad records of a block and say what is wrong with the first of them."""
    bad = np.flatnonzero(wrong)

    def reason(i: int) -> str:
        code = int(wrong[bad[i]])
        if code == _WRONG_COUNT and table is not None:
            separator, n = _SEPARATORS[table.dialect.delimiter], len(table.inside)
            return f"expected {n} {separator}-separated columns, found {records.counts[bad[i]]}"
        return _FLAG_REASONS.get(code) or reasons[code]

    tally.add(file, records.lines[bad], reason=reason)


NAMES = {"user": "AnonID", "query": "Query", "time": "QueryTime", "rank": "ItemRank", "url": "ClickURL"}
LAYOUT = Layout(format=Format.AOL, names=NAMES, columns=tuple(NAMES.values()), time_format=SECONDS)


def is_header(fields: list[str]) -> bool:
    """Return whether this is AOL's header.

    >>> is_header(["AnonID", "Query", "QueryTime", "ItemRank", "ClickURL"])
    True
    """
    return [name.strip().lower() for name in fields] == [name.lower() for name in NAMES.values()]


def is_header_line(line: bytes) -> bool:
    r"""Return whether these bytes are AOL's header.

    >>> is_header_line(b"AnonID\tQuery\tQueryTime\tItemRank\tClickURL\r")
    True
    """
    return is_header(line.decode("latin-1").split("\t"))


def look(stream: ByteStream) -> Table:
    """See whether an AOL file has a header."""
    has_header = is_header(first_record(stream, dialect=TAB_SEPARATED))
    layout = Layout(
        format=Format.AOL,
        names=NAMES,
        columns=tuple(NAMES.values()),
        has_header=has_header,
        time_format=SECONDS,
        compression=stream.compression,
    )
    return Table(dialect=TAB_SEPARATED, inside=tuple(NAMES), layout=layout)


def look_csv(stream: ByteStream, *, format: Format, columns: Mapping[str, str]) -> Table:  # noqa: A002
    """Read the header and find the roles in it."""
    dialect = COMMA_SEPARATED if format is Format.CSV else TAB_SEPARATED
    found = first_record(stream, dialect=dialect)
    if not found:
        raise BadFile(stream.name, "it has no header that can be read; its first line must name its columns")
    names = assign_roles(found, file=stream.name, columns=columns, is_surely_header=False)
    inside = {name: role for role, name in names.items()} | carried_names(found, names=names)
    layout = Layout(format=format, names=names, columns=tuple(found), compression=stream.compression)
    return Table(dialect=dialect, inside=tuple(inside[name] for name in found), layout=layout)


COLUMNS = ("user", "time", "query")


def layout(compression: str = "") -> Layout:
    """Return the layout that every Excite file has."""
    return Layout(
        format=Format.EXCITE,
        names={name: name for name in COLUMNS},
        columns=COLUMNS,
        has_header=False,
        time_format=COMPACT,
        compression=compression,
    )


def look_excite(stream: ByteStream) -> Table:
    """Take an Excite file as it is: there is nothing to find out."""
    return Table(dialect=TAB_SEPARATED, inside=COLUMNS, layout=layout(stream.compression), has_compact_times=True)
