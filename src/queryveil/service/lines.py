"""Lines to events and released events to lines, in the structure in which they came.

An event is one line. A line that cannot be read is named by its number and left out; it never stops a stream.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from io import BytesIO
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
import polars as pl

from queryveil.data import ROLES, Bools, Bytes, Format, Int64s, Layout
from queryveil.errors import BadFile, BadInput, BadParameter
from queryveil.formats import delimited, jsonl, layouts, streams, values, write
from queryveil.formats.records import COMMA, LINES, Records, split
from queryveil.formats.roles import frame_names
from queryveil.release import ColumnPolicy
from queryveil.service.settings import LINE_FORMATS

_N_LOOKED_AT = 1000
KEPT = "kept "
"""Begins the names of columns to keep from when events are read until they are released, as nothing else's does."""
MAX_EVENT_BYTES = 1 << 12
"""A longer user and query together are no search: full pools of them would be more than a store takes at once."""


def events_schema(keep: tuple[str, ...]) -> dict[str, pl.DataType]:
    """Return the columns of events; what is kept without a role is text, in JSON its JSON."""
    others = {name: ROLES.get(name, pl.String()) for name in keep}
    return {"user": pl.String(), "query": pl.String(), **others}


@lru_cache(maxsize=8)
def _decoder(keys: tuple[str, ...]) -> msgspec.json.Decoder[Any]:
    for key in keys:
        if any(letter < " " or letter in '"\\' for letter in key):
            allowed = "a name without quotes, backslashes and control characters"
            raise BadParameter("column", ascii(key), allowed=allowed)
    # Fields go by number, as a key may be no name of Python's.
    fields = [(f"f{i}", Any, None) for i in range(len(keys))]
    shape = msgspec.defstruct("Event", fields, rename={f"f{i}": key for i, key in enumerate(keys)})
    return msgspec.json.Decoder(shape)


def one_line_each(records: Records) -> Records:
    """Read again, each line by itself, the lines of records that have more than one."""
    line_ends = np.flatnonzero(records.data == ord("\n"))
    n_fields = np.minimum(records.counts, records.starts.shape[1])
    begins = records.starts[:, 0]
    stops = records.ends[np.arange(len(n_fields)), np.maximum(n_fields, 1) - 1]
    is_long = np.searchsorted(line_ends, begins) != np.searchsorted(line_ends, np.maximum(stops, begins))
    # A record with too many fields has no place for the last of them, so its last line is not known.
    is_long |= records.counts > records.starts.shape[1]
    if not is_long.any():
        return records
    parts = [records.only(np.flatnonzero(~is_long))]
    bounds = np.append(records.lines, records.end_line)
    for i in np.flatnonzero(is_long).tolist():
        for line in range(int(bounds[i]), int(bounds[i + 1])):
            begin = int(line_ends[line - 2]) + 1 if line > 1 else 0
            end = int(line_ends[line - 1]) + 1 if line <= len(line_ends) else records.data.size
            text = iter([records.data[begin:end].tobytes()])
            parts += [
                replace(one, starts=one.starts + begin, ends=one.ends + begin, lines=one.lines + line - 1)
                for one in split(text, delimiter=records.delimiter, n_columns=records.starts.shape[1])
            ]
    order = np.argsort(np.concatenate([part.lines for part in parts]), kind="stable")
    names = ("starts", "ends", "lines", "counts", "flags")
    joined: dict[str, Any] = {name: np.concatenate([getattr(part, name) for part in parts])[order] for name in names}
    return replace(records, **joined)


_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Parsed:
    """The events of some lines, the numbers of the lines that cannot be read, and how times were written, if any were.

    `n_read` counts lines but for headers and blank ones.
    """

    frame: pl.DataFrame
    n_read: int
    bad_lines: Int64s
    time_format: str | None = None


class _Head(streams.ByteStream):
    """The first lines of a stream as if they were a file."""

    def __init__(self, data: bytes, *, name: str) -> None:
        self.path, self.name, self.compression = None, name, ""
        self._raw = self._plain = BytesIO()
        self.head = data[: streams.HEAD_BYTES]


def find_layout(
    data: bytes,
    *,
    format: str | None,  # noqa: A002
    names: Mapping[str, str],
    source: str,
    is_certain: bool = True,
) -> Layout | None:
    """Return the layout of lines from the first ones; None while they are not enough.

    A source whose lines are not all there yet (`is_certain` false) may begin with garbage; a file may not.
    """
    data = data.removeprefix(_BOM)
    head = _Head(data, name=source)
    if not head.head.strip():
        return None
    known = ", ".join(LINE_FORMATS)
    try:
        chosen = Format(format) if format else layouts.sniff(head, columns=names)
    except BadFile:
        raise BadFile(source, f"its format is not clear from its beginning; give --format: {known}") from None
    if chosen not in LINE_FORMATS:
        raise BadFile(source, f"{chosen} cannot be read as a stream; give --format, one of {known}")
    if chosen is Format.JSONL:
        return _json_layout(data, names=names, source=source, is_certain=is_certain)
    return delimited.detect(head, format=chosen, columns=names)


def _json_layout(data: bytes, *, names: Mapping[str, str], source: str, is_certain: bool) -> Layout | None:
    """Find which keys play which role; None if no line is an object."""
    objects: list[dict[str, Any]] = []
    for records in split(iter([data]), delimiter=LINES, n_columns=1):
        objects += jsonl.decode_lines(records, wrong=records.faults())
    found: dict[str, None] = {}
    roles: dict[str, str] = {}
    try:
        if objects:
            jsonl.add_keys(objects[:_N_LOOKED_AT], found=found, names=roles, columns=names, file=source)
    except BadInput:
        if is_certain:
            raise
        return None
    if not found:
        return None
    in_order = {role: roles[role] for role in ROLES if role in roles}
    return Layout(format=Format.JSONL, names=in_order, columns=tuple(found), has_header=False)


def inside_names(layout: Layout) -> tuple[str, ...]:
    """Return the names of a layout's columns in a frame, in the order of the line."""
    inside = frame_names(layout.columns, names=layout.names)
    return tuple(inside[name] for name in layout.columns)


def parse(data: bytes, *, layout: Layout | None, keep: tuple[str, ...] = ()) -> Parsed:
    """Read whole lines: user, query and the columns to keep. Without a layout yet, every line is bad."""
    delimiter, n_columns, read = LINES, 1, _read_json
    if layout is not None and layout.format is not Format.JSONL:
        delimiter, n_columns, read = delimited.delimiter_of(layout.format), len(layout.columns), _read_delimited
    nothing = pl.DataFrame(schema=events_schema(keep))
    blocks = [Parsed(frame=nothing, n_read=0, bad_lines=np.zeros(0, np.int64))]
    for records in split(iter([data.removeprefix(_BOM)]), delimiter=delimiter, n_columns=n_columns):
        if layout is None:
            blocks.append(replace(blocks[0], n_read=len(records.lines), bad_lines=records.lines))
        else:
            blocks.append(read(records, layout=layout, keep=keep))
    return Parsed(
        frame=pl.concat([block.frame for block in blocks], rechunk=False),
        n_read=sum(block.n_read for block in blocks),
        bad_lines=np.concatenate([block.bad_lines for block in blocks]),
        time_format=values.merge_formats(block.time_format for block in blocks if block.time_format),
    )


def _read_json(records: Records, *, layout: Layout, keep: tuple[str, ...]) -> Parsed:
    schema, wrong = events_schema(keep), records.faults()
    roles, others = [role for role in ROLES if role in layout.names], [name for name in schema if name not in ROLES]
    outside = {inside: name for name, inside in frame_names(layout.columns, names=layout.names).items()}
    keys = (*(layout.names[role] for role in roles), *(outside.get(name, name) for name in others))
    events = jsonl.decode_lines(records, wrong=wrong, decoder=_decoder(keys))
    columns = [[*map(attrgetter(f"f{i}"), events)] for i in range(len(keys))]
    typed = jsonl.type_roles(dict(zip(roles, columns, strict=False)))
    for name, column in zip(others, columns[len(roles) :], strict=True):
        text = [None if value is None else jsonl.json_text(value) for value in column]
        jsonl.note_too_deep(text, wrong=typed.wrong)
        typed.columns[name] = pl.Series(text, dtype=pl.String)
    wrong[wrong == 0] = typed.wrong
    absent = [pl.lit(None, dtype=schema[name]).alias(name) for name in schema if name not in typed.columns]
    frame = typed.frame().with_columns(absent).select(*schema)
    time_format = values.merge_formats(values.time_formats(typed.time_kinds))
    return Parsed(frame=frame, n_read=len(wrong), bad_lines=records.lines[wrong != 0], time_format=time_format)


def _read_delimited(records: Records, *, layout: Layout, keep: tuple[str, ...]) -> Parsed:
    inside = inside_names(layout)
    # Times and ranks are read even where they do not leave: what is a bad line must not depend on that.
    wanted = [name for name in inside if name in ("user", "query", "time", "rank") or name in keep]
    records = one_line_each(records) if records.delimiter == COMMA else records
    wrong = records.faults()
    whole = np.flatnonzero(wrong == 0)
    good = records.only(whole)
    text = {name: good.column(inside.index(name)) for name in wanted}
    typed = values.type_columns(text, has_compact_times=layout.format is Format.EXCITE)
    wrong[whole] = typed.wrong
    is_header = _headers(good, text["user"], layout=layout, wrong=typed.wrong)
    frame = pl.DataFrame({name: typed.columns[name] for name in wanted})
    frame = frame.filter(pl.Series((typed.wrong == 0) & ~is_header)).select(*events_schema(keep))
    wrong[whole[is_header]] = 0
    n_read = len(wrong) - int(is_header.sum())
    time_format = values.merge_formats(values.time_formats(typed.time_kinds))
    return Parsed(frame=frame, n_read=n_read, bad_lines=records.lines[wrong != 0], time_format=time_format)


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


def write_lines(
    released: pl.DataFrame, *, layout: Layout, columns: ColumnPolicy, now: datetime, has_header: bool
) -> bytes:
    """Write released rows, users already renamed; the time is that of the release, where lines have one."""
    # Privacy: when a query was asked would lead back to its user.
    frame = released.drop("time", strict=False)
    if "time" in layout.names:
        frame = frame.with_columns(time=pl.lit(now, ROLES["time"]))
    arranged = write.arrange(columns.released_columns(frame), layout=layout)
    if layout.format is not Format.JSONL:
        return write.encode_rows(arranged, layout=layout, begin=0 if has_header else 1)
    others = [name for name in columns.keep if name not in ROLES]
    if not others:
        return arranged.write_ndjson().encode()
    # Their values are JSON already.
    outside = {inside: name for name, inside in frame_names(layout.columns, names=layout.names).items()}
    raw = {outside.get(name, name) for name in others}
    lines = [
        {
            name: msgspec.Raw(value.encode()) if name in raw else value
            for name, value in row.items()
            if name not in raw or value is not None
        }
        for row in arranged.iter_rows(named=True)
    ]
    return msgspec.json.Encoder().encode_lines(lines)
