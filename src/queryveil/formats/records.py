"""Split blocks of bytes into records and fields with exact line numbers, and count the rows that are bad."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from queryveil.data import Reading
from queryveil.errors import BadRow, BadRows
from queryveil.formats import _field_kernels as fields
from queryveil.formats.streams import HEAD_BYTES, ByteStream

MAX_RECORD_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """The form of delimited text.

    - `delimiter`: the character between fields.
    - `is_quoted`: whether a double quote at the start of a field opens a quoted field.
    """

    delimiter: str
    is_quoted: bool = False

    @property
    def quote(self) -> int:
        """The byte of the quote, or `NO_QUOTE`."""
        return ord('"') if self.is_quoted else fields.NO_QUOTE


LINES = Dialect(delimiter="\n")
"""The dialect of files with one field per line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """The records of one block of bytes.

    - `data`: the bytes of the block.
    - `quote`: the byte of the quote, or `NO_QUOTE`.
    - `starts`, `ends`: per record and column the first byte of the field and the byte behind it.
    - `lines`: the line number of each record in its file, from 1.
    - `counts`: the number of fields of each record.
    - `flags`: the flags of each record, as in `_field_kernels`.
    """

    data: NDArray[np.uint8]
    quote: int
    starts: NDArray[np.int32]
    ends: NDArray[np.int32]
    lines: NDArray[np.int64]
    counts: NDArray[np.int32]
    flags: NDArray[np.uint8]

    @property
    def is_latin1(self) -> NDArray[np.bool_]:
        """Which records are not UTF-8 and are therefore read as Latin-1."""
        return np.asarray(self.flags & fields.LATIN1, dtype=np.bool_)

    def without_first(self) -> Records:
        """Return the records without the first, the header."""
        return self.only(np.arange(1, len(self.lines)))

    def only(self, rows: NDArray[np.int64]) -> Records:
        """Return the records at these positions."""
        if len(rows) == len(self.lines):
            return self
        return Records(
            data=self.data,
            quote=self.quote,
            starts=self.starts[rows],
            ends=self.ends[rows],
            lines=self.lines[rows],
            counts=self.counts[rows],
            flags=self.flags[rows],
        )

    def column(self, position: int) -> pl.Series:
        """Return one field of every record as text."""
        starts = np.ascontiguousarray(self.starts[:, position])
        ends = np.ascontiguousarray(self.ends[:, position])
        text, offsets = fields.gather_column(self.data, starts, ends, self.is_latin1, self.quote)
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(text)]
        return pl.Series(pa.Array.from_buffers(pa.large_utf8(), len(starts), buffers))


def split(
    blocks: Iterator[bytes], *, dialect: Dialect, n_columns: int, max_bytes: int = MAX_RECORD_BYTES
) -> Iterator[Records]:
    """Yield the records of a stream block by block, in bounded memory however long a line is."""
    carry, line, skipping = b"", 1, False
    splitter = _Splitter(dialect=dialect, n_columns=n_columns, max_bytes=max_bytes)
    for block, is_last in _with_last(blocks):
        data = carry + block
        if is_last and not data.endswith(b"\n"):
            data += b"\n"
        records, n_used, n_lines, skipping = splitter.split(data, is_last=is_last, skipping=skipping, line=line)
        carry, line = data[n_used:], line + n_lines
        if len(records.lines):
            yield records


def first_record(stream: ByteStream, *, dialect: Dialect) -> list[str]:
    """Return the fields of the first record, which may be a header; none where it cannot be read."""
    if b"\n" not in stream.head and len(stream.head) > HEAD_BYTES // 2:
        return []
    data = stream.head if stream.head.endswith(b"\n") else stream.head + b"\n"
    # A header is looked for in the head alone, so this is the end of it.
    counted, *_ = _Splitter(dialect=dialect, n_columns=1).split(data, is_last=True, skipping=False, line=1)
    if not len(counted.lines):
        return []
    n_columns = int(counted.counts[0])
    records, *_ = _Splitter(dialect=dialect, n_columns=n_columns).split(data, is_last=True, skipping=False, line=1)
    header = records.only(np.arange(1))
    if int(header.flags[0]) & ~fields.LATIN1:
        return []
    return [header.column(i).item() for i in range(n_columns)]


def _with_last(blocks: Iterator[bytes]) -> Iterator[tuple[bytes, bool]]:
    before = next(blocks, b"")
    for block in blocks:
        yield before, False
        before = block
    yield before, True


@dataclass(frozen=True, slots=True, kw_only=True)
class _Splitter:
    dialect: Dialect
    n_columns: int
    max_bytes: int = MAX_RECORD_BYTES

    def split(self, data: bytes, *, is_last: bool, skipping: bool, line: int) -> tuple[Records, int, int, bool]:
        capacity = data.count(b"\n") + 1
        starts, ends = (np.empty((capacity, self.n_columns), dtype=np.int32) for _ in range(2))
        lines, counts = (np.empty(capacity, dtype=np.int32) for _ in range(2))
        flags = np.empty(capacity, dtype=np.uint8)
        array = np.frombuffer(data, dtype=np.uint8)
        delimiter, quote = ord(self.dialect.delimiter), self.dialect.quote
        n, n_used, n_lines, skipping = fields.split_records(
            array, delimiter, quote, is_last, skipping, self.max_bytes, starts, ends, lines, counts, flags
        )
        records = Records(
            data=array,
            quote=quote,
            starts=starts[:n],
            ends=ends[:n],
            lines=lines[:n].astype(np.int64) + line,
            counts=counts[:n],
            flags=flags[:n],
        )
        return records, n_used, n_lines, skipping


class BadRowPolicy(StrEnum):
    """What happens to rows that cannot be read: `FAIL` raises `BadRows`, `SKIP` leaves them out and counts them."""

    FAIL = "fail"
    SKIP = "skip"


@dataclass(slots=True, kw_only=True)
class Tally:
    """Counts the bad and the Latin-1 rows of all files that are read together.

    - `policy`: what happens to bad rows.
    """

    policy: BadRowPolicy
    first: list[BadRow] = field(default_factory=list)
    n_bad: int = 0
    n_latin1: int = 0

    def add(self, file: str, lines: NDArray[np.int64], *, reason: Callable[[int], str]) -> None:
        """Count the bad rows of a file; `reason(i)` returns why the row at `lines[i]` is bad."""
        for i in range(min(len(lines), BadRows.N_SHOWN - len(self.first))):
            self.first.append(BadRow(file, int(lines[i]), reason=reason(i)))
        self.n_bad += len(lines)

    def close(self) -> Reading:
        """Return the counts; raise `BadRows` if there are bad rows and the policy is to fail."""
        if self.n_bad and self.policy is BadRowPolicy.FAIL:
            raise BadRows(self.first, n_total=self.n_bad)
        return Reading(n_bad_rows_skipped=self.n_bad, n_latin1_rows=self.n_latin1)
