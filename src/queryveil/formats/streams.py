"""Open files, globs and stdin as streams of decompressed bytes."""

import glob
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import IO, Any, Self

import pyarrow as pa

from queryveil.errors import BadFile, NamedTwice
from queryveil.progress import step

BLOCK_BYTES = 32 << 20
HEAD_BYTES = 1 << 16

_MAGIC = {b"\x1f\x8b": "gz", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zst"}
CODECS = {"gz": "gzip", "bz2": "bz2", "zst": "zstd"}
"""File extensions of compressed files, and the names of their codecs."""

_WIDE_MARKS = {
    b"\xff\xfe\x00\x00": "UTF-32",
    b"\x00\x00\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}
_CANNOT_OPEN: dict[type[Exception], str] = {
    IsADirectoryError: "this is a folder; give its files, for example as 'folder/*.tsv'",
    FileNotFoundError: "there is no such file",
    PermissionError: "no permission to read it",
}
_UTF8_MARK = b"\xef\xbb\xbf"

Source = str | Path | Sequence[str | Path]


@dataclass(frozen=True, slots=True, repr=False)
class Content:
    """The bytes of a file that was read already, under its name."""

    name: str
    data: bytes

    def __repr__(self) -> str:
        # Privacy: the bytes stay out of it.
        return f"Content({self.name!r}, {len(self.data)} bytes)"


def find_sources(source: Source) -> list[Path | None]:
    """Return the files that a path, a glob or a list of paths names (None is stdin); raise if one is named twice."""
    if not isinstance(source, str | Path) and not source:
        raise BadFile("the list of files", "it is empty; give at least one file")
    found = [path for one in ([source] if isinstance(source, str | Path) else source) for path in _named(one)]
    seen: dict[object, Path | None] = {}
    for path in found if len(found) > 1 else ():
        # Whatever its names and links: its people would count twice.
        identity = identity_of(path)
        if identity is not None and identity in seen:
            raise NamedTwice("-" if path is None else str(path), first=str(seen[identity] or "-"))
        seen[identity] = path
    return found


def identity_of(path: Path | None) -> object:
    """Return what tells a file from others, whatever it is called; None for one that is not there."""
    try:
        status = os.fstat(sys.stdin.fileno()) if path is None else path.stat()
    except (OSError, ValueError):
        # Where stdin is no file of the system there is still only one of it.
        return "-" if path is None else None
    return (status.st_dev, status.st_ino) if status.st_ino else str(path and path.resolve())


def _named(source: str | Path) -> list[Path | None]:
    if str(source) == "-":
        return [None]
    if glob.has_magic(str(source)) and not os.path.lexists(source):
        names = glob.glob(str(source), recursive=True)  # noqa: PTH207 - Path.glob takes no absolute pattern
        found = sorted(Path(name) for name in names if not os.path.isdir(name))  # noqa: PTH112 - is_dir may raise
        if not found:
            raise BadFile(str(source), "no file matches; check the pattern and the folder")
        return list(found)
    return [Path(source)]


class _Prefixed:
    """A binary file whose first bytes have been read already."""

    def __init__(self, prefix: bytes, file: IO[bytes]) -> None:
        self._prefix, self._file, self.closed = prefix, file, False

    def read(self, size: int = -1) -> bytes:
        taken, self._prefix = self._prefix, b""
        return taken or self._file.read(size)

    def close(self) -> None:
        self.closed = True


class ByteStream:
    """The decompressed content of one file, of stdin (`path` is None), or of given bytes (`path` is only their name).

    Attributes are `name` (for messages), `compression` (extension, or empty) and `head`, the first bytes.
    """

    def __init__(self, path: Path | None, *, data: bytes | None = None) -> None:
        self.path = path
        self._data = data
        self.name = "stdin" if path is None else path.name
        self._raw = self._open()
        try:
            prefix = self._guarded(self._raw, 4)
            self.compression = self._compression(prefix)
            self._plain: Any = _Prefixed(prefix, self._raw)
            if self.compression:
                packed = pa.PythonFile(self._plain, mode="r")
                self._plain = pa.CompressedInputStream(packed, CODECS[self.compression])
            self.head = self._decoded_head()
        except BaseException:
            self.close()
            raise

    def _open(self) -> IO[bytes]:
        if self._data is not None:
            return BytesIO(self._data)
        if self.path is None:
            return sys.stdin.buffer
        try:
            return self.path.open("rb")
        except (OSError, ValueError) as error:
            reason = _CANNOT_OPEN.get(type(error)) or f"cannot be opened: {_plainly(error)}"
            raise BadFile(str(self.path), reason) from None

    def _compression(self, prefix: bytes) -> str:
        found = next((ending for magic, ending in _MAGIC.items() if prefix.startswith(magic)), "")
        claimed = "" if self.path is None else self.path.suffix.lower().removeprefix(".")
        if claimed in CODECS and found != claimed and prefix:
            raise BadFile(self.name, f"the ending says {CODECS[claimed]}, but the content is not {CODECS[claimed]}")
        return found

    def _decoded_head(self) -> bytes:
        head = b""
        while len(head) < HEAD_BYTES and (more := self._guarded(self._plain, HEAD_BYTES - len(head))):
            head += more
        wide = next((name for mark, name in _WIDE_MARKS.items() if head.startswith(mark)), None)
        if wide is not None:
            raise BadFile(self.name, f"the text is {wide}; convert it to UTF-8")
        head = head.removeprefix(_UTF8_MARK)
        if not head:
            raise BadFile(self.name, "the file is empty")
        return head

    def _guarded(self, file: Any, size: int) -> bytes:
        try:
            return bytes(file.read(size))
        except (OSError, pa.ArrowException) as error:
            if "Truncated" in str(error):
                reason = f"the {CODECS[self.compression]} data ends in the middle; copy the file again"
            elif file is not self._raw and self.compression:
                reason = f"the {CODECS[self.compression]} data is damaged; copy the file again"
            else:
                reason = f"cannot be read: {_plainly(error)}"
            raise BadFile(self.name, reason) from None

    def blocks(self) -> Iterator[bytes]:
        """Yield all bytes, the head first, in blocks of bounded size."""
        total = 0 if self.path is None or self._data is not None else self.path.stat().st_size
        block = self.head + self._guarded(self._plain, BLOCK_BYTES - len(self.head))
        while block:
            yield block
            if total:
                step("read", min(1.0, self._raw.tell() / total))
            block = self._guarded(self._plain, BLOCK_BYTES)

    def seekable(self) -> Any:
        """Return the content as a seekable file: the path itself where possible, else a buffer in memory."""
        if self.path is not None and self._data is None and not self.compression and self.path.is_file():
            return self.path
        return BytesIO(b"".join(self.blocks()))

    def close(self) -> None:
        """Close the file; stdin stays open."""
        if self.path is not None:
            self._raw.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_streams(source: Source | Sequence[Content]) -> Iterator[ByteStream]:
    """Return the streams of all files that a source names, one after another, or of what was read already."""
    contents = [] if isinstance(source, str | Path) else [each for each in source if isinstance(each, Content)]
    if contents:
        return (ByteStream(Path(each.name), data=each.data) for each in contents)
    return (ByteStream(path) for path in find_sources(source))  # type: ignore[arg-type]


def _plainly(error: Exception) -> str:
    number = getattr(error, "errno", None)
    return os.strerror(number).lower() if number else type(error).__name__
