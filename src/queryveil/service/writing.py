"""Released events to lines: the columns that may leave, under the names and in the order in which they came."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Any

import msgspec
import numpy as np
import polars as pl
import pyarrow as pa
from numba import njit
from numpy.typing import NDArray

from queryveil.data import ROLES, Bytes, Format, Int64s, Layout
from queryveil.formats.roles import carried_names
from queryveil.formats.write import arrange, encode_rows
from queryveil.release import ColumnPolicy, Ids

UInt32s = NDArray[np.uint32]

BLOCK_BYTES = 64
NAME_BYTES = 16
"""How much of each digest becomes a name, written as twice as many digits."""
_DIGITS = np.frombuffer(b"0123456789abcdef", np.uint8)


def _roots() -> tuple[UInt32s, UInt32s]:
    """Return the constants of SHA-256: fractions of the cube and square roots of the first primes."""
    primes = [n for n in range(2, 312) if all(n % d for d in range(2, n))]
    cubes = [_root(p << 96, 3) & 0xFFFFFFFF for p in primes]
    squares = [_root(p << 64, 2) & 0xFFFFFFFF for p in primes[:8]]
    return np.array(cubes, np.uint32), np.array(squares, np.uint32)


def _root(number: int, degree: int) -> int:
    low, high = 0, 1 << (number.bit_length() // degree + 1)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if middle**degree <= number else (low, middle - 1)
    return low


_CONSTANTS, FIRST_STATE = _roots()


@njit(cache=True)
def _turn(word: np.uint32, n: int) -> np.uint32:
    return np.uint32((np.uint64(word) >> np.uint64(n)) | (np.uint64(word) << np.uint64(32 - n)))


@njit(cache=True)
def compress(state: UInt32s, block: Bytes, words: UInt32s) -> None:
    """Take one block of 64 bytes into a state; `words` is room for 64."""
    for i in range(16):
        value = np.uint32(0)
        for j in range(4):
            value = np.uint32((np.uint64(value) << np.uint64(8)) | np.uint64(block[4 * i + j]))
        words[i] = value
    for i in range(16, 64):
        near, far = words[i - 2], words[i - 15]
        mixed = _turn(near, 17) ^ _turn(near, 19) ^ np.uint32(near >> np.uint32(10))
        mixed_too = _turn(far, 7) ^ _turn(far, 18) ^ np.uint32(far >> np.uint32(3))
        words[i] = np.uint32(words[i - 16] + mixed_too + words[i - 7] + mixed)
    a, b, c, d, e, f, g, h = state[0], state[1], state[2], state[3], state[4], state[5], state[6], state[7]
    for i in range(64):
        choice = (e & f) ^ (np.uint32(~e) & g)
        first = np.uint32(h + (_turn(e, 6) ^ _turn(e, 11) ^ _turn(e, 25)) + choice + _CONSTANTS[i] + words[i])
        majority = (a & b) ^ (a & c) ^ (b & c)
        second = np.uint32((_turn(a, 2) ^ _turn(a, 13) ^ _turn(a, 22)) + majority)
        h, g, f, e = g, f, e, np.uint32(d + first)
        d, c, b, a = c, b, a, np.uint32(first + second)
    for i, value in enumerate((a, b, c, d, e, f, g, h)):
        state[i] = np.uint32(state[i] + value)


@njit(cache=True)
def _end(block: Bytes, n_bytes: int, n_all: int) -> None:
    """Fill a last block behind its first bytes: a mark, zeros, and the length of everything in bits."""
    block[n_bytes] = 0x80
    block[n_bytes + 1 : 56] = 0
    n_bits = n_all * 8
    for i in range(8):
        block[63 - i] = (n_bits >> (8 * i)) & 0xFF


@njit(cache=True)
def name_all(data: Bytes, ptr: Int64s, inner: UInt32s, outer: UInt32s) -> Bytes:
    """Return the first half of the HMAC of each text as digits; the states have taken in the padded key."""
    n = len(ptr) - 1
    out = np.empty((n, 2 * NAME_BYTES), np.uint8)
    words, state = np.empty(64, np.uint32), np.empty(8, np.uint32)
    block = np.zeros(BLOCK_BYTES, np.uint8)
    for t in range(n):
        at, stop = ptr[t], ptr[t + 1]
        length = stop - at
        state[:] = inner
        while stop - at >= BLOCK_BYTES:
            compress(state, data[at : at + BLOCK_BYTES], words)
            at += BLOCK_BYTES
        rest = stop - at
        block[:rest] = data[at:stop]
        if rest >= 56:
            block[rest] = 0x80
            block[rest + 1 :] = 0
            compress(state, block, words)
            block[:] = 0
            _end(block, 0, length + BLOCK_BYTES)
            block[0] = 0
        else:
            _end(block, rest, length + BLOCK_BYTES)
        compress(state, block, words)
        for i in range(8):
            for j in range(4):
                block[4 * i + j] = (state[i] >> np.uint32(24 - 8 * j)) & np.uint32(0xFF)
        _end(block, 32, 32 + BLOCK_BYTES)
        state[:] = outer
        compress(state, block, words)
        for i in range(NAME_BYTES):
            byte = (state[i // 4] >> np.uint32(24 - 8 * (i % 4))) & np.uint32(0xFF)
            out[t, 2 * i] = _DIGITS[byte >> 4]
            out[t, 2 * i + 1] = _DIGITS[byte & 15]
    return out


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
        names = name_all(data, ptr, *self._states)
        bounds = np.arange(len(users) + 1, dtype=np.int64) * names.shape[1]
        buffers = [None, pa.py_buffer(bounds), pa.py_buffer(names)]
        return pl.Series(users.name, pa.Array.from_buffers(pa.large_utf8(), len(users), buffers))


def _padded(key: bytes, pad: int) -> UInt32s:
    """Return the state of SHA-256 after the key, padded as HMAC wants it."""
    short = hashlib.sha256(key).digest() if len(key) > BLOCK_BYTES else key
    block = np.frombuffer(short.ljust(BLOCK_BYTES, b"\0"), np.uint8) ^ np.uint8(pad)
    state = FIRST_STATE.copy()
    compress(state, block, np.empty(64, np.uint32))
    return state


def write_lines(
    released: pl.DataFrame, *, layout: Layout, columns: ColumnPolicy, now: datetime, has_header: bool
) -> bytes:
    """Write released rows, users already renamed; the time is that of the release, where lines have one."""
    # Privacy: when a query was asked would lead back to its user.
    frame = released.drop("time", strict=False)
    if "time" in layout.names:
        frame = frame.with_columns(time=pl.lit(now, ROLES["time"]))
    frame = columns.released_columns(frame)
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
