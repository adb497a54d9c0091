"""CSV (RFC 4180: quotes matter) and TSV (they do not), both with a header."""

from __future__ import annotations

from collections.abc import Mapping

from queryveil.errors import BadFile
from queryveil.formats.delimited import COMMA_SEPARATED, TAB_SEPARATED, Table
from queryveil.formats.records import first_record
from queryveil.formats.roles import assign_roles, carried_names
from queryveil.formats.streams import ByteStream
from queryveil.log import Format, Layout


def look(stream: ByteStream, *, format: Format, columns: Mapping[str, str]) -> Table:  # noqa: A002
    """Read the header and find the roles in it."""
    dialect = COMMA_SEPARATED if format is Format.CSV else TAB_SEPARATED
    found = first_record(stream, dialect=dialect)
    if not found:
        raise BadFile(stream.name, "it has no header that can be read; its first line must name its columns")
    names = assign_roles(found, file=stream.name, columns=columns, is_surely_header=False)
    inside = {name: role for role, name in names.items()} | carried_names(found, names=names)
    layout = Layout(format=format, names=names, columns=tuple(found), compression=stream.compression)
    return Table(dialect=dialect, inside=tuple(inside[name] for name in found), layout=layout)
