"""Write a folder whole or not at all: build it beside its target, then rename it."""

import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path

from queryveil.errors import NotWritten, ReleaseExists


def check_writable(path: Path) -> None:
    """Raise if no folder can be created beside the target; one is created and removed again."""
    trial = path.absolute().parent / f".{path.name}.partial-{secrets.token_hex(8)}"
    try:
        trial.mkdir()
        trial.rmdir()
    except OSError as error:
        raise NotWritten(str(path), error.strerror, so="nothing was released") from None


@contextmanager
def whole(path: Path, *, force: bool) -> Iterator[Path]:
    """Yield a temporary folder that is renamed to the target when the block ends without an error."""
    parent, mark = path.absolute().parent, secrets.token_hex(8)
    _sweep(parent, f".{path.name}.partial-")
    partial = parent / f".{path.name}.partial-{mark}"
    try:
        partial.mkdir()
        with _locked(partial):
            yield partial
            for file in partial.iterdir():
                sync_to_disk(file)
            sync_to_disk(partial)
            _put(partial, path, old=parent / f".{path.name}.old-{mark}", force=force)
            sync_to_disk(parent)
    except (OSError, NotWritten) as error:
        why = error.why if isinstance(error, NotWritten) else error.strerror
        raise NotWritten(str(path), why, so="nothing was released") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _put(partial: Path, path: Path, *, old: Path, force: bool) -> None:
    """Rename the finished folder to its name; an earlier one is removed only after that."""
    if not os.path.lexists(path):
        partial.rename(path)
    elif not force:
        # It was not there when the work began: somebody else has made it since.
        raise ReleaseExists(str(path))
    else:
        path.rename(old)
        try:
            partial.rename(path)
        except OSError:
            old.rename(path)
            raise
    _sweep(path.absolute().parent, f".{path.name}.old-")


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
