"""Stores of the state of a stream; the one in memory, for streams that are not resumed, is here."""

from queryveil.service.ports import Commit, Saved
from queryveil.service.stores._sql import SqlStore

__all__ = ["MemoryStore", "SqlStore"]


class MemoryStore:
    """Forget everything: after a crash or a stop, the next run begins anew.

    What waits in the pools is lost with the process, and nothing raw is ever written to disk.
    """

    def has_begun(self) -> bool:
        """Say that there is never anything of earlier runs."""
        return False

    def open(self, *, settings: str) -> Saved:  # noqa: ARG002 - part of the port
        """Begin; there is never anything of earlier runs."""
        return Saved()

    def commit(self, commit: Commit) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""
