"""What lies in a release folder: its files, each read once through one descriptor, and all else by name and kind."""

import hashlib
import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from queryveil.errors import BadRelease
from queryveil.formats.shape import Shape
from queryveil.formats.streams import Content
from queryveil.release.manifest import MANIFEST, DataFile, sum_of_parts

SIGNATURE = "manifest.sig"
_KINDS = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "folder",
    stat.S_IFLNK: "link",
    stat.S_IFIFO: "pipe",
    stat.S_IFSOCK: "socket",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """The contents of a release folder other than the data, when it was read.

    - `others`: what the manifest does not list: the kind of each by its path in the folder.
    - `shapes`: the columns of each data file as they stand there.
    - `absent`: the columns that the manifest names and a data file does not have, by their role.
    - `manifest`, `signature`: the bytes of the manifest, and its signature; None where there is none.
    """

    others: Mapping[str, str] = field(default_factory=dict)
    shapes: Mapping[str, Shape] = field(default_factory=dict)
    absent: tuple[str, ...] = ()
    manifest: bytes = field(default=b"", repr=False)
    signature: bytes | None = field(default=None, repr=False)


class OpenFolder:
    """A release folder, opened once: what is read is in this folder, whatever its name leads to later."""

    def __init__(self, path: Path, *, inside: Self | None = None, name: str = "") -> None:
        self.path, self._place = path, f"{name}/" if name else ""
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
        try:
            if inside is None:
                self._handle = os.open(path, flags)
            else:
                self._handle = os.open(name, flags | os.O_NOFOLLOW, dir_fd=inside._handle)
        except OSError as error:
            raise BadRelease(str(path), f"{name or 'the folder'} cannot be opened: {_reason(error)}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._handle)

    def inner(self, name: str) -> Self:
        """Open a folder in this one."""
        return type(self)(self.path, inside=self, name=name)

    def kinds(self) -> dict[str, str]:
        """Return the kind of everything in the folder by its name, hidden names too; nothing is opened for that."""
        return {name: self.kind(name) for name in sorted(os.listdir(self._handle))}  # noqa: PTH208 - of what was opened

    def kind(self, name: str) -> str:
        """Return what lies there under a name: file, folder, link, pipe, socket or device, or nothing."""
        found = self._stat(name)
        return "" if found is None else _KINDS.get(stat.S_IFMT(found.st_mode), "device")

    def identities(self, names: Iterable[str]) -> set[object]:
        """Return the device and inode of each file; for one that is missing, its name."""
        found = {name: self._stat(name) for name in names}
        return {name if status is None else (status.st_dev, status.st_ino) for name, status in found.items()}

    def _stat(self, name: str) -> os.stat_result | None:
        try:
            return os.stat(name, dir_fd=self._handle, follow_symlinks=False)
        except (OSError, ValueError):
            return None

    def read(self, name: str) -> bytes:
        """Return the bytes of a file; raise if it is missing, or anything but a file."""
        kind = self.kind(name)
        if kind != "file":
            raise self._fault(name, f"is a {kind}, and a release is made of files" if kind else "is missing")
        try:
            # Nothing here waits: what took the file's place since may be a pipe.
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            with os.fdopen(os.open(name, flags, dir_fd=self._handle), "rb") as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise self._fault(name, "was replaced while it was read")
                return file.read()
        except MemoryError:
            reason = "is larger than the memory of this machine; verify it with --engine spark"
            raise self._fault(name, reason) from None
        except OSError as error:
            raise self._fault(name, f"cannot be read: {_reason(error)}") from None

    def checked(self, name: str, sha256: str) -> Content:
        """Return a file if its bytes, these and no others, are those that the manifest was written for."""
        data = self.read(name)
        if hashlib.sha256(data).hexdigest() != sha256:
            raise self._fault(name, f"is not the file that {MANIFEST} was written for (sha256 differs)")
        return Content(name, data)

    def _fault(self, name: str, reason: str) -> BadRelease:
        return BadRelease(str(self.path), f"{self._place}{name} {reason}")


def _reason(error: OSError) -> str:
    return (error.strerror or "for an unknown reason").lower()


def read_files(folder: OpenFolder, data: DataFile) -> tuple[list[Content], dict[str, str]]:
    """Return the files of a release, if they are those that its manifest was written for, and what is beside parts."""
    if Path(data.name).name != data.name or any(Path(part.name).name != part.name for part in data.parts):
        raise BadRelease(str(folder.path), f"{MANIFEST} names no data file")
    if not data.parts:
        return [folder.checked(data.name, data.sha256)], {}
    # Listed twice, a part would count twice.
    is_doubled = len({part.name for part in data.parts}) < len(data.parts)
    if is_doubled or data.kind in ("queries", "clicks") or data.sha256 != sum_of_parts(data.parts):
        raise BadRelease(str(folder.path), f"the parts that {MANIFEST} lists are not those it was written for")
    if not folder.kind(data.name):
        raise BadRelease(str(folder.path), f"{data.name} is missing")
    with folder.inner(data.name) as parts:
        listed = {part.name for part in data.parts}
        if len(parts.identities(listed)) < len(listed):
            raise BadRelease(str(folder.path), f"parts of {data.name} are the same file under several names")
        others = {f"{data.name}/{name}": kind for name, kind in parts.kinds().items() if name not in listed}
        return [parts.checked(part.name, part.sha256) for part in data.parts], others
