"""The rule for a limit of exposure: no attacker that applies may be above it, at the upper end of its interval."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import ceil

from queryveil.attacks.attacker import Exposure, wilson
from queryveil.attacks.names import base_name
from queryveil.attacks.readers import READERS, attackers_of, check_readers
from queryveil.errors import BadParameter

GUESSED = 0.05
"""Where blind guessing finds this share or more, an attacker is judged by what it finds beyond that."""


def risk(found: Exposure) -> float:
    """Return the upper end of what an attacker finds, or of what it finds beyond blind guessing where that finds much.

    It does not depend on the limit, so that whatever is under one limit is under any higher one.

    >>> coin = Exposure(attacker="added_rows", knows="", n_targets=1000, n_found=520, n_by_chance=500)
    >>> needle = Exposure(attacker="vanity", knows="", n_targets=1000, n_found=20, n_by_chance=0.1)
    >>> round(risk(coin), 3), round(risk(needle), 3)
    (0.051, 0.031)
    """
    beyond = found.chance_share if found.chance_share >= GUESSED else 0.0
    return max(0.0, found.interval[1] - beyond)


def least_risk(found: Exposure) -> float:
    """Return the risk if the attacker found no more than blind guessing does: what its number of targets allows."""
    by_chance = found.n_by_chance if found.chance_share >= GUESSED else 0.0
    return max(0.0, wilson(by_chance, n=found.n_targets)[1] - by_chance / max(1, found.n_targets))


def n_targets_needed(limit: float, *, chance_share: float = 0.0) -> int:
    """Return how many targets an attacker needs for its risk to be at most the limit if it finds what guessing does.

    That is nobody where blind guessing finds less than `GUESSED`.

    >>> n_targets_needed(0.05), n_targets_needed(0.01), n_targets_needed(0.05, chance_share=0.5)
    (73, 381, 381)
    """
    if not 0 < limit <= 1:
        raise BadParameter("limit", limit, allowed="above 0 and at most 1")
    guessed = chance_share if chance_share >= GUESSED else 0.0
    # Wilson's upper end, solved for the number of targets.
    end = min(1.0, guessed + limit)
    return max(1, ceil(1.959964**2 * end * (1 - end) / (end - guessed) ** 2 - 1e-9))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """What the rule says of one release.

    - `binding`: the attacker with the highest risk; None if none was considered.
    - `over`: the attackers above the limit, the highest risk first.
    - `too_few`: those with so few targets that they would be above the limit if they found no more than blind guessing.
    - `excepted`: those that were left out with a reason.
    - `considered`: those that were considered, the highest risk first.
    """

    binding: Exposure | None = None
    over: tuple[Exposure, ...] = ()
    too_few: tuple[Exposure, ...] = ()
    excepted: tuple[Exposure, ...] = ()
    considered: tuple[Exposure, ...] = ()

    @property
    def is_met(self) -> bool:
        """Whether at least one attacker was considered, and none is above the limit."""
        return bool(self.considered) and not self.over

    @property
    def n_considered(self) -> int:
        """How many attackers were considered."""
        return len(self.considered)

    @property
    def risk(self) -> float:
        """The highest risk; 1 if nobody attacked."""
        return 1.0 if self.binding is None else risk(self.binding)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """How much attackers may find in a release.

    - `share`: the most of its targets that any of them may find, by `risk`.
    - `readers`: the readers whose attackers are considered, by name.
    - `exceptions`: attackers that are left out although they apply, each with the reason that somebody gave.
    """

    share: float = 0.05
    readers: tuple[str, ...] = tuple(READERS)
    exceptions: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise BadParameter("limit", self.share, allowed="between 0 and 1")
        object.__setattr__(self, "readers", check_readers(self.readers))
        known = attackers_of(READERS)
        for name, reason in self.exceptions.items():
            if name not in known:
                raise BadParameter("except", name, allowed=f"one of {', '.join(sorted(known))}")
            if not reason.strip():
                raise BadParameter("except", name, allowed=f"an attacker with the reason why: {name}=REASON")

    def ruling(self, exposures: Iterable[Exposure]) -> Ruling:
        """Return what the rule says, given what all attackers found."""
        asked = attackers_of(self.readers)
        there = [found for found in exposures if found.n_targets and base_name(found.attacker) in asked]
        considered = [found for found in there if base_name(found.attacker) not in self.exceptions]
        considered.sort(key=risk, reverse=True)
        return Ruling(
            binding=considered[0] if considered else None,
            over=tuple(found for found in considered if risk(found) > self.share),
            too_few=tuple(found for found in considered if least_risk(found) > self.share),
            excepted=tuple(found for found in there if base_name(found.attacker) in self.exceptions),
            considered=tuple(considered),
        )
