"""Times as text or numbers to columns of time, and back."""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from queryveil.kernels import timestamps

DAY, SECONDS, COMPACT = "%Y-%m-%d", "%Y-%m-%d %H:%M:%S", "%y%m%d%H%M%S"
ISO, ISO_ZONED, EPOCH_S, EPOCH_MS, EPOCH_US = "iso", "iso_z", "epoch_s", "epoch_ms", "epoch_us"

_BY_KIND = {
    timestamps.DAY: DAY,
    timestamps.BLANK: SECONDS,
    timestamps.ISO: ISO,
    timestamps.ISO_ZONED: ISO_ZONED,
    timestamps.EPOCH_S: EPOCH_S,
    timestamps.EPOCH_MS: EPOCH_MS,
    timestamps.EPOCH_US: EPOCH_US,
    timestamps.COMPACT: COMPACT,
}


def read_times(text: pl.Series, *, compact: bool = False) -> tuple[pl.Series, NDArray[np.uint8]]:
    """Read a column of text as times; the kind of each (`kernels.timestamps`), empty and null being missing."""
    array = text.fill_null("").rechunk().to_arrow()
    _, offsets, data = array.buffers()
    begin, n = array.offset, len(array)
    bounds = np.frombuffer(offsets, dtype=np.int64)[begin : begin + n + 1] if n else np.zeros(1, dtype=np.int64)
    letters = np.frombuffer(data, dtype=np.uint8) if data is not None and data.size else np.zeros(0, dtype=np.uint8)
    micros, kinds = timestamps.parse_times(letters, bounds, compact)
    known = (kinds != timestamps.MISSING) & (kinds != timestamps.BAD)
    valid = pa.array(known)
    column = pl.Series(text.name, micros).cast(pl.Datetime("us"))
    return pl.select(pl.when(pl.Series(valid)).then(column)).to_series().alias(text.name), kinds


def format_of(kinds: NDArray[np.uint8]) -> str | None:
    """Name the format that can write all these kinds of time; None where there is no time."""
    found = [_BY_KIND[kind] for kind in np.unique(kinds).tolist() if kind in _BY_KIND]
    return merge_formats(found)


def merge_formats(formats: list[str]) -> str | None:
    """Name one format for all: a zone on some makes all UTC, which is how they were read."""
    found = set(formats)
    if len(found) <= 1:
        return next(iter(found), None)
    if found == {DAY, SECONDS}:
        return SECONDS
    return ISO_ZONED if ISO_ZONED in found else ISO


def write_times(times: pl.Series, *, time_format: str | None) -> pl.Series:
    """Write times as text or epoch numbers; the format gives way where it would lose or change a time."""
    name = times.name
    micros = times.cast(pl.Int64)
    has_fraction = bool((micros % 1_000_000 != 0).any())
    has_clock = bool((micros % 86_400_000_000 != 0).any())
    low, high = timestamps.FIRST_EPOCH_S * 1_000_000, (timestamps.LAST_EPOCH_S + 1) * 1_000_000 - 1
    fits_epoch = bool(micros.is_between(low, high).all())
    if time_format == EPOCH_S and fits_epoch and not has_fraction:
        return (micros // 1_000_000).alias(name)
    if time_format == EPOCH_MS and fits_epoch and not (micros % 1000 != 0).any():
        return (micros // 1000).alias(name)
    if time_format == EPOCH_US and fits_epoch:
        return micros
    if time_format == DAY and not has_clock:
        return times.dt.strftime(DAY).alias(name)
    if time_format == COMPACT:
        in_reach = bool(times.dt.year().is_between(1969, 2068).all())
        return times.dt.strftime(COMPACT if in_reach else "%Y%m%d%H%M%S").alias(name)
    fraction = "%.6f" if has_fraction else ""
    if time_format in (ISO, ISO_ZONED):
        return times.dt.strftime(f"%Y-%m-%dT%H:%M:%S{fraction}{'Z' if time_format == ISO_ZONED else ''}").alias(name)
    return times.dt.strftime(SECONDS + fraction).alias(name)
