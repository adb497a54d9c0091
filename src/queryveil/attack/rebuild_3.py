"""De-anonymizer 3 of Pàmies-Estrems et al.: the user with most rows in the category so far."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from queryveil.attack.rebuilding import Choice, Rebuilding


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuild3(Rebuilding):
    """Guess the waiting user who has most rows in the category so far.

    The rows are those of the release up to that moment, the one just read included. Among equals one is drawn.

    >>> Rebuild3(k=5, by_time=True).name
    'rebuild_3+T'
    """

    # Paper: section 4.2.2.
    choice: ClassVar[Choice] = Choice.MOST_SO_FAR
