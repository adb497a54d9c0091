"""Frames of other libraries in and out."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

import polars as pl

from queryveil.errors import BadInput, MissingExtra


def to_frame(data: Any, *, what: str) -> pl.DataFrame:
    """Take a Polars, pandas or Arrow frame, or a dict of columns; `what` it should be goes into the error."""
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


class Framed:
    """Whatever is a frame of rows, and can be given as other libraries have them."""

    __slots__ = ()

    frame: pl.DataFrame

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return self.frame.height

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return self.frame.columns

    def to_polars(self) -> pl.DataFrame:
        """Give the rows as a Polars frame."""
        return self.frame.clone()

    def to_arrow(self) -> Any:
        """Give the rows as an Arrow table."""
        return self.frame.to_arrow()

    def to_pandas(self) -> Any:
        """Give the rows as a pandas frame."""
        if find_spec("pandas") is None:
            raise MissingExtra("to_pandas", extra="pandas")
        return self.frame.to_pandas()


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
