"""What every attacker is: a name, what it needs, and what it finds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from queryveil.attack.exposure import Exposure
from queryveil.attack.people import Person
from queryveil.log import QueryLog
from queryveil.paired import Paired
from queryveil.release import Release


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Given:
    """What attackers are given beside the release.

    `public` is a log of the same kind by other people; `people` is a directory of names and towns. `remake` runs the
    method of the release on another log, and `key` is that of the release: not for the attackers, but for those who
    must know whether they were right.
    """

    public: QueryLog | None = None
    people: Sequence[Person] = ()
    remake: Callable[[QueryLog], Release] | None = None
    key: bytes | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        return f"Given(public={self.public is not None}, n_people={len(self.people)}, remake={self.remake is not None})"


class Attacker(Protocol):
    """Somebody who tries to undo a release."""

    @property
    def name(self) -> str:
        """What it is called, as in the docs."""

    def misses(self, paired: Paired, *, given: Given) -> str | None:
        """Say in half a sentence why it cannot attack this release; None if it can."""

    def attack(self, paired: Paired, *, given: Given) -> Exposure:
        """Attack, and count what was found."""
