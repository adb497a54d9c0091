"""Read delimited text as a log: the reader of AOL, Excite, CSV and TSV files, and how each format is recognised."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from queryveil.data import ROLES, Format, Layout
from queryveil.errors import BadFile
from queryveil.formats import roles, values
from queryveil.formats.records import COMMA_SEPARATED, TAB_SEPARATED, Dialect, Reader, first_record, read_records
from queryveil.formats.streams import ByteStream


@dataclass(slots=True, kw_only=True)
class DelimitedReader(Reader):
    """Reads delimited files.

    - `detect`: returns the layout of a file from its first bytes: `detect_aol`, `detect_csv` or `detect_excite`.
    """

    detect: Callable[[ByteStream], Layout]
    layout: Layout | None = None

    def add(self, stream: ByteStream) -> None:
        layout = self.detect(stream)
        if self.layout is not None and layout.columns != self.layout.columns:
            raise BadFile(stream.name, "its columns differ from those of the first file; read them one by one")
        self.layout = self.layout or layout
        dialect, inside = dialect_of(layout.format), roles.frame_names(layout.columns, names=layout.names)
        for records, wrong in read_records(
            stream,
            tally=self.tally,
            reasons=values.REASONS,
            dialect=dialect,
            n_columns=len(layout.columns),
            has_header=layout.has_header,
        ):
            good = records.only(np.flatnonzero(wrong == 0))
            text = {inside[name]: good.column(i) for i, name in enumerate(layout.columns)}
            typed = values.type_columns(text, has_compact_times=layout.format is Format.EXCITE)
            wrong[wrong == 0] = typed.wrong
            self.time_formats |= values.time_formats(typed.time_kinds)
            self.frames.append(typed.frame())

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


def detect_aol(stream: ByteStream) -> Layout:
    """Return the layout of an AOL file, with or without a header."""
    has_header = is_aol_header(first_record(stream, dialect=TAB_SEPARATED))
    return replace(AOL_LAYOUT, has_header=has_header, compression=stream.compression)


def dialect_of(format: Format) -> Dialect:  # noqa: A002
    """Return the dialect of a format: commas and quotes for CSV, else tabs."""
    return COMMA_SEPARATED if format is Format.CSV else TAB_SEPARATED


def detect_csv(stream: ByteStream, *, format: Format, columns: Mapping[str, str]) -> Layout:  # noqa: A002
    """Return the layout of a CSV or TSV file from its header; raise if user or query has no column."""
    found = first_record(stream, dialect=dialect_of(format))
    if not found:
        raise BadFile(stream.name, "it has no header that can be read; its first line must name its columns")
    roles.check_width(found, file=stream.name)
    names = roles.assign_roles(found, file=stream.name, columns=columns, is_surely_header=False)
    return Layout(format=format, names=names, columns=tuple(found), compression=stream.compression)


def detect_excite(stream: ByteStream) -> Layout:
    """Return the layout of an Excite file, which is fixed."""
    return replace(EXCITE_LAYOUT, compression=stream.compression)
