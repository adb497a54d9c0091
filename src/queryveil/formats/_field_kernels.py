"""Kernels that split bytes of delimited text into records and fields, and copy fields into Arrow text buffers."""

import numpy as np

from queryveil.data import Bools, Bytes, Int32s, Int64s
from queryveil.kernels import njit

TOO_LONG = 1
UNCLOSED_QUOTE = 2
TEXT_AFTER_QUOTE = 4
HAS_NUL = 8
LATIN1 = 16
NO_QUOTE = -1

Room = tuple[Int32s, Int32s, Int32s, Int32s, Bytes]
"""Places to fill in: the starts and ends of each record's fields, its line, its number of fields and its flags."""

_NUL, _NEWLINE, _RETURN = 0, 10, 13


@njit(cache=True)
def _is_utf8(data: Bytes, start: int, stop: int) -> bool:
    """Return whether these bytes are valid UTF-8, without overlong forms and surrogates."""
    at = start
    while at < stop:
        byte = data[at]
        at += 1
        if byte < 0x80:
            continue
        n_more = (byte >= 0xC2) + (byte >= 0xE0) + (byte >= 0xF0)
        if n_more == 0 or byte > 0xF4 or at + n_more > stop:
            return False
        second = data[at]
        is_overlong = (byte == 0xE0 and second < 0xA0) or (byte == 0xF0 and second < 0x90)
        if is_overlong or (byte == 0xED and second > 0x9F) or (byte == 0xF4 and second > 0x8F):
            return False
        for i in range(at, at + n_more):
            if data[i] & 0xC0 != 0x80:
                return False
        at += n_more
    return True


@njit(cache=True)
def _line_end(data: Bytes, at: int) -> int:
    while at < data.size and data[at] != _NEWLINE:
        at += 1
    return at


@njit(cache=True)
def _skip_quoted(data: Bytes, at: int, quote: int, limit: int) -> tuple[int, int, int]:
    """Return the position of the closing quote (-1: none), the newlines passed, and flags."""
    newlines, flags = 0, 0
    stop = min(data.size, limit)
    while at < stop:
        byte = data[at]
        if byte == quote:
            if at + 1 == data.size or data[at + 1] != quote:
                return at, newlines, flags
            at += 1
        elif byte == _NEWLINE:
            newlines += 1
        elif byte == _NUL:
            flags |= HAS_NUL
        elif byte >= 0x80:
            flags |= LATIN1
        at += 1
    return -1, newlines, flags


@njit(cache=True)
def _split_one(
    data: Bytes, begin: int, delimiter: int, quote: int, max_bytes: int, starts: Int32s, ends: Int32s, row: int
) -> tuple[int, int, int, int]:
    """Split the record at `begin`; return its end (-1: the data ends first), newlines, fields, flags (LATIN1: >127)."""
    n, limit = data.size, begin + max_bytes
    bound = min(n, limit + 1)
    at, newlines, n_fields, flags = begin, 0, 0, 0
    while True:
        start = at
        if quote >= 0 and at < n and data[at] == quote:
            start = at + 1
            end, more, seen = _skip_quoted(data, start, quote, limit)
            newlines += more
            flags |= seen
            if end < 0:
                return -1, newlines, n_fields, flags | UNCLOSED_QUOTE
            at = end + 1
            if at < n and data[at] == _RETURN and (at + 1 == n or data[at + 1] == _NEWLINE):
                at += 1
            if at < n and data[at] != delimiter and data[at] != _NEWLINE:
                return at, newlines, n_fields, flags | TEXT_AFTER_QUOTE
        else:
            while at < bound:
                byte = data[at]
                if byte in (delimiter, _NEWLINE):
                    break
                if byte == _NUL:
                    flags |= HAS_NUL
                elif byte >= 0x80:
                    flags |= LATIN1
                at += 1
            end = at
            if end > start and end < n and data[end] == _NEWLINE and data[end - 1] == _RETURN:
                end -= 1
        if n_fields < starts.shape[1]:
            starts[row, n_fields] = start
            ends[row, n_fields] = end
        n_fields += 1
        if at > limit:
            return at, newlines, n_fields, flags | TOO_LONG
        if at >= n:
            return -1, newlines, n_fields, flags
        at += 1
        if data[at - 1] == _NEWLINE:
            return at, newlines + 1, n_fields, flags
        if at > limit:
            return at, newlines, n_fields, flags | TOO_LONG


@njit(cache=True)
def split_records(
    data: Bytes, begin: int, delimiter: int, quote: int, is_last: bool, skipping: bool, max_bytes: int, room: Room
) -> tuple[int, int, int, bool]:
    """Fill in the records of a block from `begin` on, as many as there is room for.

    Returns their number, where the rest of the block begins, newlines, and `skipping` for the next block: whether that
    begins inside a line that is too long. Blank lines are no records. A record whose quote does not close properly ends
    with its first line, so that the lines behind it are not swallowed. The last block must end with a newline.
    """
    starts, ends, lines, counts, flags = room
    n = data.size
    at, line, row = begin, 0, 0
    if skipping:
        at = _line_end(data, begin)
        if at == n:
            return 0, n, 0, True
        at += 1
        line += 1
    while at < n and row < lines.size:
        if data[at] == _NEWLINE or (data[at] == _RETURN and at + 1 < n and data[at + 1] == _NEWLINE):
            at += 1 if data[at] == _NEWLINE else 2
            line += 1
            continue
        stop, newlines, n_fields, flag = _split_one(data, at, delimiter, quote, max_bytes, starts, ends, row)
        if stop < 0 or flag & (TEXT_AFTER_QUOTE | TOO_LONG):
            may_wait = not is_last and n - at <= max_bytes
            eol = _line_end(data, stop if flag & TOO_LONG else at)
            if may_wait and (stop < 0 or eol == n):
                break
            lines[row] = line
            counts[row] = n_fields
            if eol == n or flag & TOO_LONG or eol - at > max_bytes:
                flag = TOO_LONG
            flags[row] = flag & (TOO_LONG | UNCLOSED_QUOTE | TEXT_AFTER_QUOTE)
            row += 1
            line += newlines if stop >= 0 and flag == TOO_LONG else 0
            if eol == n:
                return row, n, line, True
            at = eol + 1
            line += 1
            continue
        if flag & LATIN1 and _is_utf8(data, at, stop):
            flag &= ~LATIN1
        lines[row] = line
        counts[row] = n_fields
        flags[row] = flag
        row += 1
        at = stop
        line += newlines
    return row, at, line, False


@njit(cache=True)
def gather_column(data: Bytes, starts: Int32s, ends: Int32s, latin1: Bools, quote: int) -> tuple[Bytes, Int64s]:
    """Copy one field of each record into an Arrow text buffer, in UTF-8 and unquoted; return it and its offsets."""
    n = starts.size
    n_bytes = 0
    for i in range(n):
        n_bytes += ends[i] - starts[i]
    offsets = np.zeros(n + 1, dtype=np.int64)
    text = np.empty(2 * n_bytes if latin1.any() else n_bytes, dtype=np.uint8)
    to = 0
    for i in range(n):
        quoted = quote >= 0 and starts[i] > 0 and data[starts[i] - 1] == quote
        at = starts[i]
        while at < ends[i]:
            byte = data[at]
            if latin1[i] and byte >= 0x80:
                text[to] = 0xC0 | (byte >> 6)
                to += 1
                byte = 0x80 | (byte & 0x3F)
            elif quoted and byte == quote:
                at += 1
            text[to] = byte
            to += 1
            at += 1
        offsets[i + 1] = to
    return text[:to], offsets
