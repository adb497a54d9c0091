"""The key of keyed user ids: read from a file, or created."""

import os
import secrets
from pathlib import Path

from queryveil.errors import BadFile
from queryveil.formats.atomic_folders import sync_to_disk

_N_BYTES = 32


def read_or_make_key(path: Path) -> bytes:
    """Return the secret in a file; if there is none, make one for its owner alone."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        pass
    except OSError as error:
        raise BadFile(str(path), f"the key cannot be read: {error.strerror}") from None
    key = new_key()
    # A crash in between must not leave a file with half a key: under its name there is a whole one or none.
    partial = path.with_name(f".{path.name}.{secrets.token_hex(8)}.partial")
    try:
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(key)
            file.flush()
            os.fsync(descriptor)
        os.link(partial, path)
        sync_to_disk(path.absolute().parent)
    except FileExistsError:
        return path.read_bytes()
    except OSError as error:
        raise BadFile(str(path), f"the key cannot be written: {error.strerror}") from None
    finally:
        partial.unlink(missing_ok=True)
    return key


def new_key() -> bytes:
    """Return a secret that nobody has."""
    return secrets.token_bytes(_N_BYTES)
