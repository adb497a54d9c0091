"""What some stores want to be told beside the commits."""

from __future__ import annotations

from typing import Protocol, runtime_checkable


@runtime_checkable
class Tidied(Protocol):
    """A store that clears away, when there is time, what its last commits left behind."""

    def tidy(self) -> None:
        """Clear away what is due; called again and again while there is nothing to commit."""
