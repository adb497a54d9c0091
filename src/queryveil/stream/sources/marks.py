"""Where in which file a stream stands, so that the place is found again whatever the file is called by then."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import NamedTuple

import msgspec

HEAD_BYTES = 1024
TAIL_BYTES = 256


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """A place in a file: how far it was read, and a fingerprint of its first bytes and of those before the place.

    `file` is the path it had. `is_skipping` says that the place is inside a line too long to be read.
    """

    file: str
    offset: int
    fingerprint: str
    inode: int = 0
    is_skipping: bool = False

    def to_text(self) -> str:
        """Give the mark as the position of a source."""
        return msgspec.json.encode(self).decode()

    @staticmethod
    def from_text(text: str) -> Mark | None:
        """Read a position; an empty one is none."""
        return msgspec.json.decode(text, type=Mark) if text else None

    def fits(self, descriptor: int) -> bool:
        """Say whether an open file has the same bytes around the place."""
        return os.fstat(descriptor).st_size >= self.offset and fingerprint(descriptor, self.offset) == self.fingerprint


def fingerprint(descriptor: int, offset: int) -> str:
    """Hash the first bytes of a file and the last ones before a place."""
    tail = min(offset, TAIL_BYTES)
    seen = os.pread(descriptor, min(offset, HEAD_BYTES), 0) + os.pread(descriptor, tail, offset - tail)
    return hashlib.sha256(seen).hexdigest()[:32]


class Beside(NamedTuple):
    """A file beside the one that is followed."""

    modified: int
    inode: int
    path: Path


def rotated(path: Path, mark: Mark) -> list[Beside]:
    """Find the file of a mark after it was renamed, and the files that came between it and the one at `path` now.

    The first is the file of the mark; nothing if it is gone. Those behind it have names like its own but for digits:
    what else begins with the same name may be anything, the released lines themselves too.
    """
    beside = []
    for entry in os.scandir(path.absolute().parent):
        if entry.name.startswith(path.name) and entry.name != path.name and entry.is_file():
            status = entry.stat()
            beside.append(Beside(status.st_mtime_ns, status.st_ino, Path(entry.path)))
    beside.sort()
    # An inode is used again for another file, so it alone proves nothing; but it saves reading all of them.
    same = [each for each in beside if each.inode == mark.inode]
    others = beside if mark.offset > HEAD_BYTES else []
    found = next((each for each in (*same, *others) if _fits(each.path, mark)), None)
    if found is None:
        return []
    later = beside[beside.index(found) + 1 :]
    return [found, *(each for each in later if _shape(each.path) == _shape(found.path))]


def _shape(file: Path) -> str:
    return re.sub(r"[0-9]+", "0", file.name)


def _fits(file: Path, mark: Mark) -> bool:
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return mark.fits(descriptor)
    finally:
        os.close(descriptor)
