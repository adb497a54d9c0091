"""De-anonymizer 2 of Pàmies-Estrems et al.: the user who waits most often."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from queryveil.attack.rebuilding import Choice, Rebuilding


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuild2(Rebuilding):
    """Guess the user who appears most often in the rebuilt pool.

    Among equals one is drawn.

    >>> Rebuild2(k=5, by_time=True).name
    'rebuild_2+T'
    """

    # Paper: section 4.2.2.
    choice: ClassVar[Choice] = Choice.MOST_WAITING
