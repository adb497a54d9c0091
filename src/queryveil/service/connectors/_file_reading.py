"""Read whole lines of a file from any offset."""

import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Self

import msgspec

from queryveil.errors import BadFile, BadInput
from queryveil.formats.records import MAX_RECORD_BYTES
from queryveil.formats.streams import ByteStream

HEAD_BYTES = 1024
TAIL_BYTES = 256


class FilePosition(msgspec.Struct, frozen=True, kw_only=True):
    """A place in a file: how far it was read, and a fingerprint of its first bytes and of those before the place.

    `file` is the path it had. `is_skipping` says that the place is inside a line too long to be read.
    """

    file: str
    offset: Annotated[int, msgspec.Meta(ge=0)]
    fingerprint: str
    inode: int = 0
    is_skipping: bool = False

    def to_text(self) -> str:
        return msgspec.json.encode(self).decode()

    @classmethod
    def from_text(cls, text: str) -> Self | None:
        """Read a position; an empty one is none."""
        try:
            return msgspec.json.decode(text, type=cls) if text else None
        except (msgspec.MsgspecError, RecursionError):
            raise BadInput("the state is of another source than a file; name another --store") from None


def find_rotated(path: Path, position: FilePosition) -> list[os.DirEntry[str]]:
    """Find the file of a position after it was renamed, and the files that came between it and the one at `path` now.

    The first is the file of the position; nothing if it is gone. Later ones have names like its own but for digits:
    what else begins with the same name may be anything, the released lines themselves too.
    """
    beside = [
        entry
        for entry in os.scandir(path.absolute().parent)
        if entry.name.startswith(path.name) and entry.name != path.name and entry.is_file()
    ]
    beside.sort(key=lambda each: (each.stat().st_mtime_ns, each.inode()))
    # An inode is used again for another file, so it alone proves nothing; but it saves reading all of them.
    same = [each for each in beside if each.stat().st_ino == position.inode]
    others = beside if position.offset > HEAD_BYTES else []
    found = next((each for each in (*same, *others) if _matches(Path(each.path), position)), None)
    if found is None:
        return []
    later = beside[beside.index(found) + 1 :]
    return [found, *(each for each in later if _shape(each.name) == _shape(found.name))]


def _shape(name: str) -> str:
    return re.sub(r"[0-9]+", "0", name)


def _matches(path: Path, position: FilePosition) -> bool:
    try:
        with closing(PlainFile(path)) as file:
            return file.matches(position)
    except BadFile:
        return False


# One byte more than readers take, so that what is left of a longer line is refused as too long.
LONGEST = MAX_RECORD_BYTES + 1


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CutLines:
    """Whole lines, how many bytes were used up for them, and whether the rest of a line too long is still to come."""

    lines: bytes
    n_used: int
    is_skipping: bool = False


def cut_lines(data: bytes, *, is_last: bool, is_skipping: bool = False) -> CutLines:
    r"""Cut what has been read at its last line end; at the end of a file also take a line that has none.

    A line longer than readers take is cut short, so that they count it as bad, and the rest of it is skipped.

    >>> cut_lines(b"one\ntwo\nthr", is_last=False).lines
    b'one\ntwo\n'
    """
    begin = data.find(b"\n") + 1 if is_skipping else 0
    if is_skipping and not begin:
        return CutLines(lines=b"", n_used=len(data), is_skipping=not is_last)
    end = data.rfind(b"\n") + 1
    if end > begin:
        return CutLines(lines=data[begin:end], n_used=end)
    rest = data[begin:]
    if rest and is_last:
        return CutLines(lines=rest + b"\n", n_used=len(data))
    if len(rest) > LONGEST:
        return CutLines(lines=rest[:LONGEST] + b"\n", n_used=len(data), is_skipping=True)
    return CutLines(lines=b"", n_used=begin)


_MAGIC = (b"\x1f\x8b", b"BZh", b"\x28\xb5\x2f\xfd")
_NOT_THE_SAME = "this is not the file that was read before; put that one back, or name another --store"


def is_compressed(path: Path) -> bool:
    """Return whether a file has the beginning of one that gzip, bzip2 or zstd made."""
    with closing(PlainFile(path)) as file:
        return file.read(4, 0).startswith(_MAGIC)


class PlainFile:
    """A file that is not compressed; it may still grow."""

    def __init__(self, path: Path, *, batch_bytes: int = 0) -> None:
        self.path, self._batch_bytes = path, batch_bytes
        self.offset, self.inode, self.is_skipping = 0, 0, False
        self._open()

    def _open(self) -> None:
        try:
            self.descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            raise BadFile(str(self.path), "there is no such file") from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or type(error).__name__
            raise BadFile(str(self.path), f"cannot be opened: {reason.lower()}") from None
        self.inode = os.fstat(self.descriptor).st_ino

    def read(self, size: int, offset: int) -> bytes:
        """Return bytes from a place on, fewer than `size` at the end."""
        return os.pread(self.descriptor, size, offset)

    def fingerprint(self, offset: int) -> str:
        """Hash the first bytes and the last ones before a place."""
        tail = min(offset, TAIL_BYTES)
        seen = self.read(min(offset, HEAD_BYTES), 0) + self.read(tail, offset - tail)
        return hashlib.sha256(seen).hexdigest()[:32]

    def matches(self, position: FilePosition) -> bool:
        """Return whether this file has the same bytes around the place."""
        return self.fingerprint(position.offset) == position.fingerprint

    def seek(self, position: FilePosition) -> None:
        """Resume after a position; refuse a file that has other bytes before it."""
        if not self.matches(position):
            raise BadFile(str(self.path), _NOT_THE_SAME)
        self.offset, self.is_skipping = position.offset, position.is_skipping

    def lines(self, *, is_whole: bool) -> bytes:
        """Return the next whole lines; of a file that is `whole` also a last line without an end."""
        for size in (self._batch_bytes, max(self._batch_bytes, LONGEST + 1)):
            data = self.read(size, self.offset)
            is_last = is_whole and len(data) < size
            chunk = cut_lines(data, is_last=is_last, is_skipping=self.is_skipping)
            self.offset, self.is_skipping = self.offset + chunk.n_used, chunk.is_skipping
            if chunk.lines or len(data) < size:
                return chunk.lines
        return self.lines(is_whole=is_whole)

    def position(self) -> FilePosition:
        return FilePosition(
            file=str(self.path),
            offset=self.offset,
            fingerprint=self.fingerprint(self.offset),
            inode=self.inode,
            is_skipping=self.is_skipping,
        )

    def close(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


class CompressedFile(PlainFile):
    """A compressed file, read once from its beginning on; places in it are counted in the bytes that it holds."""

    def _open(self) -> None:
        self._stream = ByteStream(self.path)
        self._blocks: Iterator[bytes] = self._stream.blocks()
        self._head = self._stream.head[:HEAD_BYTES]
        self._held, self._begin = b"", 0

    def read(self, size: int, offset: int) -> bytes:
        """Return bytes from a place on; of what lies behind the last place, only what fingerprints need is there."""
        if offset + size <= len(self._head):
            return self._head[offset : offset + size]
        while self._begin + len(self._held) < offset + size and (block := next(self._blocks, b"")):
            n_gone = min(len(self._held), max(0, offset - TAIL_BYTES - self._begin))
            self._held, self._begin = self._held[n_gone:] + block, self._begin + n_gone
        begin = offset - self._begin
        return self._held[begin : begin + size]

    def close(self) -> None:
        self._stream.close()
