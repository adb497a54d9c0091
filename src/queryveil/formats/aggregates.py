"""Read and write groups of profiles with their membership file, and counts of queries and clicks."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import Annotated, Any

import msgspec
import polars as pl

from queryveil.data import (
    CLICKS_SCHEMA,
    GROUPS_SCHEMA,
    MORE_CLICKS_SCHEMA,
    TALLIES_SCHEMA,
    Format,
    Groups,
    Layout,
    Tallies,
)
from queryveil.data.frames import read_parquet
from queryveil.errors import BadFile, BadInput, BadParameter
from queryveil.formats.atomic_folders import belonging, claimed, new_file
from queryveil.formats.layouts import extension, tabular_format
from queryveil.formats.shape import shape_of
from queryveil.formats.streams import Content
from queryveil.formats.write import write_frame

_Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]


class _Line(msgspec.Struct, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    group: _Count
    members: _Count
    size: _Count
    terms: dict[str, float]
    holders: dict[str, _Count] | None = None


def write_groups(groups: Groups, path: Path) -> None:
    """Write one line per group: number, members, size, terms with weights, and holders where they are released."""
    path.write_bytes(encode_groups(groups.frame))


def encode_groups(frame: pl.DataFrame) -> bytes:
    """Return the lines of groups."""
    lines = (
        _Line(
            group=number,
            members=members,
            size=size,
            terms=dict(zip(terms, weights, strict=True)),
            holders=None if holders is None else dict(zip(terms, holders, strict=True)),
        )
        for number, members, size, terms, weights, holders in frame.select(list(GROUPS_SCHEMA)).iter_rows()
    )
    return msgspec.json.Encoder().encode_lines(lines)


def read_groups(*files: Path | Content) -> Groups:
    """Read groups written by `write_groups`, in one file or several."""
    rows = [row for file in files for row in _rows(_content(file))]
    try:
        return Groups(frame=pl.DataFrame(rows, schema=GROUPS_SCHEMA, orient="row"))
    except BadInput as error:
        raise BadFile(files[0].name, str(error)) from None


def _content(file: Path | Content) -> Content:
    return file if isinstance(file, Content) else Content(file.name, file.read_bytes())


def _rows(file: Content) -> Iterator[tuple[object, ...]]:
    decoder = msgspec.json.Decoder(_Line)
    for number, text in enumerate(BytesIO(file.data), start=1):
        try:
            line = decoder.decode(text)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            # Privacy: the cause would name terms, so it is dropped.
            raise BadFile(file.name, f"line {number} is not a group with members, size and terms") from None
        if line.holders is not None and line.holders.keys() != line.terms.keys():
            raise BadFile(file.name, f"line {number} has holders of other terms than it has")
        holders = None if line.holders is None else [line.holders[term] for term in line.terms]
        yield line.group, line.members, line.size, list(line.terms), list(line.terms.values()), holders


_BY_ENDING = {".csv": Format.CSV, ".jsonl": Format.JSONL, ".parquet": Format.PARQUET}
_UNREADABLE = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, UnicodeDecodeError)


def check_membership(path: Path, *, release: Path, inputs: Sequence[str] = (), force: bool) -> None:
    """Raise if the membership file may not be written there; called before the work starts."""
    if path.suffix not in _BY_ENDING:
        raise BadParameter("membership", path.name, allowed="a file that ends in " + ", ".join(_BY_ENDING))
    # Privacy: a folder that is given away must not hold it.
    if release.resolve() in (path.resolve(), *path.resolve().parents):
        raise BadParameter("membership", path.name, allowed="a file outside the release folder, which others will get")
    if not path.resolve().parent.is_dir():
        raise BadParameter("membership", path.name, allowed="a file in a folder that is there")
    if any(Path(name).exists() and path.exists() and path.samefile(name) for name in inputs):
        raise BadParameter("membership", path.name, allowed="another file than the one that is read")
    if os.path.lexists(path) and not (force and path.is_file()):
        raise BadFile(str(path), "is already there; choose another name for the membership, or replace it with --force")


@contextmanager
def written_membership(membership: pl.DataFrame, path: Path) -> Iterator[dict[Path, Path]]:
    """Write the membership with permissions for its owner only, to be renamed with its release.

    Yield the file as it is called until then, and its name. It is gone when the block ends, unless it was renamed.
    """
    partial = path.with_name(f".{path.name}.partial")
    with claimed(path):
        try:
            writers: dict[str, Any] = {".parquet": membership.write_parquet, ".jsonl": membership.write_ndjson}
            with new_file(partial, replace=True, so="nothing was released") as file:
                writers.get(path.suffix, membership.write_csv)(file)
            yield {partial: path}
        finally:
            with suppress(OSError):
                partial.unlink(missing_ok=True)


def read_membership(path: Path, *, release: Path | None = None) -> pl.DataFrame:
    """Return the membership: the columns user (text) and group (number); `release` is the folder that it belongs to."""
    path = path if release is None else belonging(path, release)
    schema = {"user": pl.String(), "group": pl.Int64()}
    try:
        return _read_columns(path.read_bytes(), schema, format=_BY_ENDING.get(path.suffix, Format.CSV))
    except FileNotFoundError:
        raise BadFile(str(path), "there is no such file") from None
    except _UNREADABLE:
        # Privacy: the cause may quote ids, so it is dropped.
        raise BadFile(str(path), "is not a membership file with the columns user and group") from None


def tallies_layout(layout: Layout) -> Layout:
    """Return the layout in which tallies of a log of this layout are released: Parquet, JSON lines, CSV or TSV.

    >>> tallies_layout(Layout(format=Format.AOL, compression="gz")).format
    <Format.TSV: 'tsv'>
    """
    return Layout(format=tabular_format(layout.format))


def write_tallies(tallies: Tallies, folder: Path) -> tuple[Path, Path | None]:
    """Write `queries` and, if there are any, `clicks` into a folder; return the paths of both files."""
    layout = tallies_layout(tallies.layout)
    queries = folder / f"queries.{extension(layout)}"
    write_frame(tallies.frame, queries, layout=layout)
    if tallies.clicks is None:
        return queries, None
    clicks = folder / f"clicks.{extension(layout)}"
    write_frame(tallies.clicks, clicks, layout=layout)
    return queries, clicks


def read_tallies(queries: Path | Content, *, clicks: Path | Content | None, format: Format) -> Tallies:  # noqa: A002
    """Read the files that `write_tallies` has written."""
    layout = Layout(format=format)
    frame = _read(_content(queries), TALLIES_SCHEMA, format=format)
    pairs = None if clicks is None else _read_clicks(_content(clicks), format=format)
    try:
        return Tallies(frame=frame, clicks=pairs, layout=layout)
    except BadInput as error:
        raise BadFile(queries.name, str(error)) from None


def _read_clicks(file: Content, *, format: Format) -> pl.DataFrame:  # noqa: A002
    there = shape_of(file, format=format).columns
    more = {name: kind for name, kind in MORE_CLICKS_SCHEMA.items() if name in there}
    return _read(file, {**CLICKS_SCHEMA, **more}, format=format)


def _read(file: Content, schema: Mapping[str, pl.DataType], *, format: Format) -> pl.DataFrame:  # noqa: A002
    try:
        return _read_columns(file.data, dict(schema), format=format)
    except _UNREADABLE:
        # Privacy: the cause would quote a row, so it is dropped.
        raise BadFile(file.name, f"it cannot be read as {format} with the columns {', '.join(schema)}") from None


def _read_columns(data: bytes, schema: dict[str, pl.DataType], *, format: Format) -> pl.DataFrame:  # noqa: A002
    if format is Format.PARQUET:
        return read_parquet(BytesIO(data)).select(pl.col(name).cast(kind) for name, kind in schema.items())
    if format is Format.JSONL:
        return pl.read_ndjson(BytesIO(data), schema=schema) if data.strip() else pl.DataFrame(schema=schema)
    by_tabs: dict[str, Any] = {} if format is Format.CSV else {"separator": "\t", "quote_char": None}
    return pl.read_csv(BytesIO(data), schema=schema, **by_tabs)
