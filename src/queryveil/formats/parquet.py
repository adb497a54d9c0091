"""Read Parquet files as a log, in batches; times, users and ranks may have any suitable type."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from queryveil.data import ROLES, Format, Int64s, Layout
from queryveil.data.frames import sound_frame
from queryveil.errors import BadFile
from queryveil.formats import _time_kernels, roles
from queryveil.formats.jsonl import as_text
from queryveil.formats.records import Reader
from queryveil.formats.streams import ByteStream
from queryveil.formats.values import BAD_RANK, BAD_TIME, REASONS, Typed, type_columns

_BATCH_ROWS = 1 << 20


@contextmanager
def open_parquet(stream: ByteStream, *, otherwise: str) -> Iterator[pq.ParquetFile]:
    """Yield a file to be read; what cannot be read there raises `BadFile`, saying `otherwise`."""
    try:
        yield pq.ParquetFile(stream.seekable())
    except (pa.ArrowException, OSError, ValueError, pl.exceptions.PolarsError, pl.exceptions.PanicException):
        # Privacy: the cause may quote values, so it is dropped.
        raise BadFile(stream.name, otherwise) from None


def frames_of(file: pq.ParquetFile, *, columns: list[str] | None = None) -> Iterator[tuple[pl.DataFrame, Int64s]]:
    """Yield the rows in batches with their numbers; raise where a damaged file has other rows than it says."""
    n_rows = 0
    for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=columns):
        frame = sound_frame(pa.Table.from_batches([batch]))
        yield frame, np.arange(n_rows + 1, n_rows + frame.height + 1)
        n_rows += frame.height
    if n_rows != file.metadata.num_rows:
        raise pa.ArrowInvalid("rows are missing")


class ParquetReader(Reader):
    """Reads Parquet files; bad rows are named by their number in the file."""

    def add(self, stream: ByteStream) -> None:
        with open_parquet(stream, otherwise="this is not a whole Parquet file of flat columns; write it again") as file:
            found = list(file.schema_arrow.names)
            names = roles.assign_roles(found, file=stream.name, columns=self.columns)
            self.keep_layout(Layout(format=Format.PARQUET, names=names, columns=tuple(found)), file=stream.name)
            renamed = roles.frame_names(found, names=names)
            empty = sound_frame(file.schema_arrow.empty_table()), np.arange(0)
            for frame, rows in chain(frames_of(file), [empty]):
                typed = type_frame(frame.rename(renamed))
                self.tally.add(stream.name, typed.wrong, lines=rows, reason=lambda _, code: REASONS[code])
                self.frames.append(typed.frame().select(roles.in_role_order(renamed.values())))

    def finish(self) -> tuple[pl.DataFrame, Layout]:
        assert self.layout is not None
        return pl.concat(self.frames, how="vertical_relaxed", rechunk=False), self.layout


def type_frame(frame: pl.DataFrame) -> Typed:
    """Convert the columns of a frame, named by role or own name, to the types of their roles."""
    ready, text = {}, {}
    for name in frame.columns:
        column = frame[name]
        if name in ("user", "query", "url"):
            text[name] = column if column.dtype == pl.String else column.cast(pl.String)
        elif name == "time" and column.dtype in (pl.Datetime, pl.Date):
            ready[name] = _as_utc(column.set(~_has_known_year(column), None))
        elif name == "rank" and column.dtype.is_integer():
            ready[name] = column.cast(pl.Int64, strict=False)
        elif name in ROLES and name not in ("time", "rank") and column.dtype.is_nested():
            text[name] = pl.Series(name, [as_text(value) for value in column.to_list()], dtype=pl.String)
        elif name in ROLES:
            text[name] = _number_as_text(column)
        else:
            ready[name] = column
    typed = type_columns(text)
    for name, column in ready.items():
        if name in ("rank", "time"):
            is_lost = (column.is_null() & frame[name].is_not_null()).to_numpy()
            typed.wrong[is_lost & (typed.wrong == 0)] = BAD_RANK if name == "rank" else BAD_TIME
        typed.columns[name] = column
    return typed


def _has_known_year(column: pl.Series) -> pl.Series:
    """Return whether each time is of the years 1 to 9999; Polars and Parquet know more of them than Python."""
    dtype: Any = column.dtype
    if dtype != pl.Date and dtype.time_unit == "ns":
        # Nanoseconds reach from 1677 to 2262.
        return column.is_not_null()
    per_unit = 86_400_000_000 if dtype == pl.Date else {"ms": 1000, "us": 1}[dtype.time_unit]
    first, last = _time_kernels.FIRST_MICROS // per_unit, _time_kernels.LAST_MICROS // per_unit
    return column.to_physical().cast(pl.Int64).is_between(first, last).fill_null(False)


def _as_utc(column: pl.Series) -> pl.Series:
    dtype: Any = column.dtype
    if dtype == pl.Datetime and dtype.time_zone is not None:
        column = column.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    return column.cast(pl.Datetime("us"))


def _number_as_text(column: pl.Series) -> pl.Series:
    if not column.dtype.is_float():
        return column.cast(pl.String)
    # A float that holds a whole number would be written as 1.0 or 1e9; what is no number is a gap, as in pandas.
    column = column.fill_nan(None)
    whole = column.cast(pl.Int64, strict=False)
    is_whole = (whole == column).fill_null(False)
    return whole.cast(pl.String).zip_with(is_whole, column.cast(pl.String))
