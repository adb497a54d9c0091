"""One file read in whole lines from any place on."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from queryveil.errors import BadFile
from queryveil.formats.streams import ByteStream
from queryveil.stream.sources.chunks import LONGEST, whole_lines
from queryveil.stream.sources.marks import HEAD_BYTES, TAIL_BYTES, Mark, fingerprint

_MAGIC = (b"\x1f\x8b", b"BZh", b"\x28\xb5\x2f\xfd")
_NOT_THE_SAME = "this is not the file that was read before; put that one back, or name another --store"


def is_compressed(path: Path) -> bool:
    """Say whether a file has the beginning of one that gzip, bzip2 or zstd made."""
    descriptor = open_file(path)
    try:
        return os.pread(descriptor, 4, 0).startswith(_MAGIC)
    finally:
        os.close(descriptor)


def open_file(path: Path) -> int:
    """Open a file for reading; what is wrong with it is one line."""
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        raise BadFile(str(path), "there is no such file") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise BadFile(str(path), f"cannot be opened: {reason.lower()}") from None


class PlainFile:
    """A file that is not compressed; it may still grow."""

    def __init__(self, path: Path, *, batch_bytes: int) -> None:
        self.path, self._batch_bytes = path, batch_bytes
        self.descriptor = open_file(path)
        self.inode = os.fstat(self.descriptor).st_ino
        self.offset, self.is_skipping = 0, False

    def go_to(self, mark: Mark) -> None:
        """Go on behind a mark; refuse a file that has other bytes before it."""
        if not mark.fits(self.descriptor):
            raise BadFile(str(self.path), _NOT_THE_SAME)
        self.offset, self.is_skipping = mark.offset, mark.is_skipping

    def lines(self, *, is_whole: bool) -> bytes:
        """Give the next whole lines; of a file that is `whole` also a last line without an end."""
        for size in (self._batch_bytes, max(self._batch_bytes, LONGEST + 1)):
            data = os.pread(self.descriptor, size, self.offset)
            is_last = is_whole and len(data) < size
            chunk = whole_lines(data, is_last=is_last, is_skipping=self.is_skipping)
            self.offset, self.is_skipping = self.offset + chunk.n_used, chunk.is_skipping
            if chunk.lines or len(data) < size:
                return chunk.lines
        return self.lines(is_whole=is_whole)

    def mark(self) -> Mark:
        """Say where the reading stands."""
        return Mark(
            file=str(self.path),
            offset=self.offset,
            fingerprint=fingerprint(self.descriptor, self.offset),
            inode=self.inode,
            is_skipping=self.is_skipping,
        )

    def close(self) -> None:
        """Close the file."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


class CompressedFile:
    """A compressed file; places in it are counted in the bytes that it holds."""

    def __init__(self, path: Path, *, batch_bytes: int) -> None:
        self.path, self._batch_bytes = path, batch_bytes
        self._stream = ByteStream(path)
        self._blocks: Iterator[bytes] = self._stream.blocks()
        self._buffer = self._head = self._tail = b""
        self._at_end = self.is_skipping = False
        self.offset = 0

    def go_to(self, mark: Mark) -> None:
        """Go on behind a mark; refuse a file that holds other bytes before it."""
        while self.offset < mark.offset:
            self._fill()
            if not self._buffer:
                break
            self._use(min(len(self._buffer), mark.offset - self.offset))
        if self.mark().fingerprint != mark.fingerprint:
            raise BadFile(str(self.path), _NOT_THE_SAME)
        self.is_skipping = mark.is_skipping

    def _fill(self) -> None:
        while len(self._buffer) <= LONGEST and not self._at_end:
            block = next(self._blocks, None)
            self._at_end = block is None
            self._buffer += block or b""

    def _use(self, n_bytes: int) -> None:
        used, self._buffer = self._buffer[:n_bytes], self._buffer[n_bytes:]
        self._head = (self._head + used[:HEAD_BYTES])[:HEAD_BYTES]
        self._tail = (self._tail + used[-TAIL_BYTES:])[-TAIL_BYTES:]
        self.offset += n_bytes

    def lines(self, *, is_whole: bool = True) -> bytes:  # noqa: ARG002 - a compressed file does not grow
        """Give the next whole lines."""
        while True:
            self._fill()
            data = self._buffer[: max(self._batch_bytes, LONGEST + 1)]
            is_last = self._at_end and len(data) == len(self._buffer)
            chunk = whole_lines(data, is_last=is_last, is_skipping=self.is_skipping)
            self._use(chunk.n_used)
            self.is_skipping = chunk.is_skipping
            if chunk.lines or not data:
                return chunk.lines

    def mark(self) -> Mark:
        """Say where the reading stands."""
        seen = hashlib.sha256(self._head + self._tail).hexdigest()[:32]
        return Mark(file=str(self.path), offset=self.offset, fingerprint=seen, is_skipping=self.is_skipping)

    def close(self) -> None:
        """Close the file."""
        self._stream.close()
