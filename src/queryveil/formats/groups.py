"""Groups of profiles as a file: one JSON object a line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec
import polars as pl

from queryveil.errors import BadFile, BadInput
from queryveil.groups import SCHEMA, Groups

_Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]


class _Line(msgspec.Struct, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    group: _Count
    members: _Count
    size: _Count
    terms: dict[str, float]
    holders: dict[str, _Count] | None = None


def write_groups(groups: Groups, path: Path) -> None:
    """Write a group a line: its number, members, size, terms with weights, and holders where they are released."""
    with path.open("wb") as file:
        for line in encode_groups(groups.frame):
            file.write(line + b"\n")


def encode_groups(frame: pl.DataFrame) -> Iterator[bytes]:
    """Give the line of each group."""
    encoder = msgspec.json.Encoder()
    for number, members, size, terms, weights, holders in frame.select(list(SCHEMA)).iter_rows():
        line = _Line(
            group=number,
            members=members,
            size=size,
            terms=dict(zip(terms, weights, strict=True)),
            holders=None if holders is None else dict(zip(terms, holders, strict=True)),
        )
        yield encoder.encode(line)


def read_groups(*paths: Path) -> Groups:
    """Read the groups that `write_groups` has written, in one file or in several."""
    rows = [row for path in paths for row in _rows(path)]
    try:
        return Groups(frame=pl.DataFrame(rows, schema=SCHEMA, orient="row"))
    except BadInput as error:
        raise BadFile(paths[0].name, str(error)) from None


def _rows(path: Path) -> Iterator[tuple[object, ...]]:
    decoder = msgspec.json.Decoder(_Line)
    with path.open("rb") as file:
        for number, text in enumerate(file, start=1):
            try:
                line = decoder.decode(text)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                # Privacy: the cause would name terms, so it is dropped.
                raise BadFile(path.name, f"line {number} is not a group with members, size and terms") from None
            if line.holders is not None and line.holders.keys() != line.terms.keys():
                raise BadFile(path.name, f"line {number} has holders of other terms than it has")
            holders = None if line.holders is None else [line.holders[term] for term in line.terms]
            yield line.group, line.members, line.size, list(line.terms), list(line.terms.values()), holders
