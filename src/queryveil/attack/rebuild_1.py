"""De-anonymizer 1 of Pàmies-Estrems et al.: a user drawn at random."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from queryveil.attack.rebuilding import Choice, Rebuilding


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuild1(Rebuilding):
    """Guess by chance from the rebuilt pools.

    Each waiting row is as likely, so a user who waits twice is taken twice as often.

    >>> Rebuild1(k=5, by_time=True).name
    'rebuild_1+T'
    """

    # Paper: section 4.2.2.
    choice: ClassVar[Choice] = Choice.RANDOM
