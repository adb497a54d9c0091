"""Lines to events and released events to lines, in the structure in which they came.

An event is one line. A line that cannot be read is named by its number and left out; it never stops a stream.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from io import BytesIO

import numpy as np
import polars as pl

from queryveil.errors import BadFile, MissingColumn
from queryveil.formats import aol, csv, excite
from queryveil.formats.delimited import COMMA_SEPARATED, TAB_SEPARATED, structural_faults
from queryveil.formats.records import Records, split
from queryveil.formats.roles import carried_names
from queryveil.formats.sniff import sniff
from queryveil.formats.streams import HEAD_BYTES, ByteStream
from queryveil.formats.times import format_of
from queryveil.formats.values import type_columns
from queryveil.kernels.arrays import Bools, Bytes, Int64s
from queryveil.log import Format, Layout
from queryveil.stream import json_lines
from queryveil.stream.settings import LINE_FORMATS
from queryveil.stream.single_lines import one_line_each

_UTF8_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Parsed:
    """The events of some lines, the numbers of the lines that cannot be read, and how times were written, if any were.

    `n_read` counts lines but for headers and blank ones.
    """

    frame: pl.DataFrame
    n_read: int
    bad_lines: Int64s
    time_format: str | None = None


class _Head(ByteStream):
    """The first lines of a stream as if they were a file."""

    def __init__(self, data: bytes, *, name: str) -> None:
        self.path, self.name, self.compression = None, name, ""
        self._raw = self._plain = BytesIO()
        self.head = data[:HEAD_BYTES]


def find_layout(
    data: bytes,
    *,
    format: str | None,  # noqa: A002
    names: Mapping[str, str],
    source: str,
    is_certain: bool = True,
) -> Layout | None:
    """Tell from the first lines how they are written; None while they are not enough to tell.

    A source whose lines are not all there yet (`is_certain` false) may begin with garbage; a file may not.
    """
    data = data.removeprefix(_UTF8_MARK)
    head = _Head(data, name=source)
    if not head.head.strip():
        return None
    known = ", ".join(LINE_FORMATS)
    try:
        chosen = Format(format) if format else sniff(head, columns=names)
    except BadFile:
        raise BadFile(source, f"its format is not clear from its beginning; give --format: {known}") from None
    if chosen not in LINE_FORMATS:
        raise BadFile(source, f"{chosen} cannot be read as a stream; give --format, one of {known}")
    match chosen:
        case Format.AOL:
            return aol.look(head).layout
        case Format.EXCITE:
            return excite.layout()
        case Format.JSONL:
            return _found_in_json(data, names=names, source=source, is_certain=is_certain)
        case _:
            return csv.look(head, format=chosen, columns=names).layout


def _found_in_json(data: bytes, *, names: Mapping[str, str], source: str, is_certain: bool) -> Layout | None:
    try:
        return json_lines.find_layout(data, names=names, source=source)
    except MissingColumn:
        if is_certain:
            raise
        return None


def inside_names(layout: Layout) -> tuple[str, ...]:
    """Give the names of a layout's columns in a frame, in the order of the line."""
    if layout.format is Format.AOL:
        return tuple(aol.NAMES)
    inside = {name: role for role, name in layout.names.items()} | carried_names(layout.columns, names=layout.names)
    return tuple(inside[name] for name in layout.columns)


def parse(data: bytes, *, layout: Layout | None, keep: tuple[str, ...] = ()) -> Parsed:
    """Read whole lines: user, query and the columns to keep. Without a layout yet, every line is bad."""
    data = data.removeprefix(_UTF8_MARK)
    if layout is None or layout.format is Format.JSONL:
        events, n_read, bad, kinds = json_lines.parse(data, layout=layout, keep=keep)
    else:
        events, n_read, bad, kinds = _parse_delimited(data, layout=layout, keep=keep)
    return Parsed(frame=events, n_read=n_read, bad_lines=bad, time_format=format_of(kinds))


def _parse_delimited(data: bytes, *, layout: Layout, keep: tuple[str, ...]) -> tuple[pl.DataFrame, int, Int64s, Bytes]:
    inside = inside_names(layout)
    # Times and ranks are read even where they do not leave: what is a bad line must not depend on that.
    wanted = [name for name in inside if name in ("user", "query", "time", "rank") or name in keep]
    dialect = COMMA_SEPARATED if layout.format is Format.CSV else TAB_SEPARATED
    frames, kinds, bad, n_read = [pl.DataFrame(schema=json_lines.events_schema(keep))], [np.zeros(0, np.uint8)], [], 0
    for found in split(iter([data]), dialect=dialect, n_columns=len(inside)):
        records = one_line_each(found, dialect=dialect) if dialect.is_quoted else found
        wrong = structural_faults(records, n_columns=len(inside))
        whole = np.flatnonzero(wrong == 0)
        good = records.only(whole)
        text = {name: good.column(inside.index(name)) for name in wanted}
        typed = type_columns(text, has_compact_times=layout.format is Format.EXCITE)
        wrong[whole] = typed.wrong
        is_header = _headers(good, text["user"], layout=layout, wrong=typed.wrong)
        frame = pl.DataFrame({name: typed.columns[name] for name in wanted})
        frame = frame.filter(pl.Series((typed.wrong == 0) & ~is_header)).select(*json_lines.events_schema(keep))
        wrong[whole[is_header]] = 0
        bad.append(records.lines[wrong != 0])
        n_read += len(wrong) - int(is_header.sum())
        frames.append(frame)
        kinds.append(typed.time_kinds)
    lines = np.concatenate([np.zeros(0, np.int64), *bad])
    return pl.concat(frames, rechunk=False), n_read, lines, np.concatenate(kinds)


def _headers(records: Records, users: pl.Series, *, layout: Layout, wrong: Bytes) -> Bools:
    """Find the lines that are headers: every file of a rotation may begin with one."""
    found = np.zeros(len(users), dtype=np.bool_)
    if not layout.columns or layout.format is Format.EXCITE:
        return found
    header = [name.strip().lower() for name in layout.columns]
    # The name of a column of times is no time, so where there is one only bad lines can be headers.
    rows = np.flatnonzero(wrong) if "time" in layout.names else np.arange(len(users))
    is_named = users.gather(rows).str.strip_chars().str.to_lowercase() == layout.names["user"].strip().lower()
    for row in rows[is_named.to_numpy()].tolist():
        one = records.only(np.array([row]))
        found[row] = [one.column(i).item().strip().lower() for i in range(len(header))] == header
    return found


def with_time_format(layout: Layout, time_format: str | None) -> Layout:
    """Note how times are written, once there is one."""
    return layout if layout.time_format or not time_format else replace(layout, time_format=time_format)
