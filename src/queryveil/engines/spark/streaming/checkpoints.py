"""The folder that a stream goes on from: what it was made with, its secret, and what Spark keeps.

Privacy: it holds the events that wait, hashes of who issued what, and the secret that the random numbers come from.
Whoever has it and the released rows can tell who asked what, so only its owner may enter.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from queryveil.engines.spark.storage import Storage
from queryveil.errors import BadFile, BadParameter
from queryveil.stream.stores.settings_text import check_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SETTINGS, _SECRET, _COLUMNS = "queryveil.settings", "queryveil.secret", "queryveil.columns"
_SINK_LOG = "_spark_metadata"
_SECRET_BYTES = 32


def swap_checkpoint(folder: str) -> str:
    """Give where Spark keeps the pools."""
    return f"{folder.rstrip('/')}/swap"


def profiles_checkpoint(folder: str) -> str:
    """Give where Spark keeps the profiles."""
    return f"{folder.rstrip('/')}/profiles"


def has_batches(spark: SparkSession, checkpoint: str) -> bool:
    """Whether a batch was finished."""
    storage = Storage(spark=spark)
    commits = f"{checkpoint}/commits"
    return storage.is_folder(commits) and any(name.isdigit() for name in storage.names(commits))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Checkpoint:
    """A checkpoint folder and the sink that belongs to it."""

    spark: SparkSession
    folder: str
    sink: str

    def begin(self, made_with: str, *, secret: bytes | None) -> bytes:
        """Begin a stream here or go on with it, and give its secret; refuse settings that it did not begin with."""
        storage = Storage(spark=self.spark)
        if storage.exists(self._settings):
            _check(made_with, before=storage.read(self._settings).decode())
            return self._found(storage, given=secret)
        if storage.exists(f"{self.sink.rstrip('/')}/{_SINK_LOG}"):
            # Spark numbers batches from 0 and a sink ignores numbers that it has, so the rows of these would be lost.
            raise BadParameter("sink", self.sink, allowed="a new folder: this one has the rows of another checkpoint")
        storage.make_private(self.folder)
        storage.close_off(self.folder)
        if not storage.exists(self._secret):
            self._write(storage, self._secret, secret or secrets.token_bytes(_SECRET_BYTES))
        self._write(storage, self._settings, made_with.encode())
        return self._found(storage, given=secret)

    def columns(self, found: Callable[[], str]) -> str:
        """Give the columns that the stream began with; at its beginning they are found, and kept."""
        storage = Storage(spark=self.spark)
        path = f"{self.folder.rstrip('/')}/{_COLUMNS}"
        if not storage.exists(path):
            self._write(storage, path, found().encode())
        return storage.read(path).decode()

    def _found(self, storage: Storage, *, given: bytes | None) -> bytes:
        if not storage.exists(self._secret):
            raise BadFile(self._secret, "it is missing, and the stream cannot go on without it; restore a copy")
        found = storage.read(self._secret)
        if given not in (None, found):
            raise BadParameter("secret", "another", allowed="the one in the checkpoint, which this stream began with")
        return found

    def _write(self, storage: Storage, path: str, data: bytes) -> None:
        # Under its name there is a whole file or none.
        partial = f"{path}.{secrets.token_hex(8)}"
        storage.write(partial, data)
        storage.close_off(partial, mode="600")
        storage.rename(partial, path)

    @property
    def _settings(self) -> str:
        return f"{self.folder.rstrip('/')}/{_SETTINGS}"

    @property
    def _secret(self) -> str:
        return f"{self.folder.rstrip('/')}/{_SECRET}"


def _check(now: str, *, before: str) -> None:
    try:
        check_settings(now, before=before)
    except BadParameter as error:
        allowed = error.allowed.replace("--store", "checkpoint")
        raise BadParameter(error.name, error.value, allowed=allowed) from None
