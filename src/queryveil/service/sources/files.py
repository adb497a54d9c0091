"""Events from files: read once to their end, or followed while they grow."""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from queryveil.errors import BadFile
from queryveil.formats.streams import find_sources
from queryveil.service.ports import Batch
from queryveil.service.sources.reading import LONGEST, CompressedFile, Mark, PlainFile, is_compressed, whole_lines


class FilesSource:
    """Read a file, or those that a glob names in the order of their names; compressed ones are decompressed.

    Started again, it goes on where it stood: with what was added to the last file, and with files whose names sort
    behind it.
    """

    def __init__(self, source: str | Path, *, batch_bytes: int = 1 << 20) -> None:
        self._source, self._batch_bytes = source, batch_bytes
        self._waiting: list[Path] = []
        self._now: PlainFile | CompressedFile | None = None

    def open(self, *, position: str | None, keys: Sequence[str]) -> None:  # noqa: ARG002 - files know no senders
        """Go on behind a position; the file that it is in must be there and still have what was read."""
        self._waiting = [path for path in find_sources(self._source) if path is not None]
        for path in self._waiting:
            if path.is_dir():
                raise BadFile(str(path), "this is a folder; give its files, for example as 'folder/*.tsv'")
        mark = Mark.from_text(position or "")
        if mark is None:
            self._open_next()
            return
        behind = [path for path in self._waiting if str(path) >= mark.file]
        if not behind or str(behind[0]) != mark.file:
            raise BadFile(mark.file, "the file that was being read is gone; put it back, or name another --store")
        self._waiting = behind[1:]
        self._now = self._file(behind[0])
        self._now.go_to(mark)

    def _file(self, path: Path) -> PlainFile | CompressedFile:
        kind = CompressedFile if is_compressed(path) else PlainFile
        return kind(path, batch_bytes=self._batch_bytes)

    def _open_next(self) -> None:
        self._now = self._file(self._waiting.pop(0)) if self._waiting else None

    def take(self, *, timeout: float) -> Batch | None:  # noqa: ARG002 - files do not keep one waiting
        """Return the next lines; None once there are no more."""
        while self._now is not None:
            lines = self._now.lines(is_whole=True)
            if lines:
                return Batch(data=lines, position=self._now.mark().to_text())
            self._now.close()
            self._open_next()
        return None

    @property
    def is_finished(self) -> bool:
        """Whether all files have been read."""
        return self._now is None

    def acknowledge(self, batch: Batch, *, bad_lines: Sequence[int]) -> None:
        """Do nothing: files keep what they have."""

    def close(self) -> None:
        """Close the file."""
        if self._now is not None:
            self._now.close()
            self._now = None
            self._waiting = []


_READ_BYTES = 1 << 16


class StdinSource:
    """Read lines as they are piped in.

    A pipe cannot be read twice: lines that were taken and not yet committed when the process was killed are gone. Where
    nothing may be lost, read a file, Redis, Kafka or HTTP.
    """

    def __init__(self, *, batch_bytes: int = 1 << 20, descriptor: int | None = None) -> None:
        self._descriptor = sys.stdin.fileno() if descriptor is None else descriptor
        self._batch_bytes = batch_bytes
        self._buffer = b""
        self._is_skipping = self._is_closed = self._at_end = False

    def open(self, *, position: str | None, keys: Sequence[str]) -> None:
        """Begin with whatever comes; a pipe knows no position."""

    def take(self, *, timeout: float) -> Batch | None:
        """Return the next lines as soon as there are some, or None after `timeout` seconds without any."""
        until = time.monotonic() + timeout
        while True:
            self._fill(max(0.0, until - time.monotonic()))
            chunk = whole_lines(self._buffer, is_last=self._at_end, is_skipping=self._is_skipping)
            self._buffer, self._is_skipping = self._buffer[chunk.n_used :], chunk.is_skipping
            if chunk.lines:
                return Batch(data=chunk.lines, position="")
            if self._at_end or self._is_closed or time.monotonic() >= until:
                return None

    def _fill(self, seconds: float) -> None:
        """Read what is there, up to the size of a batch, and wait only while there is nothing."""
        parts, n_bytes, has_line = [self._buffer], len(self._buffer), b"\n" in self._buffer
        while not self._at_end and not self._is_closed:
            if n_bytes >= (self._batch_bytes if has_line else LONGEST + 1):
                break
            if not select.select([self._descriptor], [], [], seconds)[0]:
                break
            data = os.read(self._descriptor, _READ_BYTES)
            self._at_end = not data
            parts.append(data)
            n_bytes += len(data)
            has_line = has_line or b"\n" in data
            seconds = 0.0
        self._buffer = b"".join(parts)

    @property
    def is_finished(self) -> bool:
        """Whether the pipe has ended and all of it was taken."""
        return self._at_end and not self._buffer

    def acknowledge(self, batch: Batch, *, bad_lines: Sequence[int]) -> None:
        """Do nothing: a pipe keeps nothing."""

    def close(self) -> None:
        """Stop reading."""
        self._is_closed = True
