"""Events as JSON, one object a line: only the keys that are needed are looked at."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from itertools import islice
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
import polars as pl

from queryveil.formats.delimited import structural_faults
from queryveil.formats.jsonl import NEVER_TEXT, NOT_JSON, NOT_TEXT, as_text
from queryveil.formats.records import LINES, Records, split
from queryveil.formats.roles import add_roles, assign_roles, carried_names
from queryveil.formats.values import type_columns
from queryveil.kernels.arrays import Bools, Bytes, Int64s
from queryveil.log import ROLES, Format, Layout

_N_LOOKED_AT = 1000
_TEXT = {str, type(None)}
_WHOLE_NUMBERS = {int, type(None)}

encode = msgspec.json.Encoder().encode


def find_layout(data: bytes, *, names: Mapping[str, str], source: str) -> Layout | None:
    """Find which keys play which role; None if no line is an object."""
    found: dict[str, None] = {}
    first: dict[str, str] = {}
    # However much garbage comes before them, these are the lines that can tell.
    objects = (line for line in data.split(b"\n") if line.lstrip().startswith(b"{"))
    for line in islice(objects, _N_LOOKED_AT):
        value = _value(line)
        if isinstance(value, dict):
            add_roles(first, [key for key in value if key not in found], columns=names)
            found.update(dict.fromkeys(value))
    if not found:
        return None
    assign_roles(list(found), file=source, columns=names, is_surely_header=False, may_lack=True)
    roles = {role: first[role] for role in ROLES if role in first}
    return Layout(format=Format.JSONL, names=roles, columns=tuple(found), has_header=False)


def _value(line: bytes) -> object:
    """Give what a line holds, also if it is Latin-1; None if it is no JSON."""
    for text in (line, line.decode("latin-1")):
        try:
            return msgspec.json.decode(text)
        except (ValueError, RecursionError):
            continue
    return None


def events_schema(keep: tuple[str, ...]) -> dict[str, pl.DataType]:
    """Give the columns of events; what is kept without a role is text, in JSON its JSON."""
    others = {name: ROLES.get(name, pl.String()) for name in keep}
    return {"user": pl.String(), "query": pl.String(), **others}


@lru_cache(maxsize=8)
def _decoder(keys: tuple[str, ...]) -> msgspec.json.Decoder[Any]:
    # Fields go by number, as a key may be no name of Python's.
    fields = [(f"f{i}", Any, None) for i in range(len(keys))]
    shape = msgspec.defstruct("Event", fields, rename={f"f{i}": key for i, key in enumerate(keys)})
    return msgspec.json.Decoder(shape)


def parse(data: bytes, *, layout: Layout | None, keep: tuple[str, ...]) -> tuple[pl.DataFrame, int, Int64s, Bytes]:
    """Give the events, how many lines there were, the numbers of bad ones, and the kinds of times seen."""
    schema = events_schema(keep)
    frames, bad, kinds, n_read = [pl.DataFrame(schema=schema)], [np.zeros(0, np.int64)], [np.zeros(0, np.uint8)], 0
    for records in split(iter([data]), dialect=LINES, n_columns=1):
        wrong = structural_faults(records, n_columns=1)
        n_read += len(wrong)
        if layout is None:
            wrong[:] = NOT_JSON
        else:
            frame, more_kinds = _events(records, layout=layout, schema=schema, wrong=wrong)
            frames.append(frame)
            kinds.append(more_kinds)
        bad.append(records.lines[wrong != 0])
    return pl.concat(frames, rechunk=False), n_read, np.concatenate(bad), np.concatenate(kinds)


def _events(
    records: Records, *, layout: Layout, schema: Mapping[str, pl.DataType], wrong: Bytes
) -> tuple[pl.DataFrame, Bytes]:
    roles = [role for role in ROLES if role in layout.names]
    outside = {inside: name for name, inside in carried_names(layout.columns, names=layout.names).items()}
    others = [name for name in schema if name not in ROLES]
    keys = (*(layout.names[role] for role in roles), *(outside.get(name, name) for name in others))
    events = _decode(records, _decoder(keys), wrong=wrong)
    text: dict[str, pl.Series] = {}
    not_text = np.zeros(len(events), dtype=np.bool_)
    for i, role in enumerate(roles):
        values = [*map(attrgetter(f"f{i}"), events)]
        column, is_refused = _text(values, role=role)
        not_text |= is_refused
        if role != "url" or role in schema:
            text[role] = column
    typed = type_columns(text)
    typed.wrong[not_text] = NOT_TEXT
    wrong[wrong == 0] = typed.wrong
    for i, name in enumerate(others, start=len(roles)):
        values = [None if value is None else encode(value).decode() for value in map(attrgetter(f"f{i}"), events)]
        typed.columns[name] = pl.Series(values, dtype=pl.String)
    absent = [pl.lit(None, dtype=schema[name]).alias(name) for name in schema if name not in typed.columns]
    return typed.frame().with_columns(absent).select(*schema), typed.time_kinds


def _text(values: list[Any], *, role: str) -> tuple[pl.Series, Bools | bool]:
    """Give values as text, and which of them are nothing that can stand in this role."""
    kinds = set(map(type, values))
    if kinds <= _TEXT:
        return pl.Series(values, dtype=pl.String), False
    if kinds <= _WHOLE_NUMBERS and int not in NEVER_TEXT[role]:
        try:
            return pl.Series(values, dtype=pl.Int64).cast(pl.String), False
        except (OverflowError, TypeError, pl.exceptions.PolarsError):
            # Larger than any column of numbers holds; as text it fits.
            pass
    refused = np.array([isinstance(value, NEVER_TEXT[role]) for value in values])
    return pl.Series([as_text(value) for value in values], dtype=pl.String), refused


def _decode(records: Records, decoder: msgspec.json.Decoder[Any], *, wrong: Bytes) -> list[Any]:
    """Give what the sound lines hold; the other lines' faults go into `wrong`."""
    data = records.data.tobytes()
    if not wrong.any() and not records.is_latin1.any():
        try:
            events = decoder.decode_lines(data)
        except (ValueError, RecursionError):
            events = []
        if len(events) == len(wrong):
            return events
    events = []
    starts, ends, latin1 = records.starts[:, 0].tolist(), records.ends[:, 0].tolist(), records.is_latin1.tolist()
    for i in np.flatnonzero(wrong == 0).tolist():
        line = data[starts[i] : ends[i]]
        try:
            events.append(decoder.decode(line.decode("latin-1") if latin1[i] else line))
        except (ValueError, RecursionError):
            wrong[i] = NOT_JSON
    return events
