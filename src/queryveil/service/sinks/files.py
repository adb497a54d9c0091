"""Released events to a file, each exactly once."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from threading import Lock

from queryveil.errors import BadFile
from queryveil.service.ports import Outgoing

_CLOSE_SECONDS = 1.0


def sync_folder(path: Path) -> None:
    """Have the name of a file on disk too: after a power cut one that is not has no file."""
    descriptor = os.open(path.absolute().parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class FileSink:
    """Append lines to a file that only its owner can read.

    Lines go where they belong by the number of bytes before them, so that what is handed over again after a crash
    stands there once. The file must stay in place while the stream goes on.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._descriptor: int | None = None
        self._lock = Lock()

    def check_new(self) -> None:
        """Refuse, at the first start of a stream, a file that has something in it."""
        if self.path.is_dir():
            raise BadFile(str(self.path), "this is a folder; for a release folder say release:FOLDER")
        if not self.path.absolute().parent.is_dir():
            raise BadFile(str(self.path), "its folder is not there; make it first")
        if self.path.is_file() and self.path.stat().st_size:
            reason = "is already there and not empty, and no state of this stream is; name a new file"
            raise BadFile(str(self.path), reason)

    def open(self, *, delivered: int, n_bytes: int) -> None:  # noqa: ARG002 - part of the port
        """Open or make the file; what was handed over earlier must still be there."""
        self._open()
        self._check_length(n_bytes)

    def _open(self) -> int:
        if self._descriptor is None:
            try:
                # Privacy: the mode holds from the start.
                self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
                sync_folder(self.path)
            except (PermissionError, IsADirectoryError, NotADirectoryError, FileNotFoundError) as error:
                raise BadFile(str(self.path), f"cannot be written: {error.strerror}") from None
        return self._descriptor

    def _check_length(self, n_bytes: int) -> None:
        n_there = os.fstat(self._open()).st_size
        if n_there < n_bytes:
            reason = f"{n_bytes - n_there} bytes that were written are gone; put them back, or name another --store"
            raise BadFile(str(self.path), reason)

    def deliver(self, outgoing: Outgoing) -> None:
        """Write lines to disk at their place; lines that stand there already stay as they are."""
        with self._lock:
            self._write(outgoing.data, offset=outgoing.offset)

    def _write(self, data: bytes, *, offset: int) -> None:
        descriptor = self._open()
        self._check_length(offset)
        # Whoever follows the file must not see lines go and come again.
        if os.pread(descriptor, len(data), offset) != data:
            os.ftruncate(descriptor, offset)
            n_written = 0
            while n_written < len(data):
                n_written += os.pwrite(descriptor, data[n_written:], offset + n_written)
        os.fsync(descriptor)
        self._check_place(descriptor)

    def _check_place(self, descriptor: int) -> None:
        """See that what was written stands in the file of this name, as one that was deleted takes lines too."""
        try:
            is_there = os.path.samestat(self.path.stat(), os.fstat(descriptor))
        except FileNotFoundError:
            is_there = False
        if not is_there:
            reason = "was moved, deleted or replaced while it was written to; put it back and run the command again"
            raise BadFile(str(self.path), reason)

    def close(self) -> None:
        """Close the file, unless it is still being written to: its number might be another file's by then."""
        if self._lock.acquire(timeout=_CLOSE_SECONDS):
            try:
                if self._descriptor is not None:
                    os.close(self._descriptor)
                    self._descriptor = None
            finally:
                self._lock.release()


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
