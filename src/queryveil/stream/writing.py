"""Released events to lines: the columns that may leave, under the names and in the order in which they came."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Any

import msgspec
import numpy as np
import polars as pl
import pyarrow as pa

from queryveil.columns import ColumnPolicy, Ids, TimeDetail
from queryveil.formats.roles import carried_names
from queryveil.formats.write import arrange, encode_rows
from queryveil.kernels import keyed_names
from queryveil.kernels.keyed_names import UInt32s
from queryveil.log import ROLES, Format, Layout


class Pseudonyms:
    """Gives users their names: keyed ones as `ColumnPolicy` does, or their own."""

    def __init__(self, columns: ColumnPolicy) -> None:
        self._states: tuple[UInt32s, UInt32s] | None = None
        if columns.ids is Ids.KEYED and columns.key is not None:
            self._states = _padded(columns.key, 0x36), _padded(columns.key, 0x5C)

    def of(self, users: pl.Series) -> pl.Series:
        """Name each user."""
        if self._states is None:
            return users
        array: Any = users.rechunk().to_arrow().cast(pa.large_string())
        _, offsets, letters = array.buffers()
        ptr = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
        data = np.frombuffer(letters, np.uint8) if letters is not None and letters.size else np.zeros(1, np.uint8)
        names = keyed_names.name_all(data, ptr, *self._states)
        bounds = np.arange(len(users) + 1, dtype=np.int64) * names.shape[1]
        buffers = [None, pa.py_buffer(bounds), pa.py_buffer(names)]
        return pl.Series(users.name, pa.Array.from_buffers(pa.large_utf8(), len(users), buffers))


def _padded(key: bytes, pad: int) -> UInt32s:
    """Give the state of SHA-256 after the key, padded as HMAC wants it."""
    short = hashlib.sha256(key).digest() if len(key) > keyed_names.BLOCK_BYTES else key
    block = np.frombuffer(short.ljust(keyed_names.BLOCK_BYTES, b"\0"), np.uint8) ^ np.uint8(pad)
    state = keyed_names.FIRST_STATE.copy()
    keyed_names.compress(state, block, np.empty(64, np.uint32))
    return state


def release_time(now: datetime, *, detail: TimeDetail) -> datetime | None:
    """Cut the time of a release as the policy says.

    >>> release_time(datetime(2026, 3, 4, 15, 16, 17), detail=TimeDetail.HOUR)
    datetime.datetime(2026, 3, 4, 15, 0)
    """
    match detail:
        case TimeDetail.DROP:
            return None
        case TimeDetail.DAY:
            return now.replace(hour=0, minute=0, second=0, microsecond=0)
        case TimeDetail.HOUR:
            return now.replace(minute=0, second=0, microsecond=0)
        case _:
            return now


def write_lines(
    released: pl.DataFrame, *, layout: Layout, columns: ColumnPolicy, now: datetime, has_header: bool
) -> bytes:
    """Write released rows, users already renamed; the time is that of the release, where lines have one."""
    frame = released.select("user", "query", *columns.keep)
    time = release_time(now, detail=columns.time) if "time" in layout.names else None
    if time is not None:
        frame = frame.with_columns(pl.lit(time, dtype=ROLES["time"]).alias("time"))
    if layout.format is Format.JSONL:
        return _json(frame, layout=layout, keep=columns.keep)
    return encode_rows(arrange(frame, layout=layout), layout=layout, begin=0 if has_header else 1)


def _json(frame: pl.DataFrame, *, layout: Layout, keep: tuple[str, ...]) -> bytes:
    arranged = arrange(frame, layout=layout)
    others = [name for name in keep if name not in ROLES]
    if not others:
        return arranged.write_ndjson().encode()
    # Their values are JSON already.
    outside = {inside: name for name, inside in carried_names(layout.columns, names=layout.names).items()}
    raw = {outside.get(name, name) for name in others}
    encode = msgspec.json.Encoder().encode
    lines = []
    for row in arranged.iter_rows(named=True):
        given = {
            name: msgspec.Raw(value.encode()) if name in raw and value is not None else value
            for name, value in row.items()
            if name not in raw or value is not None
        }
        lines.append(encode(given) + b"\n")
    return b"".join(lines)
