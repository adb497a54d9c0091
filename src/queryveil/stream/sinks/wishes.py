"""What some sinks want to be told beside the lines themselves."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from queryveil.log import Layout
from queryveil.stream.ports import Outgoing
from queryveil.stream.settings import StreamSettings
from queryveil.stream.stats import Stats


@runtime_checkable
class NewOnly(Protocol):
    """A sink that must not hold anything when a stream starts for the first time."""

    def check_new(self) -> None:
        """Raise if there is something."""


@runtime_checkable
class Folder(Protocol):
    """A sink that writes down at the end what holds for the lines in it."""

    def begin(self, layout: Layout) -> None:
        """Take note of how lines are written, before the first ones come."""

    def finish(self, *, settings: StreamSettings, layout: Layout | None, stats: Stats, n_users: int) -> None:
        """Write down what holds; everything that could be handed over has been. `n_users` is an estimate."""


@runtime_checkable
class ReadAhead(Protocol):
    """A sink whose receiver takes several batches at once, and so wants to see them before their turn."""

    def offer(self, outgoing: Outgoing) -> None:
        """Show a batch that is committed; `deliver` still asks whether it has arrived."""
