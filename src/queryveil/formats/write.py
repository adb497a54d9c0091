"""Write a query log in its own layout or another one, byte for byte reproducibly."""

import bz2
import gzip
import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from queryveil.data import ROLES, Format, Layout, QueryLog
from queryveil.errors import BadInput, NotWritten
from queryveil.formats import _ubi, delimited, roles
from queryveil.formats.values import ISO_ZONED, write_times

_SLICE_ROWS = 1 << 19
_FIXED = {Format.AOL: delimited.AOL_NAMES, Format.EXCITE: delimited.EXCITE_NAMES}
_WITHOUT_HEADER = (Format.EXCITE, Format.JSONL, Format.UBI, Format.TRANSACTIONS)
_FORMULA = r"\A[=+\-@\t\r]"
_UTF8_MARK = b"\xef\xbb\xbf"


def write_log(log: QueryLog, path: Path, *, layout: Layout | None = None) -> None:
    """Write a log to a file, by default in its own layout.

    AOL and Excite files always have all their columns, empty where the log lacks them; other formats have the columns
    of the log. Tabs, line ends and NUL inside a value become blanks where the format cannot hold them. Excite holds
    whole seconds. A plain transaction file has one line per user with the items of all the user's queries. A log
    without rows is written as a header, or as a blank line where the format has none. Events are written as UBI alone.
    """
    layout = layout or log.layout
    check_users(log.frame["user"], layout=layout)
    check_events(log, layout=layout)
    events = None if log.events is None else _ubi.placed(log.events, log.frame)
    write_frame(arrange(log.frame, layout=layout), path, layout=layout, events=events)


def check_events(log: QueryLog, *, layout: Layout) -> None:
    """Raise if the log has events, and the format has no place for them."""
    if log.events is not None and layout.format is not Format.UBI:
        raise BadInput(f"{layout.format} has no events; write UBI, or log.with_clicks_as_rows() for the clicks alone")


def check_users(users: pl.Series, *, layout: Layout) -> None:
    """Raise if the format would change user ids, which could merge two users."""
    if layout.format in (Format.PARQUET, Format.JSONL, Format.UBI, Format.TRANSACTIONS):
        return
    unwanted = "[\0]" if layout.format is Format.CSV else "[\0\t\n\r]"
    if users.str.contains(unwanted).any():
        raise BadInput(f"user ids hold tabs, line ends or NUL, which {layout.format} cannot hold; give users fresh ids")


def write_frame(frame: pl.DataFrame, path: Path, *, layout: Layout, events: pl.DataFrame | None = None) -> None:
    """Write columns that already have their names and order in the file; remove the file if writing fails.

    `events` are those of UBI, as they are `placed`.
    """
    try:
        _write(frame, path, layout=layout, events=events)
    except OSError as error:
        if path.is_file():
            path.unlink()
        raise NotWritten(path.name, os.strerror(error.errno) if error.errno else type(error).__name__) from None


def _write(frame: pl.DataFrame, path: Path, *, layout: Layout, events: pl.DataFrame | None) -> None:
    if layout.format is Format.PARQUET:
        schema = frame.clear().to_arrow().schema
        with path.open("wb") as raw, pq.ParquetWriter(raw, schema, compression="zstd") as writer:
            for begin in range(0, frame.height, _SLICE_ROWS):
                writer.write_table(frame.slice(begin, _SLICE_ROWS).to_arrow())
        return
    with _compressed(path, compression=layout.compression) as file:
        if not frame.height and layout.format in _WITHOUT_HEADER:
            file.write(b"\n")
        for begin in range(0, max(frame.height, 1), _SLICE_ROWS):
            part = frame.slice(begin, _SLICE_ROWS)
            if events is not None:
                file.write(_ubi.encode(part, first_id=begin + 1, events=events))
                continue
            file.write(double_byte_order_mark(encode_rows(part, layout=layout, begin=begin), begin=begin))
        if events is not None:
            file.write(_ubi.encode_others(events))


def double_byte_order_mark(data: bytes, *, begin: int) -> bytes:
    """Return encoded rows with a byte order mark doubled if the file's first value begins with one."""
    # Readers drop a mark at the start of a file, so one that belongs to the text is written twice.
    return _UTF8_MARK + data if begin == 0 and data.startswith(_UTF8_MARK) else data


def count_formulas(frame: pl.DataFrame, *, layout: Layout) -> int:
    """Return how many texts a spreadsheet would take for a formula if it opened them as this layout; 0 for JSON lines.

    >>> count_formulas(pl.DataFrame({"query": ["=1+1", "@home", "a=b"]}), layout=Layout(format=Format.CSV))
    2
    """
    if layout.format not in (Format.AOL, Format.EXCITE, Format.CSV, Format.TSV):
        return 0
    texts = frame.select(pl.col(pl.String).str.contains(_FORMULA).sum())
    return int(sum(texts.row(0))) if texts.width else 0


def arrange(frame: pl.DataFrame, *, layout: Layout) -> pl.DataFrame:
    """Return the columns with their names and order in the file, and times as they are written."""
    if layout.format is not Format.PARQUET and "time" in frame.columns:
        # The schema of UBI has one way to write times.
        time_format = ISO_ZONED if layout.format is Format.UBI else layout.time_format
        frame = frame.with_columns(write_times(frame["time"], time_format=time_format))
    if layout.format is Format.TRANSACTIONS:
        return delimited.gather_users(frame)
    if layout.format is Format.UBI:
        return frame.select([role for role in ROLES if role in frame.columns])
    fixed = _FIXED.get(layout.format)
    if fixed is not None:
        absent = [pl.lit(None, dtype=pl.String).alias(role) for role in fixed if role not in frame.columns]
        return frame.with_columns(absent).select(pl.col(role).alias(name) for role, name in fixed.items())
    outside = {inside: name for name, inside in roles.frame_names(layout.columns, names=layout.names).items()}
    names = {inside: outside.get(inside, inside) for inside in frame.columns}
    # A column that came into the log later may be called as one of the file's is.
    for inside in frame.columns:
        while list(names.values()).count(names[inside]) > 1 and inside not in outside:
            names[inside] += "_in_log"
    places = {name: place for place, name in enumerate(layout.columns)}
    order = sorted(frame.columns, key=lambda inside: places.get(names[inside], len(places)))
    return frame.select(pl.col(inside).alias(names[inside]) for inside in order)


def encode_rows(part: pl.DataFrame, *, layout: Layout, begin: int) -> bytes:
    """Encode arranged rows; the header comes first where `begin` is 0."""
    has_header = begin == 0 and (layout.has_header or (layout.format is Format.AOL and not part.height))
    match layout.format:
        case Format.TRANSACTIONS:
            return delimited.encode_items(part["items"])
        case Format.UBI:
            return _ubi.encode(part, first_id=begin + 1)
        case Format.JSONL:
            return b"".join(msgspec.json.encode(row) + b"\n" for row in part.iter_rows(named=True))
        case Format.CSV:
            return _as_text(part, unwanted="\0").write_csv(include_header=has_header).encode()
        case _:
            clean = _as_text(part, unwanted="\0\t\n\r")
            return clean.write_csv(separator="\t", quote_style="never", include_header=has_header).encode()


def _as_text(part: pl.DataFrame, *, unwanted: str) -> pl.DataFrame:
    table = str.maketrans(dict.fromkeys(unwanted, " "))
    return pl.DataFrame([_clean(column, unwanted).alias(column.name.translate(table)) for column in part])


def _clean(column: pl.Series, unwanted: str) -> pl.Series:
    if column.dtype.is_nested():
        values = [None if value is None else msgspec.json.encode(value).decode() for value in column.to_list()]
        column = pl.Series(values, dtype=pl.String)
    if column.dtype == pl.Binary:
        column = column.bin.encode("base64")
    if column.dtype in (pl.Categorical, pl.Enum):
        column = column.cast(pl.String)
    return column.str.replace_all(f"[{unwanted}]", " ") if column.dtype == pl.String else column


@contextmanager
def _compressed(path: Path, *, compression: str) -> Iterator[Any]:
    with path.open("wb") as raw:
        packed: Any = nullcontext(raw)
        if compression == "gz":
            packed = gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0, compresslevel=6)
        elif compression == "bz2":
            packed = bz2.BZ2File(raw, "wb")
        elif compression == "zst":
            packed = pa.CompressedOutputStream(pa.PythonFile(raw, mode="w"), "zstd")
        with packed as file:
            yield file
