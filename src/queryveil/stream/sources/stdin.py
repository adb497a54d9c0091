"""Events from standard input."""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Sequence

from queryveil.stream.ports import Batch
from queryveil.stream.sources.chunks import LONGEST, whole_lines

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
        """Give the next lines as soon as there are some, or None after `timeout` seconds without any."""
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
