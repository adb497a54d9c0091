"""Read a query log from files, globs or stdin, in the format detected or given."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

import polars as pl

from queryveil.data import Format, Layout, QueryLog, Reading
from queryveil.errors import BadParameter, OtherFormat
from queryveil.formats import _ubi, delimited, jsonl, layouts, parquet, roles
from queryveil.formats.records import BadRowPolicy, Reader, Tally
from queryveil.formats.streams import ByteStream, Content, Source, open_streams

_Choice = TypeVar("_Choice", bound=StrEnum)
_FIXED_COLUMNS = (Format.AOL, Format.EXCITE, Format.UBI, Format.TRANSACTIONS)
_READERS: Mapping[Format, type[Reader]] = {
    Format.JSONL: jsonl.JsonlReader,
    Format.PARQUET: parquet.ParquetReader,
    Format.UBI: _ubi.UbiReader,
    Format.TRANSACTIONS: delimited.PlainReader,
}
"""Files of any other format are delimited text."""


def read_log(
    source: Source | Sequence[Content],
    *,
    format: Format | str | None = None,  # noqa: A002
    columns: Mapping[str, str] | None = None,
    bad_rows: BadRowPolicy | str = BadRowPolicy.FAIL,
) -> QueryLog:
    """Read a query log: a path, a glob, a list of paths, or `-` for stdin.

    Lines that are not UTF-8 are read as Latin-1 and counted. Times with a zone become UTC. In CSV and TSV an empty
    field is a missing value, in every format an empty url is; an empty query stays. Columns without a role are carried
    along under their own name (`user_in_file` where that is the name of a role). OpenSearch UBI gives one row for each
    query document, and everything that people did with the results as `events`.

    - `source`: the path, glob or paths, or files that were read already. No file may be named twice.
    - `format`: the format of the files; by default it is detected from the file's ending and content. Plain transaction
      files are never detected, because any text could be one: with `format="transactions"` each line with items is a
      row, and its line number the user.
    - `columns`: the column of a role (`{"user": "client"}`) in CSV, TSV, JSONL and Parquet; `""` for a role that no
      column has. Roles left out are found by well-known names.
    - `bad_rows`: `fail` raises `BadRows` where rows cannot be read; `skip` leaves them out and counts them.
    """
    asked = roles.check_roles(columns)
    chosen = None if format is None else parse_choice(Format, format, name="format")
    tally = Tally(policy=parse_choice(BadRowPolicy, bad_rows, name="bad_rows"))
    if asked and chosen in _FIXED_COLUMNS:
        raise BadParameter("columns", ", ".join(asked), allowed=f"left out for {chosen}, whose columns are fixed")
    log = read_streams(
        open_streams(source),
        detect=lambda stream: chosen or layouts.sniff(stream, columns=asked),
        reader_for=lambda found: _READERS.get(found, delimited.DelimitedReader)(
            tally=tally, format=found, columns=asked
        ),
    )
    return QueryLog(frame=log.frame, layout=log.layout, reading=log.reading, events=log.events)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Found:
    """What was read: rows, how they were written, what had to be done to read them, and events where there are some."""

    frame: pl.DataFrame
    layout: Layout
    reading: Reading
    events: pl.DataFrame | None = None


def read_streams(
    streams: Iterable[ByteStream],
    *,
    detect: Callable[[ByteStream], Format],
    reader_for: Callable[[Format], Reader],
) -> Found:
    """Read all streams with one reader, that of the first stream's format; raise if another has a different format."""
    reader: Reader | None = None
    for each in streams:
        with each as stream:
            found = detect(stream)
            if reader is None:
                first, reader = found, reader_for(found)
            elif found is not first:
                raise OtherFormat(stream.name, found, first=first)
            reader.compression = reader.compression or stream.compression
            reader.add(stream)
    assert reader is not None
    reading = reader.tally.close()
    frame, layout = reader.finish()
    return Found(frame=frame, layout=layout, reading=reading, events=reader.events)


def parse_choice(kind: type[_Choice], value: str, *, name: str) -> _Choice:
    """Return the member of an enumeration that a text names; raise `BadParameter` if there is none."""
    try:
        return kind(value)
    except ValueError:
        raise BadParameter(name, value, allowed=f"one of {', '.join(kind)}") from None
