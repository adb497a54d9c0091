"""The rule for a limit of exposure: no attacker that applies may be above it, at the upper end of its interval."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import ceil

from queryveil import progress
from queryveil.attacks import suite
from queryveil.attacks.attacker import Attacker, AuxiliaryData, Exposure, Seeker, wilson
from queryveil.attacks.names import base_name
from queryveil.attacks.readers import READERS, attackers_of, check_readers
from queryveil.attacks.suite import Attacks
from queryveil.errors import BadParameter
from queryveil.pairing import Pair

GUESSED = 0.05
"""Where blind guessing finds this share or more, an attacker is judged by what it finds beyond that."""


def risk(found: Exposure) -> float:
    """Return the upper end of what an attacker finds, or of what it finds beyond blind guessing where that finds much.

    It does not depend on the limit, so that whatever is under one limit is under any higher one. Finding less than
    blind guessing is luck, and shows no more than finding as much.

    >>> coin = Exposure(attacker="added_rows", knows="", n_targets=1000, n_found=520, n_by_chance=500)
    >>> needle = Exposure(attacker="vanity", knows="", n_targets=1000, n_found=20, n_by_chance=0.1)
    >>> round(risk(coin), 3), round(risk(needle), 3)
    (0.051, 0.031)
    """
    beyond = found.chance_share if found.chance_share >= GUESSED else 0.0
    return max(least_risk(found), found.interval[1] - beyond)


def least_risk(found: Exposure) -> float:
    """Return the risk if the attacker found no more than blind guessing does: what its number of targets allows."""
    if found.is_complete:
        return 0.0
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

    @property
    def is_for_all(self) -> bool:
        """Whether every attacker stands for one of the readers."""
        return attackers_of(self.readers) == attackers_of(READERS)

    def rules_out(self, attacker: str) -> bool:
        """Return whether an attacker is left out: by an exception, or since it stands for none of the readers."""
        name = base_name(attacker)
        return name in self.exceptions or name not in attackers_of(self.readers)

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


NEED_PUBLIC = ("membership", "known_profile", "sensitive", "token_inversion")
"""Attackers that a public log is for."""
_COSTLY = ("added_rows", "stitch", "sybil", "sybil_early", "neighbour")
"""Attackers that take longer than all the others together, the longest last."""
_BY_CHANCE = {"neighbour": 0.5, "sybil": 0.1, "sybil_early": 0.1}
"""What attackers find by blind guessing, about, where that is much."""
_BY_CHANCE_UNDER_NOISE = 0.5
_SPARE = 4
"""With just as many targets as a limit needs, half of the releases in which nothing is found would be above it by
chance; with four times as many, one in forty."""
_MOST_TARGETS = 20_000
_MOST_SUSPECTED = 1600
"""Sybil plants users for each of its targets, so many that they would outnumber those of the log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Aim:
    """What runs are judged for, where not everything is asked of all of them.

    - `limit`: the most that may be found; each attacker that it considers gets the targets that this needs.
    - `measure`: the only score that is computed.
    - `is_final`: whether all attackers and all measures are asked for; else a run that an attacker has put beyond the
      limit is not attacked further.
    - `with_baseline`: whether the log with nothing but its ids changed is attacked too, which a report shows beside.
    """

    limit: Limit
    measure: str
    is_final: bool = False
    with_baseline: bool = False

    def crowd(self, everybody: Iterable[Attacker], *, is_noisy: bool) -> list[Attacker]:
        """Return the attackers that are asked for, in turn, each with the targets that the limit needs."""
        asked = attackers_of(READERS if self.is_final else self.limit.readers)
        left_out = () if self.is_final else self.limit.exceptions
        chosen = [each for each in everybody if base_name(each.name) in asked and base_name(each.name) not in left_out]
        return [self._with_targets(each, is_noisy=is_noisy) for each in sorted(chosen, key=_turn)]

    def _with_targets(self, attacker: Attacker, *, is_noisy: bool) -> Attacker:
        if not isinstance(attacker, Seeker) or not self.limit.share:
            return attacker
        by_chance = _BY_CHANCE.get(attacker.name, 0.0)
        if is_noisy and by_chance:
            by_chance = _BY_CHANCE_UNDER_NOISE
        most = _MOST_SUSPECTED if attacker.name.startswith("sybil") else _MOST_TARGETS
        needed = _SPARE * n_targets_needed(self.limit.share, chance_share=by_chance)
        return replace(attacker, n_targets=max(attacker.n_targets, min(most, needed)))


def _turn(attacker: Attacker) -> tuple[int, int]:
    cost = _COSTLY.index(attacker.name) + 1 if attacker.name in _COSTLY else 0
    # Of attackers that take as long, whoever knows more is the more likely to find much.
    return cost, -(getattr(attacker, "n_known", None) or 0)


def is_beyond(found: Exposure, limit: Limit) -> bool:
    """Return whether even the lower end of what was found is above the limit, so that more targets would not help.

    >>> found = Exposure(attacker="vanity", knows="", n_targets=100, n_found=20, n_by_chance=0)
    >>> is_beyond(found, Limit(share=0.05)), is_beyond(found, Limit(share=0.15))
    (True, False)
    """
    return found.interval[0] - (found.chance_share if found.chance_share >= GUESSED else 0.0) > limit.share


def attack_in_turn(
    crowd: Iterable[Attacker],
    pair: Pair,
    *,
    aim: Aim,
    auxiliary: AuxiliaryData,
    held_out: Callable[[], tuple[Pair, AuxiliaryData]],
) -> tuple[Attacks, str]:
    """Return what attackers found, and the name of the one after whom the rest was not tried, if there is one.

    - `held_out`: makes another release, without some people, who stand for the public: for attackers who need one.
    """
    found, stopped_by = Attacks(attempts=(), exact=pair.identity.exact), ""
    there: tuple[Pair, AuxiliaryData] | None = None
    for attacker in crowd:
        progress.step(f"attacking: {attacker.name}")
        place = pair, auxiliary
        if attacker.name in NEED_PUBLIC and auxiliary.public is None:
            place = there = there or held_out()
        one = suite.run([attacker], place[0], auxiliary=place[1], with_baseline=aim.with_baseline)
        found = replace(found, attempts=found.attempts + one.attempts, skipped=found.skipped + one.skipped)
        if not aim.is_final and any(is_beyond(each.after, aim.limit) for each in one.attempts):
            stopped_by = attacker.name
            break
    return replace(found, skipped=tuple(dict.fromkeys(found.skipped))), stopped_by
