"""Read JSON lines as a log: one object per line, its keys the columns."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
import polars as pl
from msgspec import UNSET

from queryveil.data import ROLES, Bools, Bytes, Format, Layout
from queryveil.formats import roles, streams
from queryveil.formats.records import Reader, Records, read_records
from queryveil.formats.values import REASONS, Typed, merge_formats, type_columns

NOT_JSON, NOT_OBJECT, NOT_TEXT = 104, 105, 106
JSON_REASONS: Mapping[int, str] = {
    **REASONS,
    NOT_JSON: "this is not JSON",
    NOT_OBJECT: "this is JSON but not an object",
    NOT_TEXT: "the query, user or url is not text",
}

_SCALARS: Mapping[type, pl.DataType] = {bool: pl.Boolean(), int: pl.Int64(), float: pl.Float64()}
_TEXT, _WHOLE_NUMBERS = {str, type(None)}, {int, type(None)}
NEVER_TEXT: Mapping[str, tuple[type, ...]] = {
    "user": (bool, list, dict),
    "query": (bool, int, float, list, dict),
    "time": (),
    "rank": (),
    "url": (bool, int, float, list, dict),
    **dict.fromkeys(("device", "country", "language", "search"), ()),
}

_objects = msgspec.json.Decoder(dict[str, Any])


def iter_objects(records: Records, *, wrong: Bytes, decoder: msgspec.json.Decoder[Any] = _objects) -> Iterator[Any]:
    """Decode the lines without a fault one by one, by default into dicts; the faults of others go into `wrong`."""
    data = records.data.tobytes()
    starts, ends, latin1 = records.starts[:, 0].tolist(), records.ends[:, 0].tolist(), records.is_latin1.tolist()
    for i in np.flatnonzero(wrong == 0).tolist():
        line = data[starts[i] : ends[i]]
        text = line.decode("latin-1") if latin1[i] else line
        try:
            value = decoder.decode(text)
        except (ValueError, RecursionError):
            wrong[i] = NOT_JSON if json_value(text) is UNSET else NOT_OBJECT
        else:
            yield value


def decode_lines(records: Records, *, wrong: Bytes, decoder: msgspec.json.Decoder[Any] = _objects) -> list[Any]:
    """Return what `iter_objects` yields, in one call of the decoder where every line is sound."""
    if len(wrong) and not wrong.any() and not records.is_latin1.any():
        with suppress(ValueError, RecursionError):
            objects = decoder.decode_lines(records.data[records.starts[0, 0] : records.ends[-1, 0]].tobytes())
            if len(objects) == len(wrong):
                return objects
    return list(iter_objects(records, wrong=wrong, decoder=decoder))


def json_value(text: str | bytes) -> Any:
    """Return the value of a text of JSON, and `UNSET` for any other text."""
    try:
        return msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return UNSET


def add_keys(
    objects: Iterable[dict[str, Any]],
    *,
    found: dict[str, None],
    names: dict[str, str],
    columns: Mapping[str, str],
    file: str,
) -> None:
    """Add the keys of these objects to `found`, and to `names` the roles they play, which stay with their first key."""
    for one in objects:
        if not one.keys() <= found.keys():
            roles.add_roles(names, [key for key in one if key not in found], columns=columns)
            found.update(dict.fromkeys(one))
    roles.check_width(found, file=file)
    roles.assign_roles(list(found), file=file, columns=columns, is_surely_header=False, may_lack=True)


def type_roles(values: Mapping[str, list[Any]]) -> Typed:
    """Return decoded values, by role, as columns of the types of their roles; wrong where one is not text."""
    text: dict[str, pl.Series] = {}
    not_text = np.zeros(len(values["user"]), dtype=np.bool_)
    for role, column in values.items():
        text[role], is_refused = _text(column, role=role)
        not_text |= is_refused
    typed = type_columns(text)
    typed.wrong[not_text] = NOT_TEXT
    return typed


def _text(values: list[Any], *, role: str) -> tuple[pl.Series, Bools | bool]:
    """Return values as text, and which of them are of a type that this role cannot have."""
    kinds = set(map(type, values))
    if kinds <= _TEXT:
        return pl.Series(values, dtype=pl.String), False
    if kinds <= _WHOLE_NUMBERS and int not in NEVER_TEXT[role]:
        # Larger than any column of numbers holds, they still fit as text below.
        with suppress(OverflowError, TypeError, pl.exceptions.PolarsError):
            return pl.Series(values, dtype=pl.Int64).cast(pl.String), False
    is_refused = np.array([isinstance(value, NEVER_TEXT[role]) for value in values])
    return pl.Series([as_text(value) for value in values], dtype=pl.String), is_refused


@dataclass(slots=True, kw_only=True)
class JsonlReader(Reader):
    """Reads JSON-lines files; keys may come and go from line to line."""

    found: dict[str, None] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    file: str = ""

    def add(self, stream: streams.ByteStream) -> None:
        self.file = stream.name
        for records, wrong in read_records(stream, tally=self.tally, reasons=JSON_REASONS):
            objects = decode_lines(records, wrong=wrong)
            if objects:
                self._read(objects, wrong=wrong)

    def _read(self, objects: list[dict[str, Any]], *, wrong: Bytes) -> None:
        add_keys(objects, found=self.found, names=self.names, columns=self.columns, file=self.file)
        typed = type_roles({role: [one.get(name) for one in objects] for role, name in self.names.items()})
        for name, inside in roles.frame_names(list(self.found), names=self.names).items():
            if inside not in ROLES:
                typed.columns[inside] = _typed_series([one.get(name) for one in objects], wrong=typed.wrong)
        self.take(typed, wrong=wrong)

    def finish(self) -> tuple[pl.DataFrame, Layout]:
        """Return all rows read; a column whose types differ from block to block becomes text."""
        if self.found:
            roles.assign_roles(list(self.found), file=self.file, columns=self.columns, is_surely_header=False)
        names = {role: self.names[role] for role in ROLES if role in self.names} or {"user": "user", "query": "query"}
        inside = roles.in_role_order(roles.frame_names(list(self.found), names=names).values())
        schemas = [frame.schema for frame in self.frames]
        settled = {name: ROLES.get(name) or _common(schema.get(name) for schema in schemas) for name in inside}
        parts = [frame.cast({name: settled[name] for name in frame.columns}) for frame in self.frames]
        layout = Layout(
            format=Format.JSONL,
            names=names,
            columns=tuple(self.found) or tuple(names.values()),
            time_format=merge_formats(self.time_formats),
            compression=self.compression,
        )
        return pl.concat([pl.DataFrame(schema=settled), *parts], how="diagonal", rechunk=False).select(inside), layout


TOO_DEEP = "nested too deeply"
"""In place of lists in lists that could be read just so, but cannot be written again; a row with it is bad."""


def as_text(value: object) -> str | None:
    """Return text as it is, anything else as its JSON; null stays missing."""
    return value if value is None or isinstance(value, str) else json_text(value)


def json_text(value: object) -> str:
    """Return a value as JSON, or `TOO_DEEP`."""
    try:
        return msgspec.json.encode(value).decode()
    except RecursionError:
        return TOO_DEEP


def note_too_deep(texts: Iterable[str | None], *, wrong: Bytes) -> None:
    """Note rows with a text that is `TOO_DEEP` as bad."""
    for i, text in enumerate(texts):
        if text is TOO_DEEP:
            wrong[i] = NOT_JSON


def scalar_as_text(value: object) -> str | None:
    """Return text or a number as text; nothing for any other value."""
    return None if isinstance(value, bool | list | dict) else as_text(value)


def _typed_series(values: list[Any], *, wrong: Bytes) -> pl.Series:
    kinds = set(map(type, values)) - {type(None)}
    if kinds == {str}:
        return pl.Series(values, dtype=pl.String)
    try:
        if kinds <= {bool} or kinds <= {int} or kinds <= {float}:
            return pl.Series(values, dtype=_SCALARS[next(iter(kinds))] if kinds else pl.Null())
    except (OverflowError, TypeError, pl.exceptions.PolarsError):
        pass
    texts = [as_text(value) for value in values]
    note_too_deep(texts, wrong=wrong)
    return pl.Series(texts, dtype=pl.String)


def _common(types: Iterable[pl.DataType | None]) -> pl.DataType:
    """Return the type that all blocks with values in a column have; text where they differ."""
    known = {dtype for dtype in types if dtype is not None and dtype != pl.Null}
    return known.pop() if len(known) == 1 else pl.String()
