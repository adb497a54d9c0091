"""De-anonymizer 4 of Pàmies-Estrems et al.: rows so far times places in the pool."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from queryveil.attack.rebuilding import Choice, Rebuilding


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuild4(Rebuilding):
    """Guess the user whose rows in the category so far, times the places in the rebuilt pool, are most.

    Among equals one is drawn.

    >>> Rebuild4(k=5, by_time=True).name
    'rebuild_4+T'
    """

    # Paper: section 4.2.2.
    choice: ClassVar[Choice] = Choice.PRODUCT
