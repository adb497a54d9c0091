"""Convert columns of text to the types of their roles, write times back, and mark rows that cannot be read."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from queryveil.data import Bools, Bytes
from queryveil.formats import _time_kernels, roles
from queryveil.text.tokens import text_bytes

DAY, SECONDS, COMPACT = "%Y-%m-%d", "%Y-%m-%d %H:%M:%S", "%y%m%d%H%M%S"
ISO, ISO_ZONED, EPOCH_S, EPOCH_MS, EPOCH_US = "iso", "iso_z", "epoch_s", "epoch_ms", "epoch_us"

_FORMATS = (DAY, SECONDS, ISO, ISO_ZONED, EPOCH_S, EPOCH_MS, EPOCH_US, COMPACT)
_BY_KIND = dict(enumerate(_FORMATS, start=_time_kernels.DAY))


def read_times(text: pl.Series, *, compact: bool = False) -> tuple[pl.Series, Bytes]:
    """Return a column of text as times, null where empty, and per row the kind of time as in `_time_kernels`."""
    micros, kinds = _time_kernels.parse_times(*text_bytes(text.fill_null("")), compact)
    known = (kinds != _time_kernels.MISSING) & (kinds != _time_kernels.BAD)
    column = pl.Series(text.name, micros).cast(pl.Datetime("us"))
    return pl.select(pl.when(pl.Series(known)).then(column)).to_series().alias(text.name), kinds


def time_formats(kinds: Bytes) -> set[str]:
    """Return the formats of these kinds of time."""
    return {_BY_KIND[kind] for kind in np.unique(kinds).tolist() if kind in _BY_KIND}


def merge_formats(formats: Iterable[str]) -> str | None:
    """Return one time format that can write all, None for none; where some have a zone it is one of UTC, as read."""
    found = set(formats)
    if len(found) <= 1:
        return next(iter(found), None)
    if found == {DAY, SECONDS}:
        return SECONDS
    return ISO_ZONED if ISO_ZONED in found else ISO


def write_times(times: pl.Series, *, time_format: str | None) -> pl.Series:
    """Return times as text or epoch numbers; in another format where `time_format` would lose or change a time."""
    micros = times.cast(pl.Int64)
    has_fraction = bool((micros % 1_000_000 != 0).any())
    has_clock = bool((micros % 86_400_000_000 != 0).any())
    low, high = _time_kernels.FIRST_EPOCH_S * 1_000_000, (_time_kernels.LAST_EPOCH_S + 1) * 1_000_000 - 1
    fits_epoch = bool(micros.is_between(low, high).all())
    unit = {EPOCH_S: 1_000_000, EPOCH_MS: 1000, EPOCH_US: 1}.get(time_format or "")
    if unit and fits_epoch and not (micros % unit != 0).any():
        return micros // unit
    if time_format == DAY and not has_clock:
        return times.dt.strftime(DAY)
    if time_format == COMPACT:
        in_reach = bool(times.dt.year().is_between(1969, 2068).all())
        return times.dt.strftime(COMPACT if in_reach else "%Y%m%d%H%M%S")
    fraction = "%.6f" if has_fraction else ""
    if time_format in (ISO, ISO_ZONED):
        return times.dt.strftime(f"%Y-%m-%dT%H:%M:%S{fraction}{'Z' if time_format == ISO_ZONED else ''}")
    return times.dt.strftime(SECONDS + fraction)


OWN_RULES = frozenset(("user", "query", "time", "rank"))
"""Roles for which empty has a meaning of its own."""
NO_USER, BAD_TIME, BAD_RANK = 101, 102, 103
REASONS: Mapping[int, str] = {
    NO_USER: "the user is missing",
    BAD_TIME: "the time cannot be read as a time",
    BAD_RANK: "the rank cannot be read as a whole number",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Typed:
    """Columns by role or own name in the types of their roles; per row 0 or a code of `REASONS`, and the kind of time.

    Kinds are those of `_time_kernels`; without a time column there are none.
    """

    columns: dict[str, pl.Series]
    wrong: Bytes
    time_kinds: Bytes

    def frame(self) -> pl.DataFrame:
        """Return the rows that can be read, the roles first."""
        frame = pl.DataFrame({name: self.columns[name] for name in roles.in_role_order(self.columns)})
        return frame.filter(pl.Series(self.wrong == 0)) if self.wrong.any() else frame


def type_columns(text: Mapping[str, pl.Series], *, has_compact_times: bool = False) -> Typed:
    """Convert columns of text, by role or own name, to the types of their roles; empty is missing except in queries."""
    columns = dict(text)
    user = columns["user"]
    wrong = np.where((user.is_null() | (user.str.strip_chars() == "")).fill_null(True).to_numpy(), NO_USER, 0)
    wrong = wrong.astype(np.uint8)
    columns["query"] = columns["query"].fill_null("")
    kinds = np.zeros(0, dtype=np.uint8)
    if "time" in columns:
        columns["time"], kinds = read_times(columns["time"], compact=has_compact_times)
        wrong[(wrong == 0) & (kinds == _time_kernels.BAD)] = BAD_TIME
    if "rank" in columns:
        columns["rank"], is_bad = _read_ranks(columns["rank"])
        wrong[(wrong == 0) & is_bad] = BAD_RANK
    for name, column in text.items():
        if name not in OWN_RULES:
            columns[name] = _empty_to_null(column)
    return Typed(columns=columns, wrong=wrong, time_kinds=kinds)


def _read_ranks(text: pl.Series) -> tuple[pl.Series, Bools]:
    text = _empty_to_null(text.str.strip_chars())
    ranks = text.cast(pl.Int64, strict=False)
    if ranks.null_count() > text.null_count():
        # Tables that had gaps in them come with 3.0 where there was a 3.
        ranks = text.str.replace(r"\.0*$", "").cast(pl.Int64, strict=False)
    return ranks, (ranks.is_null() & text.is_not_null()).to_numpy()


def _empty_to_null(column: pl.Series) -> pl.Series:
    if column.dtype != pl.String:
        return column
    return column.set(column == "", None)
