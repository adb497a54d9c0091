"""Excite's 1997 log: user, time as yyMMddHHmmss and query, separated by tabs, no header."""

from __future__ import annotations

from queryveil.formats.delimited import TAB_SEPARATED, Table
from queryveil.formats.streams import ByteStream
from queryveil.formats.times import COMPACT
from queryveil.log import Format, Layout

COLUMNS = ("user", "time", "query")


def layout(compression: str = "") -> Layout:
    """Give the layout that every Excite file has."""
    return Layout(
        format=Format.EXCITE,
        names={name: name for name in COLUMNS},
        columns=COLUMNS,
        has_header=False,
        time_format=COMPACT,
        compression=compression,
    )


def look(stream: ByteStream) -> Table:
    """Take an Excite file as it is: there is nothing to find out."""
    return Table(dialect=TAB_SEPARATED, inside=COLUMNS, layout=layout(stream.compression), has_compact_times=True)
