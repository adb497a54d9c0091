"""Kernels that parse times in the notations that logs use into microseconds since 1970."""

import numpy as np

from queryveil.data import Bytes, Int64s
from queryveil.kernels import njit

# The notations follow one another as their formats do in `values`.
MISSING, DAY, BLANK, ISO, ISO_ZONED, EPOCH_S, EPOCH_MS, EPOCH_US, COMPACT, BAD = 0, 1, 2, 3, 4, 5, 6, 7, 8, 255

# Plain integers are read as epochs only where that gives a date from 1973 to 2099: 20060301 is a day that
# somebody wrote without dashes, not a second of 1970.
FIRST_EPOCH_S, LAST_EPOCH_S = 100_000_000, 4_102_444_799

_SECOND = 1_000_000

# The years 1 to 9999, which are all that Python's dates have.
FIRST_MICROS, LAST_MICROS = -62_135_596_800 * _SECOND, 253_402_300_800 * _SECOND - 1


@njit(cache=True)
def _digits(data: Bytes, start: int, stop: int) -> int:
    """Return the number in these digits; -1 where there are none or another character is among them."""
    if stop <= start or stop - start > 17:
        return -1
    value = 0
    for at in range(start, stop):
        digit = int(data[at]) - 48
        if digit < 0 or digit > 9:
            return -1
        value = value * 10 + digit
    return value


@njit(cache=True)
def _micros(year: int, month: int, day: int, hour: int, minute: int, second: int, kind: int) -> tuple[int, int]:
    """Return microseconds since 1970 and the kind; 0 and BAD if there is no such time."""
    if year < 1 or month < 1 or month > 12 or day < 1:
        return 0, BAD
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    last = 30 + (month + month // 8) % 2
    if month == 2:
        last = 29 if leap else 28
    if day > last or not (0 <= hour <= 23 and 0 <= minute <= 59 and 0 <= second <= 59):
        return 0, BAD
    # Days of the civil calendar with the year starting in March, so that the leap day comes last.
    shifted = year - (1 if month <= 2 else 0)
    era = shifted // 400
    of_era = shifted - era * 400
    of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    days = era * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719468
    return (days * 86400 + hour * 3600 + minute * 60 + second) * _SECOND, kind


@njit(cache=True)
def _fraction(data: Bytes, start: int, stop: int) -> tuple[int, int]:
    """Return the digits behind a point as microseconds (further ones cut off), and where they end, or -1."""
    value, scale, at = 0, 100_000, start
    while at < stop and 48 <= data[at] <= 57:
        value += (int(data[at]) - 48) * scale
        scale //= 10
        at += 1
    return value, at if at > start else -1


@njit(cache=True)
def _zone(data: Bytes, at: int, stop: int) -> int:
    """Return the minutes east of Z, +HH, +HHMM or +HH:MM; 10000 for anything else."""
    if data[at] in (90, 122):
        return 0 if at + 1 == stop else 10_000
    if data[at] not in (43, 45):
        return 10_000
    hours = _digits(data, at + 1, min(at + 3, stop))
    rest = at + 3
    if rest < stop and data[rest] == 58:
        rest += 1
    minutes = 0
    if stop > at + 3:
        minutes = _digits(data, rest, stop) if stop - rest == 2 else -1
    if stop < at + 3 or hours < 0 or hours > 23 or minutes < 0 or minutes > 59:
        return 10_000
    east = hours * 60 + minutes
    return -east if data[at] == 45 else east


@njit(cache=True)
def _calendar(data: Bytes, start: int, stop: int) -> tuple[int, int]:
    """Parse YYYY-MM-DD, then optionally T or a blank with HH:MM, :SS, a fraction and a zone."""
    if stop - start < 10 or data[start + 4] != 45 or data[start + 7] != 45:
        return 0, BAD
    year, month = _digits(data, start, start + 4), _digits(data, start + 5, start + 7)
    day = _digits(data, start + 8, start + 10)
    if stop - start == 10:
        return _micros(year, month, day, 0, 0, 0, DAY)
    separator = data[start + 10]
    if separator not in (32, 84, 116) or stop - start < 16 or data[start + 13] != 58:
        return 0, BAD
    hour, minute = _digits(data, start + 11, start + 13), _digits(data, start + 14, start + 16)
    at, second, fraction = start + 16, 0, 0
    if at < stop and data[at] == 58:
        second = _digits(data, at + 1, min(at + 3, stop)) if stop >= at + 3 else -1
        at += 3
        if at < stop and data[at] in (44, 46):
            fraction, at = _fraction(data, at + 1, stop)
            if at < 0:
                return 0, BAD
    micros, kind = _micros(year, month, day, hour, minute, second, BLANK if separator == 32 else ISO)
    if kind != BAD and at < stop:
        east = _zone(data, at, stop)
        if east == 10_000:
            return 0, BAD
        micros += fraction - east * 60 * _SECOND
        # In UTC the last hours of 9999 may lie in another year.
        return (micros, ISO_ZONED) if FIRST_MICROS <= micros <= LAST_MICROS else (0, BAD)
    return (micros + fraction, kind) if kind != BAD else (0, BAD)


@njit(cache=True)
def _epoch(data: Bytes, start: int, stop: int) -> tuple[int, int]:
    """Parse seconds (with or without a fraction), milliseconds or microseconds since 1970, told apart by size."""
    point = start
    while point < stop and data[point] != 46:
        point += 1
    value = _digits(data, start, point)
    if FIRST_EPOCH_S <= value <= LAST_EPOCH_S:
        if point == stop:
            return value * _SECOND, EPOCH_S
        fraction, end = _fraction(data, point + 1, stop)
        return (value * _SECOND + fraction, EPOCH_S) if end == stop else (0, BAD)
    if point != stop:
        return 0, BAD
    if FIRST_EPOCH_S <= value // 1000 <= LAST_EPOCH_S:
        return value * 1000, EPOCH_MS
    if FIRST_EPOCH_S <= value // _SECOND <= LAST_EPOCH_S:
        return value, EPOCH_US
    return 0, BAD


@njit(cache=True)
def _compact(data: Bytes, start: int, stop: int) -> tuple[int, int]:
    """Parse yyMMddHHmm, yyMMddHHmmss or yyyyMMddHHmmss; two-digit years begin with 1969."""
    length = stop - start
    if length not in (10, 12, 14):
        return 0, BAD
    at = start + (4 if length == 14 else 2)
    year = _digits(data, start, at)
    if year < 0:
        return 0, BAD
    if length != 14:
        year += 1900 if year >= 69 else 2000
    second = _digits(data, at + 8, at + 10) if length > 10 else 0
    month, day = _digits(data, at, at + 2), _digits(data, at + 2, at + 4)
    hour, minute = _digits(data, at + 4, at + 6), _digits(data, at + 6, at + 8)
    return _micros(year, month, day, hour, minute, second, COMPACT)


@njit(cache=True)
def parse_times(text: Bytes, offsets: Int64s, compact: bool) -> tuple[Int64s, Bytes]:
    """Parse each text as a time (`compact`: Excite's digits); return microseconds and the kind of notation."""
    n = offsets.size - 1
    micros = np.zeros(n, dtype=np.int64)
    kinds = np.zeros(n, dtype=np.uint8)
    for i in range(n):
        start, stop = offsets[i], offsets[i + 1]
        while start < stop and text[start] == 32:
            start += 1
        while start < stop and text[stop - 1] == 32:
            stop -= 1
        if start == stop:
            continue
        if compact:
            micros[i], kinds[i] = _compact(text, start, stop)
        elif stop - start >= 10 and text[start + 4] == 45:
            micros[i], kinds[i] = _calendar(text, start, stop)
        else:
            micros[i], kinds[i] = _epoch(text, start, stop)
    return micros, kinds
