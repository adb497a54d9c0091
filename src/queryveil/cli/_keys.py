"""Keys on the command line: read, made beside a release folder, and found again there."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from queryveil.errors import BadFile, BadParameter

if TYPE_CHECKING:
    from queryveil.release import Release

_OWNER_ONLY = 0o600
_N_BYTES = 32


def read_key(path: Path | None) -> bytes | None:
    """Read the secret for keyed ids."""
    from queryveil.release import MIN_KEY_BYTES

    if path is None:
        return None
    try:
        key = path.read_bytes()
    except OSError as error:
        raise BadFile(str(path), f"the key cannot be read: {error.strerror}") from None
    if len(key) < MIN_KEY_BYTES:
        raise BadParameter("key", f"{len(key)} bytes", allowed=f"at least {MIN_KEY_BYTES} secret bytes")
    return key


def key_beside(folder: Path) -> Path:
    """Return where the key of a release folder is kept: never inside, since others will get that.

    >>> key_beside(Path("/logs/out")).name
    'out.key'
    """
    whole = folder.absolute()
    return whole.with_name(f"{whole.name}.key")


def key_of(release: Release, *, folder: Path, key: Path | None) -> bytes | None:
    """Read the key of a release whose ids are keyed or whose terms are hashed: the one named, or that beside it."""
    from queryveil.release import Ids

    beside = key_beside(folder)
    is_keyed = release.manifest.columns.ids is Ids.KEYED or release.manifest.method == "token_hash"
    if key is None and is_keyed and beside.is_file():
        key = beside
    return read_key(key)


@contextmanager
def fresh_key(folder: Path, *, wanted: bool, force: bool) -> Iterator[Path | None]:
    """Return a file with a new key, for the owner's eyes only, or None if none is wanted.

    It gets its name when the block has ended well, and is gone if the block fails.
    """
    if not wanted:
        yield None
        return
    path = key_beside(folder)
    partial = path.with_name(f".{path.name}.partial")
    if os.path.lexists(path) and not (force and path.is_file()):
        raise BadFile(str(path), "is already there; use it with --key, or replace it with --force")
    try:
        partial.unlink(missing_ok=True)
        handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY)
        with os.fdopen(handle, "wb") as file:
            file.write(secrets.token_bytes(_N_BYTES))
            file.flush()
            os.fsync(file.fileno())
        yield partial
        partial.rename(path)
    except OSError as error:
        raise BadFile(str(path), f"the key could not be written: {error.strerror}") from None
    finally:
        partial.unlink(missing_ok=True)
