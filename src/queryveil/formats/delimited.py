"""Read delimited text as a log: the reader of AOL, Excite, CSV and TSV files, and how each format is recognised."""

from collections.abc import Mapping
from dataclasses import replace

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
