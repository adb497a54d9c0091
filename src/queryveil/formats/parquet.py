"""Read Parquet files as a log, in batches; times, users and ranks may have any suitable type."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from queryveil.data import ROLES, Format, Layout
from queryveil.errors import BadFile
from queryveil.formats.records import Reader
from queryveil.formats.roles import assign_roles, frame_names, in_role_order
from queryveil.formats.streams import ByteStream
from queryveil.formats.values import BAD_RANK, REASONS, Typed, type_columns

_BATCH_ROWS = 1 << 20


@contextmanager
def open_parquet(stream: ByteStream, *, otherwise: str) -> Iterator[pq.ParquetFile]:
    """Yield a file to be read; what cannot be read there raises `BadFile`, saying `otherwise`."""
    try:
        yield pq.ParquetFile(stream.seekable())
    except (pa.ArrowException, OSError, ValueError, pl.exceptions.PolarsError, pl.exceptions.PanicException):
        # Privacy: the cause may quote values, so it is dropped.
        raise BadFile(stream.name, otherwise) from None


@dataclass(slots=True, kw_only=True)
class ParquetReader(Reader):
    """Reads Parquet files; bad rows are named by their number in the file.

    - `columns`: the column asked for by role; other roles are found by name.
    """

    columns: Mapping[str, str]
    layout: Layout | None = None

    def add(self, stream: ByteStream) -> None:
        with open_parquet(stream, otherwise="this is not a whole Parquet file of flat columns; write it again") as file:
            found = list(file.schema_arrow.names)
            names = assign_roles(found, file=stream.name, columns=self.columns)
            if self.layout is not None and self.layout.columns != tuple(found):
                raise BadFile(stream.name, "its columns differ from those of the first file; read them one by one")
            self.layout = self.layout or Layout(format=Format.PARQUET, names=names, columns=tuple(found))
            renamed = frame_names(found, names=names)
            n_before = 0
            for batch in [*file.iter_batches(batch_size=_BATCH_ROWS), file.schema_arrow.empty_table()]:
                table = pa.Table.from_batches([batch]) if isinstance(batch, pa.RecordBatch) else batch
                frame = pl.DataFrame(table)
                self._read(frame.rename(renamed), file=stream.name, n_before=n_before)
                n_before += frame.height

    def _read(self, frame: pl.DataFrame, *, file: str, n_before: int) -> None:
        typed = type_frame(frame)
        bad = np.flatnonzero(typed.wrong)
        lines = bad.astype(np.int64) + n_before + 1
        self.tally.add(file, lines, reason=lambda i: REASONS[int(typed.wrong[bad[i]])])
        self.frames.append(typed.frame().select(in_role_order(frame.columns)))

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
            ready[name] = _as_utc(column)
        elif name == "rank" and column.dtype.is_integer():
            ready[name] = column.cast(pl.Int64, strict=False)
        elif name in ROLES:
            text[name] = _number_as_text(column)
        else:
            ready[name] = column
    typed = type_columns(text)
    for name, column in ready.items():
        if name == "rank":
            typed.wrong[(column.is_null() & frame[name].is_not_null()).to_numpy() & (typed.wrong == 0)] = BAD_RANK
        typed.columns[name] = column
    return typed


def _as_utc(column: pl.Series) -> pl.Series:
    dtype: Any = column.dtype
    if dtype == pl.Datetime and dtype.time_zone is not None:
        column = column.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    return column.cast(pl.Datetime("us"))


def _number_as_text(column: pl.Series) -> pl.Series:
    if column.dtype.is_float():
        # A float that holds a whole number would be written as 1.0 or 1e9.
        whole = column.cast(pl.Int64, strict=False)
        if bool((whole == column).fill_null(True).all()):
            column = whole
    return column.cast(pl.String)
