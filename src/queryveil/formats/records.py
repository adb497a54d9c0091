"""Split blocks of bytes into records and fields with exact line numbers, and count the rows that are bad."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Self

import numpy as np
import polars as pl
import pyarrow as pa

from queryveil.data import Bools, Bytes, Format, Int32s, Int64s, Layout, Reading
from queryveil.errors import BadFile, BadRow, BadRows
from queryveil.formats import _field_kernels as fields
from queryveil.formats.streams import HEAD_BYTES, ByteStream
from queryveil.formats.values import Typed, time_formats

MAX_RECORD_BYTES = 1 << 20
OTHER_COLUMNS = "its columns differ from those of the first file; read them one by one"
_MOST_FIELDS = 1 << 24
"""Places for fields at once: each line might be a record, and a header may name thousands of columns."""
_WRONG_COUNT = 100
_FLAG_REASONS = {
    fields.TOO_LONG: f"the line is longer than {MAX_RECORD_BYTES >> 20} MiB",
    fields.UNCLOSED_QUOTE: "a quote is opened and never closed",
    fields.TEXT_AFTER_QUOTE: "text follows a closing quote; a quote inside a quoted field must be doubled",
    fields.HAS_NUL: "the line has a NUL byte",
}

LINES, TAB, COMMA = "\n", "\t", ","
"""What stands between fields: a line is one field, or has several. Only between commas a field may be quoted."""


def _quote(delimiter: str) -> int:
    return ord('"') if delimiter == COMMA else fields.NO_QUOTE


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """The records of one block of bytes (`data`).

    - `starts`, `ends`: per record and column the first byte of the field and the byte behind it.
    - `lines`, `end_line`: the number of each record's line in its file, from 1, and that of the line behind the last.
    - `counts`, `flags`: of each record, the number of its fields and its flags as in `_field_kernels`.
    """

    data: Bytes
    delimiter: str
    starts: Int32s
    ends: Int32s
    lines: Int64s
    counts: Int32s
    flags: Bytes
    end_line: int = 0

    @property
    def is_latin1(self) -> Bools:
        """Which records are not UTF-8 and are therefore read as Latin-1."""
        return np.asarray(self.flags & fields.LATIN1, dtype=np.bool_)

    def faults(self) -> Bytes:
        """Return a code per record: 0, a flag of the splitter, or a wrong number of fields."""
        wrong = np.zeros(len(self.lines), dtype=np.uint8)
        wrong[self.counts != self.starts.shape[1]] = _WRONG_COUNT
        for flag in reversed(_FLAG_REASONS):
            wrong[(self.flags & flag) != 0] = flag
        return wrong

    def only(self, rows: Int64s) -> Self:
        """Return the records at these positions, which ascend."""
        if len(rows) == len(self.lines):
            return self
        per_record = ("starts", "ends", "lines", "counts", "flags")
        return replace(self, **{name: getattr(self, name)[rows] for name in per_record})

    def column(self, position: int) -> pl.Series:
        """Return one field of every record as text."""
        starts = np.ascontiguousarray(self.starts[:, position])
        ends = np.ascontiguousarray(self.ends[:, position])
        text, offsets = fields.gather_column(self.data, starts, ends, self.is_latin1, _quote(self.delimiter))
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(text)]
        return pl.Series(pa.Array.from_buffers(pa.large_utf8(), len(starts), buffers))


def split(blocks: Iterator[bytes], *, delimiter: str, n_columns: int, has_header: bool = False) -> Iterator[Records]:
    """Yield the records of a stream but for its header block by block, in bounded memory however long a line is."""
    carry, line, skipping = b"", 1, False
    most_records = max(1, _MOST_FIELDS // max(1, n_columns))
    for block, is_last in _with_last(blocks):
        text = carry + block
        if is_last and not text.endswith(b"\n"):
            text += b"\n"
        data = np.frombuffer(text, dtype=np.uint8)
        # There are as many records as fit into the places, and at most one more than there are line ends.
        begin, n, n_places = 0, most_records, min(text.count(b"\n") + 1, most_records)
        while n == most_records:
            starts, ends = np.empty((2, n_places, n_columns), dtype=np.int32)
            lines, counts = np.empty((2, n_places), dtype=np.int32)
            flags = np.empty(n_places, dtype=np.uint8)
            room, separators = (starts, ends, lines, counts, flags), (ord(delimiter), _quote(delimiter))
            n, begin, n_lines, skipping = fields.split_records(
                data, begin, *separators, is_last, skipping, MAX_RECORD_BYTES, room
            )
            if n:
                rows = slice(int(has_header), n)
                yield Records(
                    data=data,
                    delimiter=delimiter,
                    starts=starts[rows],
                    ends=ends[rows],
                    lines=lines[rows].astype(np.int64) + line,
                    counts=counts[rows],
                    flags=flags[rows],
                    end_line=line + n_lines,
                )
                has_header = False
            line += n_lines
        carry = text[begin:]


def first_record(stream: ByteStream, *, delimiter: str) -> list[str]:
    """Return the fields of the first record, which may be a header; none where it cannot be read."""
    if b"\n" not in stream.head and len(stream.head) > HEAD_BYTES // 2:
        return []
    # A header is looked for in the head alone, so this is the end of it.
    counted = next(split(iter([stream.head]), delimiter=delimiter, n_columns=1), None)
    if counted is None:
        return []
    n_columns = int(counted.counts[0])
    header = next(split(iter([stream.head]), delimiter=delimiter, n_columns=n_columns)).only(np.arange(1))
    if int(header.flags[0]) & ~fields.LATIN1:
        return []
    return [header.column(i).item() for i in range(n_columns)]


def _with_last(blocks: Iterator[bytes]) -> Iterator[tuple[bytes, bool]]:
    before = next(blocks, b"")
    for block in blocks:
        yield before, False
        before = block
    yield before, True


class BadRowPolicy(StrEnum):
    """What happens to rows that cannot be read: `FAIL` raises `BadRows`, `SKIP` leaves them out and counts them."""

    FAIL = "fail"
    SKIP = "skip"


@dataclass(slots=True, kw_only=True)
class Tally:
    """Counts the bad and the Latin-1 rows of all files that are read together, and documents and fields left out."""

    policy: BadRowPolicy
    first: list[BadRow] = field(default_factory=list)
    n_bad: int = 0
    n_latin1: int = 0
    n_foreign: int = 0
    n_fields: int = 0

    def add(self, file: str, wrong: Bytes, *, lines: Int64s, reason: Callable[[int, int], str]) -> None:
        """Count the bad rows of a block: `wrong` has a code for each, else 0, and `reason(row, code)` says why."""
        bad = np.flatnonzero(wrong)
        for row in bad[: BadRows.N_SHOWN - len(self.first)].tolist():
            self.first.append(BadRow(file, int(lines[row]), reason=reason(row, int(wrong[row]))))
        self.n_bad += len(bad)

    def add_records(self, records: Records, wrong: Bytes, *, file: str, reasons: Mapping[int, str]) -> None:
        """Count the bad records of a block, with reasons for the first, and Latin-1 ones."""
        self.n_latin1 += int((records.is_latin1 & (wrong == 0)).sum())

        def reason(row: int, code: int) -> str:
            if code == _WRONG_COUNT:
                separator, n = "comma" if records.delimiter == COMMA else "tab", records.starts.shape[1]
                return f"expected {n} {separator}-separated columns, found {records.counts[row]}"
            return _FLAG_REASONS.get(code) or reasons[code]

        self.add(file, wrong, lines=records.lines, reason=reason)

    def close(self) -> Reading:
        """Return the counts; raise `BadRows` if there are bad rows and the policy is to fail."""
        if self.n_bad and self.policy is BadRowPolicy.FAIL:
            raise BadRows(self.first, n_total=self.n_bad)
        return Reading(
            n_bad_rows_skipped=self.n_bad,
            n_latin1_rows=self.n_latin1,
            n_foreign_documents=self.n_foreign,
            n_fields_left_out=self.n_fields,
        )


def read_records(
    stream: ByteStream,
    *,
    tally: Tally,
    reasons: Mapping[int, str],
    delimiter: str = LINES,
    n_columns: int = 1,
    has_header: bool = False,
) -> Iterator[tuple[Records, Bytes]]:
    """Yield the records of a stream in blocks, each with its fault; faults that the caller adds are counted too."""
    for records in split(stream.blocks(), delimiter=delimiter, n_columns=n_columns, has_header=has_header):
        wrong = records.faults()
        yield records, wrong
        tally.add_records(records, wrong, file=stream.name, reasons=reasons)


@dataclass(slots=True, kw_only=True)
class Reader(ABC):
    """Reads the files of one format one after the other into one frame.

    - `columns`: the columns asked for, by role.
    - `events`: the events beside the rows, once all is read; None in formats that have none.
    """

    tally: Tally
    format: Format
    columns: Mapping[str, str] = field(default_factory=dict)
    layout: Layout | None = None
    frames: list[pl.DataFrame] = field(default_factory=list)
    time_formats: set[str] = field(default_factory=set)
    compression: str = ""
    events: pl.DataFrame | None = None

    @abstractmethod
    def add(self, stream: ByteStream) -> None:
        """Read one file."""

    def keep_layout(self, layout: Layout, *, file: str) -> None:
        """Keep the layout of the first file; raise if a later one has other columns."""
        if self.layout is not None and layout.columns != self.layout.columns:
            raise BadFile(file, OTHER_COLUMNS)
        self.layout = self.layout or layout

    def take(self, typed: Typed, *, wrong: Bytes) -> None:
        """Keep the rows of a block that can be read; the faults of the others go into `wrong`."""
        wrong[wrong == 0] = typed.wrong
        self.time_formats |= time_formats(typed.time_kinds)
        self.frames.append(typed.frame())

    @abstractmethod
    def finish(self) -> tuple[pl.DataFrame, Layout]:
        """Return all rows read, and the layout of the first file."""
