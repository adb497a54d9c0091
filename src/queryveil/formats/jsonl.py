"""JSON lines: one object per line, its keys the columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
import polars as pl

from queryveil.formats.bad_rows import Tally
from queryveil.formats.delimited import in_role_order, report, structural_faults
from queryveil.formats.records import LINES, Records, split
from queryveil.formats.roles import assign_roles, carried_names
from queryveil.formats.streams import ByteStream
from queryveil.formats.times import format_of, merge_formats
from queryveil.formats.values import REASONS, type_columns
from queryveil.log import ROLES, Format, Layout

NOT_JSON, NOT_OBJECT, NOT_TEXT = 104, 105, 106
JSON_REASONS: Mapping[int, str] = {
    **REASONS,
    NOT_JSON: "this is not JSON",
    NOT_OBJECT: "this is JSON but not an object",
    NOT_TEXT: "the query, user or url is not text",
}

_SCALARS: Mapping[type, pl.DataType] = {bool: pl.Boolean(), int: pl.Int64(), float: pl.Float64()}

_decoder = msgspec.json.Decoder()


def decode_lines(records: Records, *, wrong: np.ndarray[Any, np.dtype[np.uint8]]) -> list[dict[str, Any]]:
    """Decode the sound lines into objects; the others' faults go into `wrong`."""
    data, objects = records.data.tobytes(), []
    latin1 = records.is_latin1
    for i in np.flatnonzero(wrong == 0).tolist():
        line = data[records.starts[i, 0] : records.ends[i, 0]]
        try:
            value = _decoder.decode(line.decode("latin-1") if latin1[i] else line)
        except (ValueError, RecursionError):
            wrong[i] = NOT_JSON
            continue
        if isinstance(value, dict):
            objects.append(value)
        else:
            wrong[i] = NOT_OBJECT
    return objects


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

    def add(self, stream: ByteStream) -> None:
        """Read one file."""
        self.compression = self.compression or stream.compression
        for records in split(stream, dialect=LINES, n_columns=1):
            wrong = structural_faults(records, n_columns=1)
            objects = decode_lines(records, wrong=wrong)
            if objects:
                self._read(objects, wrong=wrong, file=stream.name)
            self.tally.n_latin1 += int((records.is_latin1 & (wrong == 0)).sum())
            if wrong.any():
                report(self.tally, file=stream.name, records=records, wrong=wrong, reasons=JSON_REASONS)

    def _read(self, objects: list[dict[str, Any]], *, wrong: Any, file: str) -> None:
        for one in objects:
            if not one.keys() <= self.found.keys():
                self.found.update(dict.fromkeys(one))
        self.names = assign_roles(list(self.found), file=file, columns=self.columns)
        carried = carried_names(list(self.found), names=self.names)
        text: dict[str, pl.Series] = {}
        not_text = np.zeros(len(objects), dtype=np.bool_)
        for role, name in self.names.items():
            values = [one.get(name) for one in objects]
            if role in ("query", "url"):
                not_text |= [value is not None and not isinstance(value, str) for value in values]
            elif role == "user":
                not_text |= [isinstance(value, bool | list | dict) for value in values]
            text[role] = pl.Series([as_text(value) for value in values], dtype=pl.String)
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
        """Give all rows read; a column whose types differ from block to block becomes text."""
        names = self.names or {"user": "user", "query": "query"}
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
    """Give text as it is, anything else as its JSON; null stays missing."""
    return value if value is None or isinstance(value, str) else msgspec.json.encode(value).decode()


def _typed_series(values: list[Any]) -> pl.Series:
    kinds = {type(value) for value in values if value is not None}
    try:
        if kinds <= {bool} or kinds <= {int} or kinds <= {float}:
            return pl.Series(values, dtype=_SCALARS[next(iter(kinds))] if kinds else pl.Null())
    except (OverflowError, TypeError, pl.exceptions.PolarsError):
        pass
    return pl.Series([as_text(value) for value in values], dtype=pl.String)


def _common(types: set[pl.DataType]) -> pl.DataType:
    known = types - {pl.Null()}
    return next(iter(known)) if len(known) == 1 else pl.String()
