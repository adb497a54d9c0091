"""Read JSON lines as a log: one object per line, its keys the columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from queryveil.data import ROLES, Format, Layout
from queryveil.formats.delimited import structural_faults, tally_records
from queryveil.formats.records import LINES, Records, Tally, split
from queryveil.formats.roles import add_roles, assign_roles, carried_names, in_role_order
from queryveil.formats.streams import ByteStream
from queryveil.formats.values import REASONS, format_of, merge_formats, type_columns

NOT_JSON, NOT_OBJECT, NOT_TEXT = 104, 105, 106
JSON_REASONS: Mapping[int, str] = {
    **REASONS,
    NOT_JSON: "this is not JSON",
    NOT_OBJECT: "this is JSON but not an object",
    NOT_TEXT: "the query, user or url is not text",
}

_SCALARS: Mapping[type, pl.DataType] = {bool: pl.Boolean(), int: pl.Int64(), float: pl.Float64()}
_TEXT = {str, type(None)}
NEVER_TEXT: Mapping[str, tuple[type, ...]] = {
    "user": (bool, list, dict),
    "query": (bool, int, float, list, dict),
    "time": (),
    "rank": (),
    "url": (bool, int, float, list, dict),
}

_decoder = msgspec.json.Decoder()


def decode_lines(records: Records, *, wrong: NDArray[np.uint8]) -> Iterator[dict[str, Any]]:
    """Return the objects of the sound lines; the other lines' faults go into `wrong`."""
    data = records.data.tobytes()
    starts, ends, latin1 = records.starts[:, 0].tolist(), records.ends[:, 0].tolist(), records.is_latin1.tolist()
    for i in np.flatnonzero(wrong == 0).tolist():
        line = data[starts[i] : ends[i]]
        try:
            value = _decoder.decode(line.decode("latin-1") if latin1[i] else line)
        except (ValueError, RecursionError):
            wrong[i] = NOT_JSON
            continue
        if isinstance(value, dict):
            yield value
        else:
            wrong[i] = NOT_OBJECT


@dataclass(slots=True, kw_only=True)
class JsonlReader:
    """Reads JSON-lines files one after the other into one frame; keys may come and go from line to line."""

    tally: Tally
    columns: Mapping[str, str]
    frames: list[pl.DataFrame] = field(default_factory=list)
    found: dict[str, None] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    time_formats: set[str] = field(default_factory=set)
    compression: str = ""
    file: str = ""

    def add(self, stream: ByteStream) -> None:
        """Read one file."""
        self.compression, self.file = self.compression or stream.compression, stream.name
        for records in split(stream.blocks(), dialect=LINES, n_columns=1):
            wrong = structural_faults(records, n_columns=1)
            objects = list(decode_lines(records, wrong=wrong))
            if objects:
                self._read(objects, wrong=wrong, file=stream.name)
            tally_records(self.tally, file=stream.name, records=records, wrong=wrong, reasons=JSON_REASONS)

    def _read(self, objects: list[dict[str, Any]], *, wrong: NDArray[np.uint8], file: str) -> None:
        for one in objects:
            if not one.keys() <= self.found.keys():
                # A role once found stays with its column, whatever keys come later.
                add_roles(self.names, [key for key in one if key not in self.found], columns=self.columns)
                self.found.update(dict.fromkeys(one))
        assign_roles(list(self.found), file=file, columns=self.columns, is_surely_header=False, may_lack=True)
        carried = carried_names(list(self.found), names=self.names)
        text: dict[str, pl.Series] = {}
        not_text = np.zeros(len(objects), dtype=np.bool_)
        for role, name in self.names.items():
            values = [one.get(name) for one in objects]
            if not set(map(type, values)) <= _TEXT:
                refused = NEVER_TEXT[role]
                not_text |= [isinstance(value, refused) for value in values]
                values = [as_text(value) for value in values]
            text[role] = pl.Series(values, dtype=pl.String)
        typed = type_columns(text)
        typed.wrong[not_text] = NOT_TEXT
        for name, inside in carried.items():
            typed.columns[inside] = _typed_series([one.get(name) for one in objects])
        wrong[wrong == 0] = typed.wrong
        time_format = format_of(typed.time_kinds)
        if time_format is not None:
            self.time_formats.add(time_format)
        self.frames.append(typed.frame())

    def finish(self) -> tuple[pl.DataFrame, Layout]:
        """Return all rows read; a column whose types differ from block to block becomes text."""
        if self.found:
            assign_roles(list(self.found), file=self.file, columns=self.columns, is_surely_header=False)
        names = {role: self.names[role] for role in ROLES if role in self.names} or {"user": "user", "query": "query"}
        carried = carried_names(list(self.found), names=names)
        inside = in_role_order((*names, *carried.values()))
        types: dict[str, set[pl.DataType]] = {name: set() for name in inside}
        for frame in self.frames:
            for name, dtype in frame.schema.items():
                types[name].add(dtype)
        settled = {name: ROLES.get(name) or _common(types[name]) for name in inside}
        parts = [pl.DataFrame(schema=settled)]
        for frame in self.frames:
            parts.append(frame.cast({name: settled[name] for name in frame.columns}))
        layout = Layout(
            format=Format.JSONL,
            names=names,
            columns=tuple(self.found) or tuple(names.values()),
            time_format=merge_formats(sorted(self.time_formats)),
            compression=self.compression,
        )
        return pl.concat(parts, how="diagonal", rechunk=False).select(inside), layout


def as_text(value: object) -> str | None:
    """Return text as it is, anything else as its JSON; null stays missing."""
    return value if value is None or isinstance(value, str) else msgspec.json.encode(value).decode()


def _typed_series(values: list[Any]) -> pl.Series:
    kinds = set(map(type, values)) - {type(None)}
    if kinds == {str}:
        return pl.Series(values, dtype=pl.String)
    try:
        if kinds <= {bool} or kinds <= {int} or kinds <= {float}:
            return pl.Series(values, dtype=_SCALARS[next(iter(kinds))] if kinds else pl.Null())
    except (OverflowError, TypeError, pl.exceptions.PolarsError):
        pass
    return pl.Series([as_text(value) for value in values], dtype=pl.String)


def _common(types: set[pl.DataType]) -> pl.DataType:
    known = types - {pl.Null()}
    return next(iter(known)) if len(known) == 1 else pl.String()
