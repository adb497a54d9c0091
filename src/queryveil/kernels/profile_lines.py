"""Counts added to rows of JSON text, without reading the rows that stay as they are.

A row is `["user",0,3,..]`, rows stand in the order of users with `,` and a line end between them, and no user holds a
comma or a bracket that is not escaped.
"""

from __future__ import annotations

import numba
import numpy as np

from queryveil.kernels.arrays import Bytes, Int64s

_COMMA, _OPEN, _CLOSE, _LINE, _ZERO = 44, 91, 93, 10, 48
_MOST_DIGITS = 20


@numba.njit(cache=True)
def _compare(left: Bytes, begin: int, end: int, right: Bytes, first: int, last: int) -> int:
    for i in range(min(end - begin, last - first)):
        if left[begin + i] != right[first + i]:
            return -1 if left[begin + i] < right[first + i] else 1
    return (end - begin) - (last - first)


@numba.njit(cache=True)
def _write_row(out: Bytes, at: int, key: Bytes, first: int, last: int, counts: Int64s) -> int:
    out[at] = _OPEN
    at += 1
    for i in range(first, last):
        out[at] = key[i]
        at += 1
    for count in counts:
        out[at] = _COMMA
        at += 1
        digits, rest = 1, count // 10
        while rest:
            digits, rest = digits + 1, rest // 10
        rest = count
        for i in range(digits):
            out[at + digits - 1 - i] = _ZERO + rest % 10
            rest //= 10
        at += digits
    out[at], out[at + 1], out[at + 2] = _CLOSE, _COMMA, _LINE
    return at + 3


@numba.njit(cache=True)
def _read_counts(text: Bytes, at: int, counts: Int64s) -> int:
    """Read the counts from the comma after the user on; give where the row ends."""
    for i in range(len(counts)):
        at += 1
        counts[i] = 0
        while at < len(text) and text[at] != _COMMA and text[at] != _CLOSE:
            counts[i] = counts[i] * 10 + (text[at] - _ZERO)
            at += 1
    return at + 1


@numba.njit(cache=True)
def add_to_lines(
    text: Bytes, keys: Bytes, ends: Int64s, places: Int64s, adds: Int64s, n_places: int
) -> tuple[Bytes, Int64s, int]:
    """Add `adds[i]` at `places[i]` to the user whose JSON text ends at `ends[i]` in `keys`; users are in order.

    Gives the text after that, with `,` and a line end behind each row, where each row begins, and how many are new:
    -1 if the text is not made of such rows.
    """
    n = len(places)
    out = np.empty(len(text) + 3 + len(keys) + n * (n_places * _MOST_DIGITS + 8), np.uint8)
    starts = np.empty(len(text) // (2 * n_places) + 1 + n, np.int64)
    counts = np.zeros(n_places, np.int64)
    here, at, c, n_rows, n_new = 0, 0, 0, 0, 0
    while here < len(text) or c < n:
        if n_rows == len(starts):
            return out[:0], starts[:0], -1
        starts[n_rows] = at
        n_rows += 1
        first = ends[c - 1] if c else 0
        order, comma = 1, here
        if here < len(text):
            while comma < len(text) and text[comma] != _COMMA:
                comma += 1
            order = _compare(text, here + 1, comma, keys, first, ends[c]) if c < n else -1
        if order < 0:
            end = comma
            while end < len(text) and text[end] != _CLOSE:
                end += 1
            if end >= len(text):
                return out[:0], starts[:0], -1
            out[at : at + end + 1 - here] = text[here : end + 1]
            at += end + 1 - here
            out[at], out[at + 1] = _COMMA, _LINE
            at, here = at + 2, end + 3
            continue
        if order == 0:
            here = _read_counts(text, comma, counts) + 2
            if here > len(text) + 2 or text[here - 3] != _CLOSE:
                return out[:0], starts[:0], -1
        else:
            counts[:] = 0
            n_new += 1
        last = ends[c]
        counts[places[c]] += adds[c]
        c += 1
        while c < n and _compare(keys, ends[c - 1], ends[c], keys, first, last) == 0:
            counts[places[c]] += adds[c]
            c += 1
        at = _write_row(out, at, keys, first, last, counts)
    return out[:at], starts[:n_rows], n_new
