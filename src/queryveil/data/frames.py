"""Types of arrays; conversion of Polars, pandas and Arrow frames; the base class of all data types."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from queryveil.errors import BadInput, MissingExtra
from queryveil.html_tables import facts

Bools: TypeAlias = NDArray[np.bool_]
Bytes: TypeAlias = NDArray[np.uint8]
Floats: TypeAlias = NDArray[np.float64]
Float32s: TypeAlias = NDArray[np.float32]
Int8s: TypeAlias = NDArray[np.int8]
Int32s: TypeAlias = NDArray[np.int32]
Int64s: TypeAlias = NDArray[np.int64]
UInt64s: TypeAlias = NDArray[np.uint64]

_TEXTS = (pl.String, pl.Binary, pl.Enum)


def to_frame(data: Any, *, what: str) -> pl.DataFrame:
    """Return a Polars, pandas or Arrow frame, or a dict of columns, as a Polars frame; errors name `what` is wanted."""
    try:
        frame = _convert(data)
    except (pl.exceptions.PolarsError, TypeError, ValueError, NotImplementedError):
        # Privacy: the cause would quote the values, so it is dropped.
        raise BadInput(
            "the frame cannot be made into columns: each needs a name of its own, one type and the same length"
        ) from None
    if isinstance(frame, pl.DataFrame):
        return frame
    raise BadInput(f"{what} is a Polars, pandas or Arrow frame or a dict of columns, not {type(data).__name__}")


def sound_frame(table: Any) -> pl.DataFrame:
    """Return an Arrow table as a frame; raise an error of Arrow or `ValueError` if offsets or UTF-8 in it are wrong.

    Polars trusts them: a text that is not UTF-8 would end the process somewhere else.
    """
    table.validate(full=True)
    # Names are made texts of Python's here, which must be UTF-8, too.
    _ = table.schema.names
    try:
        return pl.DataFrame(table)
    except pl.exceptions.PanicException:
        raise ValueError("a type or a name that Polars does not know") from None


def read_parquet(source: Path | BytesIO) -> pl.DataFrame:
    """Read a Parquet file with Arrow: Polars panics at a damaged one, or takes what memory it asks for."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - only where there is such a file

    try:
        return sound_frame(pq.ParquetFile(source).read())
    except (pa.ArrowException, OSError, ValueError) as error:
        if getattr(error, "errno", None):
            raise
        # Privacy: the cause may quote values, so it is dropped.
        raise pl.exceptions.ComputeError("this is not a whole Parquet file") from None


def with_own_texts(frame: pl.DataFrame, *, but: str | None = None) -> pl.DataFrame:
    """Return the same rows with copies of their texts, except in the column `but`."""
    # Privacy: rows selected from a frame keep references to the texts of all its rows, which a pickle or an Arrow file
    # of them would contain.
    texts = (name for name, kind in frame.schema.items() if isinstance(kind, _TEXTS) or kind.is_nested())
    return frame.with_columns(_copied(frame[name]) for name in texts if name != but)


def _copied(column: pl.Series) -> pl.Series:
    values = column.to_arrow()
    if column.dtype.is_nested():
        # Lists that stand side by side are a window on a longer column in Arrow, too.
        values = values.take(pa.array(np.arange(len(column))))
    return pl.Series(column.name, values)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Framed:
    """The base class of data held in one Polars `frame`.

    `caption` is what the data are called in a notebook, `shown` the attributes shown there by label.
    """

    caption: ClassVar[str]
    shown: ClassVar[Mapping[str, str]]

    frame: pl.DataFrame

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return self.frame.height

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return self.frame.columns

    def with_frame(self, frame: pl.DataFrame) -> Self:
        """Return a copy with another frame."""
        return replace(self, frame=frame)

    def to_polars(self) -> pl.DataFrame:
        """Return the rows as a Polars frame."""
        return self.frame.clone()

    def to_arrow(self) -> Any:
        """Return the rows as an Arrow table."""
        return self.frame.to_arrow()

    def to_pandas(self) -> Any:
        """Return the rows as a pandas frame."""
        if find_spec("pandas") is None:
            raise MissingExtra("to_pandas", extra="pandas")
        return self.frame.to_pandas()

    def __repr__(self) -> str:
        # Privacy: a frame's own repr would show queries.
        values = ", ".join(f"{name}={getattr(self, name)}" for name in self.shown.values())
        return f"{type(self).__name__}({values})"

    def _repr_html_(self) -> str:
        # Privacy: a notebook is saved and sent around, so counts only.
        values = {label: getattr(self, name) for label, name in self.shown.items()}
        pairs = ((label, ", ".join(value) if isinstance(value, list) else value) for label, value in values.items())
        return facts(pairs, caption=self.caption)


def _convert(data: Any) -> Any:
    if isinstance(data, pl.LazyFrame):
        return data.collect()
    if isinstance(data, Mapping):
        return pl.DataFrame(data)
    if type(data).__module__.partition(".")[0] == "pandas":
        return pl.from_pandas(data)
    if not isinstance(data, pl.DataFrame) and hasattr(data, "__arrow_c_stream__"):
        return pl.from_arrow(data)
    return data
