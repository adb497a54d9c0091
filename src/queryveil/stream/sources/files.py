"""Events from files: read once to their end, or followed while they grow."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from queryveil.errors import BadFile
from queryveil.formats.streams import find_sources
from queryveil.stream.ports import Batch
from queryveil.stream.sources.marks import Mark
from queryveil.stream.sources.reading import CompressedFile, PlainFile, is_compressed


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
        """Give the next lines; None once there are no more."""
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
