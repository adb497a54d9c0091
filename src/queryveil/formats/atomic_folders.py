"""Write a folder whole or not at all: build it beside its target, then exchange the two in one step."""

import ctypes
import errno
import fcntl
import hashlib
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from glob import escape
from pathlib import Path
from typing import BinaryIO

from queryveil.errors import NotWritten, OutputBusy, ReleaseExists

_NO_REPLACE, _EXCHANGE, _WORKING_FOLDER = 1, 2, -100
_CANNOT = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM)
_OWNER_ONLY = 0o600
_CLAIMED: ContextVar[tuple[Path, ...]] = ContextVar("claimed", default=())


def check_writable(path: Path) -> None:
    """Raise if no folder can be created beside the target; one is created and removed again."""
    trial = path.absolute().parent / f".{path.name}.partial-{secrets.token_hex(8)}"
    try:
        trial.mkdir()
        trial.rmdir()
    except OSError as error:
        raise NotWritten(str(path), error.strerror, so="nothing was released") from None


@contextmanager
def new_file(path: Path, *, mode: int = _OWNER_ONLY, replace: bool = False, so: str = "") -> Iterator[BinaryIO]:
    """Open a file that is not there, for its owner only if not said otherwise; when the block ends it is on the disk.

    `replace` removes what a killed run has left under that name; `so` is what follows if it cannot be written.
    """
    try:
        if replace:
            path.unlink(missing_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        try:
            with os.fdopen(handle, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
        except BaseException:
            with suppress(OSError):
                path.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise NotWritten(str(path), error.strerror, so=so) from None


@contextmanager
def claimed(path: Path) -> Iterator[None]:
    """Keep other runs from writing to a target until the block ends; raise if another one is at it.

    The block may claim the target again. Where the disk has no locks, the run that ends last finds what was written.
    """
    target = path.absolute()
    if target in _CLAIMED.get():
        yield
        return
    lock = target.with_name(f".{target.name}.lock")
    handle = _take(lock, path)
    token = _CLAIMED.set((*_CLAIMED.get(), target))
    try:
        yield
    finally:
        _CLAIMED.reset(token)
        # While it is locked: whoever waits for it must find another file, or none.
        with suppress(OSError):
            lock.unlink(missing_ok=True)
        os.close(handle)


def _take(lock: Path, path: Path) -> int:
    """Return the descriptor of a lock file that this run has, and that is still there under its name."""
    try:
        while True:
            handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _OWNER_ONLY)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.path.samestat(os.fstat(handle), lock.stat()):
                    return handle
            except BlockingIOError:
                os.close(handle)
                raise OutputBusy(str(path)) from None
            except FileNotFoundError:
                pass
            except OSError:
                # Some network disks have no locks.
                return handle
            os.close(handle)
    except OSError as error:
        raise NotWritten(str(path), error.strerror, so="nothing was released") from None


@contextmanager
def whole(path: Path, *, force: bool, beside: Mapping[Path, Path] | None = None) -> Iterator[Path]:
    """Yield a temporary folder that gets the name of the target when the block ends without an error.

    With `force` a folder of that name is replaced. `beside` are files that belong to the folder and are kept outside,
    such as its key: what they are called until then, and the names that they get with the folder (see `belonging`).
    """
    parent, mark, files = path.absolute().parent, secrets.token_hex(8), dict(beside or {})
    partial, label, is_put = parent / f".{path.name}.partial-{mark}", "", False
    with claimed(path):
        tidy(path, *files.values())
        try:
            partial.mkdir()
            with _locked(partial):
                yield partial
                for file in partial.iterdir():
                    sync_to_disk(file)
                sync_to_disk(partial)
                label = _label(partial) or "none"
                for made, name in files.items():
                    made.rename(_waiting(name, label))
                    sync_to_disk(name.absolute().parent)
                _put(partial, path, old=parent / f".{path.name}.old-{mark}", force=force)
                is_put = True
                sync_to_disk(parent)
                for name in files.values():
                    _waiting(name, label).replace(name)
                    sync_to_disk(name.absolute().parent)
        except (OSError, NotWritten) as error:
            why = error.why if isinstance(error, NotWritten) else error.strerror
            so = "it has its place, and a power cut may undo that" if is_put else "nothing was released"
            raise NotWritten(str(path), why, so=so) from None
        finally:
            # Here too where it was interrupted: what is on disk says how far it came.
            for name in files.values():
                _settle(name, path, label=label)
            _restore(path)
            shutil.rmtree(partial, ignore_errors=True)


def _put(partial: Path, path: Path, *, old: Path, force: bool) -> None:
    """Give the finished folder its name; an earlier one has that of the finished one then, or that of an old one."""
    try:
        if _rename(partial, path, _NO_REPLACE):
            return
        is_there = os.path.lexists(path)
    except FileExistsError:
        is_there = True
    if not is_there:
        partial.rename(path)
    elif not force:
        # It was not there when the work began: somebody else has made it since.
        raise ReleaseExists(str(path))
    elif not _rename(partial, path, _EXCHANGE):
        # Between these two there is none; whatever comes in between, `_restore` takes the old one back.
        path.rename(old)
        partial.rename(path)


def _rename(source: Path, target: Path, flag: int) -> bool:
    """Rename without replacing, or exchange two names, in one step; return False where the system or disk cannot."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    if rename(_WORKING_FOLDER, os.fsencode(source), _WORKING_FOLDER, os.fsencode(target), flag):
        code = ctypes.get_errno()
        if code not in _CANNOT:
            raise OSError(code, os.strerror(code))
        return False
    return True


def tidy(path: Path, *beside: Path) -> None:
    """Finish or remove what killed runs left of a folder and of the files beside it; the target must be claimed."""
    _restore(path)
    for name in beside:
        for waiting in name.absolute().parent.glob(f"{escape(_waiting(name, '').name)}*"):
            _settle(name, path, label=waiting.name.rpartition("-")[2])
    _sweep(path.absolute().parent, f".{path.name}.partial-")


def _restore(path: Path) -> None:
    """Take back an old folder that was moved aside for one that did not come, or remove it if that came."""
    beginning = f".{path.name}.old-"
    with suppress(OSError):
        for old in path.absolute().parent.glob(f"{escape(beginning)}*"):
            if not os.path.lexists(path):
                old.rename(path)
        _sweep(path.absolute().parent, beginning)


def belonging(name: Path, folder: Path) -> Path:
    """Return the file that belongs to a folder: the one of this name, or one that a killed run could not name yet.

    Until it is renamed, here or there, a new file waits under a name with the checksum of the folder's manifest.
    """
    waiting = _waiting(name, _label(folder) or "none")
    if not waiting.is_file():
        return name
    with suppress(OSError):
        waiting.replace(name)
    return waiting if waiting.is_file() else name


def _settle(name: Path, folder: Path, *, label: str) -> None:
    """Rename the file that waits for a folder if that is in its place, and remove it otherwise."""
    with suppress(OSError):
        if label and _label(folder) == label:
            _waiting(name, label).replace(name)
        elif label:
            _waiting(name, label).unlink(missing_ok=True)


def _waiting(name: Path, label: str) -> Path:
    return name.with_name(f".{name.name}.for-{label}")


def _label(folder: Path) -> str | None:
    """Return what tells a release from every other: the checksum of its manifest, which has those of its files."""
    try:
        return hashlib.sha256((folder / "manifest.json").read_bytes()).hexdigest()[:32]
    except (FileNotFoundError, NotADirectoryError):
        return None


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold a lock on a folder; the system releases it when the process ends, however it ends."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        # Some network disks have no locks; there, leftovers are never swept.
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)


def _sweep(parent: Path, beginning: str) -> None:
    """Remove what killed runs left behind, but not what a running one is writing."""
    for leftover in parent.glob(f"{escape(beginning)}*"):
        with suppress(OSError):
            handle = os.open(leftover, os.O_RDONLY)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(leftover)
            finally:
                os.close(handle)


def sync_to_disk(path: Path) -> None:
    """Have a file, or the names in a folder, on disk: after a power cut a file without a name there is gone."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
