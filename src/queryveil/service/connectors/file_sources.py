"""Files, rotated files and pipes as sources."""

import os
import select
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Event

from queryveil.errors import BadFile, BadParameter
from queryveil.formats.streams import find_sources
from queryveil.service.connectors import _file_reading as files
from queryveil.service.ports import Batch, Source


class FilesSource(Source):
    """Read a file, or those that a glob names in the order of their names; compressed ones are decompressed.

    After a restart it resumes at its position: with what was added to the last file, and with files whose names sort
    behind it.

    - `source`: a path or a glob.
    - `batch_bytes`: how many bytes to take at once.
    """

    def __init__(self, source: str | Path, *, batch_bytes: int = 1 << 20) -> None:
        self._source, self._batch_bytes = source, batch_bytes
        self._waiting: list[Path] = []
        self._now: files.PlainFile | None = None

    def open(self, *, position: str | None, keys: Sequence[str]) -> None:  # noqa: ARG002 - files know no senders
        """Resume after a position; the file that it is in must be there and still have what was read."""
        self._waiting = [path for path in find_sources(self._source) if path is not None]
        for path in self._waiting:
            if path.is_dir():
                raise BadFile(str(path), "this is a folder; give its files, for example as 'folder/*.tsv'")
        last = files.FilePosition.from_text(position or "")
        if last is not None:
            self._waiting = [path for path in self._waiting if str(path) >= last.file]
            if not self._waiting or str(self._waiting[0]) != last.file:
                raise BadFile(last.file, "the file that was being read is gone; put it back, or name another --store")
        self._open_next()
        if last is not None and self._now is not None:
            self._now.seek(last)

    def _open_next(self) -> None:
        self._now = None
        if self._waiting:
            path = self._waiting.pop(0)
            kind = files.CompressedFile if files.is_compressed(path) else files.PlainFile
            self._now = kind(path, batch_bytes=self._batch_bytes)

    def take(self, *, timeout: float) -> Batch | None:  # noqa: ARG002 - files do not keep one waiting
        while self._now is not None:
            lines = self._now.lines(is_whole=True)
            if lines:
                return Batch(data=lines, position=self._now.position().to_text())
            self._now.close()
            self._open_next()
        return None

    @property
    def is_finished(self) -> bool:
        return self._now is None

    def close(self) -> None:
        if self._now is not None:
            self._now.close()
            self._now = None
            self._waiting = []


_READ_BYTES = 1 << 16


class StdinSource(Source):
    """Read lines as they are piped in.

    A pipe cannot be read twice: lines that were taken and not yet committed when the process was killed are gone. Where
    nothing may be lost, read a file, Redis, Kafka or HTTP.

    - `batch_bytes`: how many bytes to take at once.
    - `descriptor`: an open pipe; None is stdin.
    """

    def __init__(self, *, batch_bytes: int = 1 << 20, descriptor: int | None = None) -> None:
        self._descriptor = sys.stdin.fileno() if descriptor is None else descriptor
        self._batch_bytes = batch_bytes
        self._buffer = b""
        self._is_skipping = self._is_closed = self._at_end = False

    def open(self, *, position: str | None, keys: Sequence[str]) -> None:
        """Begin with whatever comes; a pipe knows no position."""

    def take(self, *, timeout: float) -> Batch | None:
        until = time.monotonic() + timeout
        while True:
            self._fill(max(0.0, until - time.monotonic()))
            chunk = files.cut_lines(self._buffer, is_last=self._at_end, is_skipping=self._is_skipping)
            self._buffer, self._is_skipping = self._buffer[chunk.n_used :], chunk.is_skipping
            if chunk.lines:
                return Batch(data=chunk.lines, position="")
            if self._at_end or self._is_closed or time.monotonic() >= until:
                return None

    def _fill(self, seconds: float) -> None:
        """Read what is there, up to the size of a batch, and wait only while there is nothing."""
        found, has_line = bytearray(self._buffer), b"\n" in self._buffer
        while not self._at_end and not self._is_closed:
            is_enough = len(found) >= (self._batch_bytes if has_line else files.LONGEST + 1)
            if is_enough or not select.select([self._descriptor], [], [], seconds)[0]:
                break
            data = os.read(self._descriptor, _READ_BYTES)
            found += data
            self._at_end, has_line, seconds = not data, has_line or b"\n" in data, 0.0
        self._buffer = bytes(found)

    @property
    def is_finished(self) -> bool:
        return self._at_end and not self._buffer

    def close(self) -> None:
        self._is_closed = True


_PAUSE_SECONDS = 0.05
_GONE = "the file that was being followed is gone or was emptied; reading the one that is there now"


class FollowedFile(Source):
    """Read a file and wait for more, through rotation by renaming and by truncating.

    A file that was renamed is read until there is something in the new one: its writer may take a while to go over. Of
    a file that was copied and emptied, the rest is read from the copy. Started again, it finds files that were renamed
    in the meantime as long as they stand beside it uncompressed. The file need not be there yet.

    - `path`: the file, as its writer calls it.
    - `batch_bytes`: how many bytes to take at once.
    - `tell`: called with a line when the file that was being followed is gone.
    """

    def __init__(
        self, path: str | Path, *, batch_bytes: int = 1 << 20, tell: Callable[[str], None] = lambda _: None
    ) -> None:
        self.path, self._batch_bytes, self._tell = Path(path), batch_bytes, tell
        self._now: files.PlainFile | None = None
        self._seen: files.FilePosition | None = None
        self._closed = Event()

    def open(self, *, position: str | None, keys: Sequence[str]) -> None:  # noqa: ARG002 - a file knows no senders
        """Resume after a position, in whatever file that is now."""
        if self.path.is_file() and files.is_compressed(self.path):
            raise BadParameter("source", self.path.name, allowed="a file that is not compressed with --follow")
        if self.path.is_dir():
            raise BadFile(str(self.path), "this is a folder; follow one file")
        last = files.FilePosition.from_text(position or "")
        if last is not None:
            if self._goes_on(self.path, last) or self._goes_on_elsewhere(last):
                return
            self._tell(_GONE)
        self._now = self._opened(self.path)

    def _goes_on(self, path: Path, position: files.FilePosition) -> bool:
        found = self._opened(path)
        if found is None:
            return False
        try:
            found.seek(position)
        except BadFile:
            found.close()
            return False
        self._now, self._seen = found, position
        return True

    def _goes_on_elsewhere(self, position: files.FilePosition) -> bool:
        """Resume in the file that has the bytes before the position, whatever it is called now."""
        # Names move on with every rotation: what was found may have another one by the time it is opened.
        while found := files.find_rotated(self.path, position):
            if self._goes_on(Path(found[0].path), position):
                return True
        return False

    def _open_next(self, before: files.PlainFile) -> None:
        """Open the file that came after one: the next that was renamed since, or what is there now, if anything."""
        position = before.position()
        while True:
            later = files.find_rotated(self.path, position)[1:2]
            found = self._opened(Path(later[0].path) if later else self.path)
            if found is None and not later:
                return
            if found is not None:
                # After a rotation in between there would be another one before it.
                if found.inode == later[0].stat().st_ino if later else not files.find_rotated(self.path, position)[1:]:
                    break
                found.close()
        before.close()
        self._now, self._seen = found, None

    def _opened(self, path: Path) -> files.PlainFile | None:
        if not path.is_file():
            return None
        try:
            return files.PlainFile(path, batch_bytes=self._batch_bytes)
        except BadFile:
            # It may have been renamed just now.
            if path.is_file():
                raise
            return None

    def take(self, *, timeout: float) -> Batch | None:
        until = time.monotonic() + timeout
        while not self._closed.is_set():
            lines = self._next_lines()
            if lines and self._now is not None:
                self._seen = self._now.position()
                return Batch(data=lines, position=self._seen.to_text())
            left = until - time.monotonic()
            if left <= 0:
                break
            self._closed.wait(min(left, _PAUSE_SECONDS))
        return None

    def _next_lines(self) -> bytes:
        if self._now is None:
            self._now = self._opened(self.path)
        elif self._is_replaced(self._now):
            # What its writer added before it went over to the new file, its last line even without an end.
            lines = self._now.lines(is_whole=True)
            if lines:
                return lines
            self._open_next(self._now)
        elif self._was_emptied(self._now):
            # The rest of it may be where it was copied to.
            file = self._now
            if self._seen is not None and self._goes_on_elsewhere(self._seen):
                file.close()
            else:
                self._tell(_GONE)
                file.offset, file.is_skipping, self._seen = 0, False, None
        return b"" if self._now is None else self._now.lines(is_whole=False)

    def _is_replaced(self, file: files.PlainFile) -> bool:
        try:
            there = self.path.stat()
        except OSError:
            there = None
        if there is not None and there.st_ino == file.inode:
            return False
        # While the new file is empty, lines may still come to the old one, unless others have come in between.
        return (there is not None and there.st_size > 0) or len(files.find_rotated(self.path, file.position())) > 1

    def _was_emptied(self, file: files.PlainFile) -> bool:
        size = os.fstat(file.descriptor).st_size
        if size < file.offset:
            return True
        # It may have been emptied and have grown past the place since.
        return size > file.offset and self._seen is not None and not file.matches(self._seen)

    def close(self) -> None:
        self._closed.set()
        if self._now is not None:
            self._now.close()
            self._now = None
