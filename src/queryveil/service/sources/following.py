"""Events from a file that grows and is rotated, as `tail -F` follows it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Event

from queryveil.errors import BadFile, BadParameter
from queryveil.service.ports import Batch
from queryveil.service.sources.reading import Beside, Mark, PlainFile, is_compressed, rotated

_PAUSE_SECONDS = 0.05
_GONE = "the file that was being followed is gone or was emptied; reading the one that is there now"


class FollowedFile:
    """Read a file and wait for more, through rotation by renaming and by truncating.

    A file that was renamed is read until there is something in the new one: its writer may take a while to go over. Of
    a file that was copied and emptied, the rest is read from the copy. Started again, it finds files that were renamed
    in the meantime as long as they stand beside it uncompressed. The file need not be there yet.
    """

    def __init__(
        self, path: str | Path, *, batch_bytes: int = 1 << 20, tell: Callable[[str], None] = lambda _: None
    ) -> None:
        self.path, self._batch_bytes, self._tell = Path(path), batch_bytes, tell
        self._now: PlainFile | None = None
        self._seen: Mark | None = None
        self._closed = Event()

    def open(self, *, position: str | None, keys: Sequence[str]) -> None:  # noqa: ARG002 - a file knows no senders
        """Go on behind a position, in whatever file that is now."""
        if self.path.is_file() and is_compressed(self.path):
            raise BadParameter("source", self.path.name, allowed="a file that is not compressed with --follow")
        if self.path.is_dir():
            raise BadFile(str(self.path), "this is a folder; follow one file")
        mark = Mark.from_text(position or "")
        if mark is None:
            self._now = self._opened(self.path)
            return
        if not self._goes_on(self.path, mark) and not self._goes_on_elsewhere(mark):
            self._tell(_GONE)
            self._now = self._opened(self.path)

    def _goes_on(self, path: Path, mark: Mark) -> bool:
        found = self._opened(path)
        if found is None:
            return False
        if not mark.fits(found.descriptor):
            found.close()
            return False
        found.go_to(mark)
        self._now, self._seen = found, mark
        return True

    def _goes_on_elsewhere(self, mark: Mark) -> bool:
        """Go on in the file that has what the mark saw, whatever it is called now."""
        # Names move on with every rotation: what was found may have another one by the time it is opened.
        while found := rotated(self.path, mark):
            if self._goes_on(found[0].path, mark):
                return True
        return False

    def _open_next(self, before: PlainFile) -> None:
        """Open the file that came after one: the next that was renamed since, or the one that is there now.

        Where there is none just now, the one before stays open.
        """
        mark = before.mark()
        while True:
            later = rotated(self.path, mark)[1:2]
            found = self._opened(later[0].path if later else self.path)
            if found is None and not later:
                return
            if found is not None and self._is_next(found, later, mark):
                break
            if found is not None:
                found.close()
        before.close()
        self._now, self._seen = found, None

    def _is_next(self, found: PlainFile, later: list[Beside], mark: Mark) -> bool:
        """Return whether no rotation came in between, after which there would be another one before it."""
        return found.inode == later[0].inode if later else not rotated(self.path, mark)[1:]

    def _opened(self, path: Path) -> PlainFile | None:
        if not path.is_file():
            return None
        try:
            return PlainFile(path, batch_bytes=self._batch_bytes)
        except BadFile:
            # It may have been renamed just now.
            if path.is_file():
                raise
            return None

    def take(self, *, timeout: float) -> Batch | None:
        """Return the next lines as soon as there are some, or None after `timeout` seconds without any."""
        until = time.monotonic() + timeout
        while not self._closed.is_set():
            lines = self._next_lines()
            if lines and self._now is not None:
                self._seen = self._now.mark()
                return Batch(data=lines, position=self._seen.to_text())
            left = until - time.monotonic()
            if left <= 0:
                return None
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
            self._begin_again(self._now)
        return b"" if self._now is None else self._now.lines(is_whole=False)

    def _begin_again(self, file: PlainFile) -> None:
        """Go on with the rest of an emptied file where it was copied to, else with what is in it now."""
        if self._seen is not None and self._goes_on_elsewhere(self._seen):
            file.close()
        else:
            self._tell(_GONE)
            file.offset, file.is_skipping, self._seen = 0, False, None

    def _is_replaced(self, file: PlainFile) -> bool:
        try:
            there = self.path.stat()
        except OSError:
            there = None
        if there is not None and there.st_ino == file.inode:
            return False
        # While the new file is empty, lines may still come to the old one, unless others have come in between.
        return (there is not None and there.st_size > 0) or len(rotated(self.path, file.mark())) > 1

    def _was_emptied(self, file: PlainFile) -> bool:
        size = os.fstat(file.descriptor).st_size
        if size < file.offset:
            return True
        # It may have been emptied and have grown past the place since.
        return size > file.offset and self._seen is not None and not self._seen.fits(file.descriptor)

    @property
    def is_finished(self) -> bool:
        """Never: more may come."""
        return False

    def acknowledge(self, batch: Batch, *, bad_lines: Sequence[int]) -> None:
        """Do nothing: files keep what they have."""

    def close(self) -> None:
        """Stop waiting, and close the file."""
        self._closed.set()
        if self._now is not None:
            self._now.close()
            self._now = None
