"""Released events to standard output."""

from __future__ import annotations

import os
import sys

from queryveil.stream.ports import Outgoing


class StdoutSink:
    """Write lines to a pipe.

    A pipe cannot say what arrived: after a crash the last lines may come a second time (at least once). Where every
    line must arrive exactly once, write a file, Redis, Kafka or HTTP.
    """

    def __init__(self, *, descriptor: int | None = None) -> None:
        self._descriptor = sys.stdout.fileno() if descriptor is None else descriptor
        self._number, self._n_written = 0, 0

    def open(self, *, delivered: int, n_bytes: int) -> None:  # noqa: ARG002 - part of the port
        """Begin."""
        self._number = delivered

    def deliver(self, outgoing: Outgoing) -> None:
        """Write lines; after a failure go on where it stopped."""
        if outgoing.number <= self._number:
            return
        while self._n_written < len(outgoing.data):
            self._n_written += os.write(self._descriptor, outgoing.data[self._n_written : self._n_written + (1 << 16)])
        self._number, self._n_written = outgoing.number, 0

    def close(self) -> None:
        """Leave the pipe to whoever else writes to it."""
