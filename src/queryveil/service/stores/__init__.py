"""Stores of the state of a stream; the one in memory, for streams that are not resumed, is here."""

from queryveil.service.ports import Saved, Store

__all__ = ["MemoryStore"]


class MemoryStore(Store):
    """Forget everything: after a crash or a stop, the next run begins anew.

    What waits in the pools is lost with the process, and nothing raw is ever written to disk.
    """

    def open(self, *, settings: str) -> Saved:  # noqa: ARG002 - part of the port
        """Begin; there is never anything of earlier runs."""
        return Saved()
