"""Reading a query log from files, globs or stdin."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Protocol, TypeVar

import polars as pl

from queryveil.data import Format, Layout, QueryLog
from queryveil.errors import BadParameter, OtherFormat
from queryveil.formats import delimited
from queryveil.formats.delimited import DelimitedReader, Table
from queryveil.formats.jsonl import JsonlReader
from queryveil.formats.layouts import sniff
from queryveil.formats.parquet import ParquetReader
from queryveil.formats.plain import PlainReader
from queryveil.formats.records import BadRowPolicy, Tally
from queryveil.formats.roles import check_roles
from queryveil.formats.streams import ByteStream, Source, find_sources
from queryveil.formats.ubi import UbiReader

_Choice = TypeVar("_Choice", Format, BadRowPolicy)
_WITHOUT_NAMES = (Format.AOL, Format.EXCITE, Format.UBI, Format.TRANSACTIONS)


class _Reader(Protocol):
    def add(self, stream: ByteStream) -> None: ...

    def finish(self) -> tuple[pl.DataFrame, Layout]: ...


def read_log(
    source: Source,
    *,
    format: Format | str | None = None,  # noqa: A002
    columns: Mapping[str, str] | None = None,
    bad_rows: BadRowPolicy | str = BadRowPolicy.FAIL,
) -> QueryLog:
    """Read a query log: a path, a glob, a list of paths, or `-` for stdin.

    The format is told by ending and content unless given. `columns` names the column of a role (`{"user": "who"}`)
    in CSV, TSV, JSONL and Parquet; roles it leaves out are found by well-known names, where `""` stands for a role
    that no column has; every other column is carried along under its own name (`user_in_file` where that is the
    name of a role). Lines that are not UTF-8 are read as Latin-1 and counted. Times with a zone become UTC. In CSV and
    TSV an empty field is a missing value, in every format an empty url is; an empty query stays. A plain transaction
    file is read only when asked for (`format="transactions"`), because any text could be one: each line with items is a
    row, its number the user.
    """
    streams = (ByteStream(path) for path in find_sources(source))
    return _read(streams, format=format, columns=columns, bad_rows=bad_rows)


def read_bytes(
    data: bytes,
    *,
    name: str,
    format: Format | str | None = None,  # noqa: A002
    columns: Mapping[str, str] | None = None,
    bad_rows: BadRowPolicy | str = BadRowPolicy.FAIL,
) -> QueryLog:
    """Read the bytes of a file of that name as `read_log` would."""
    stream = (ByteStream(Path(name), data=one) for one in (data,))
    return _read(stream, format=format, columns=columns, bad_rows=bad_rows)


def _read(
    streams: Iterable[ByteStream],
    *,
    format: Format | str | None,  # noqa: A002
    columns: Mapping[str, str] | None,
    bad_rows: BadRowPolicy | str,
) -> QueryLog:
    asked = check_roles(columns)
    chosen = None if format is None else choose(Format, format, name="format")
    tally = Tally(policy=choose(BadRowPolicy, bad_rows, name="bad_rows"))
    if asked and chosen in _WITHOUT_NAMES:
        raise BadParameter("columns", ", ".join(asked), allowed=f"left out for {chosen}, whose columns are fixed")
    reader: _Reader | None = None
    for each in streams:
        with each as stream:
            found = chosen or sniff(stream, columns=asked)
            if reader is None:
                first, reader = found, _reader_of(found, tally=tally, columns=asked)
            elif found is not first:
                raise OtherFormat(stream.name, found, first=first)
            reader.add(stream)
    assert reader is not None
    reading = tally.close()
    frame, layout = reader.finish()
    return QueryLog(frame=frame, layout=layout, reading=reading)


class _Delimited:
    def __init__(self, look: Callable[[ByteStream], Table], *, tally: Tally) -> None:
        self._look, self._reader = look, DelimitedReader(tally=tally)

    def add(self, stream: ByteStream) -> None:
        self._reader.add(stream, table=self._look(stream))

    def finish(self) -> tuple[pl.DataFrame, Layout]:
        return self._reader.finish()


def _reader_of(format: Format, *, tally: Tally, columns: Mapping[str, str]) -> _Reader:  # noqa: A002
    match format:
        case Format.AOL:
            return _Delimited(delimited.look, tally=tally)
        case Format.EXCITE:
            return _Delimited(delimited.look_excite, tally=tally)
        case Format.CSV | Format.TSV:
            return _Delimited(lambda stream: delimited.look_csv(stream, format=format, columns=columns), tally=tally)
        case Format.JSONL:
            return JsonlReader(tally=tally, columns=columns)
        case Format.PARQUET:
            return ParquetReader(tally=tally, columns=columns)
        case Format.UBI:
            return UbiReader(tally=tally)
        case Format.TRANSACTIONS:
            return PlainReader(tally=tally)


def choose(kind: type[_Choice], value: str, *, name: str) -> _Choice:
    """Return the choice that a text names."""
    try:
        return kind(value)
    except ValueError:
        raise BadParameter(name, value, allowed=f"one of {', '.join(kind)}") from None
