"""AOL's 2006 log: user, query, time, rank and clicked URL, separated by tabs; a header or none."""

from __future__ import annotations

from queryveil.formats.delimited import TAB_SEPARATED, Table
from queryveil.formats.records import first_record
from queryveil.formats.streams import ByteStream
from queryveil.formats.times import SECONDS
from queryveil.log import Format, Layout

NAMES = {"user": "AnonID", "query": "Query", "time": "QueryTime", "rank": "ItemRank", "url": "ClickURL"}
LAYOUT = Layout(format=Format.AOL, names=NAMES, columns=tuple(NAMES.values()), time_format=SECONDS)


def is_header(fields: list[str]) -> bool:
    """Say whether this is AOL's header.

    >>> is_header(["AnonID", "Query", "QueryTime", "ItemRank", "ClickURL"])
    True
    """
    return [name.strip().lower() for name in fields] == [name.lower() for name in NAMES.values()]


def is_header_line(line: bytes) -> bool:
    r"""Say whether these bytes are AOL's header.

    >>> is_header_line(b"AnonID\tQuery\tQueryTime\tItemRank\tClickURL\r")
    True
    """
    return is_header(line.decode("latin-1").split("\t"))


def look(stream: ByteStream) -> Table:
    """See whether an AOL file has a header."""
    has_header = is_header(first_record(stream, dialect=TAB_SEPARATED))
    layout = Layout(
        format=Format.AOL,
        names=NAMES,
        columns=tuple(NAMES.values()),
        has_header=has_header,
        time_format=SECONDS,
        compression=stream.compression,
    )
    return Table(dialect=TAB_SEPARATED, inside=tuple(NAMES), layout=layout)
