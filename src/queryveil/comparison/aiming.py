"""Attackers one by one under a limit, with the targets that it needs, no further than to the first that is above."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from queryveil import progress
from queryveil.attacks import Attacks, AuxiliaryData, Exposure, suite
from queryveil.attacks.attacker import Attacker, Seeker
from queryveil.attacks.limits import GUESSED, Limit, n_targets_needed
from queryveil.attacks.names import base_name
from queryveil.attacks.readers import READERS, attackers_of
from queryveil.pairing import Pair

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
    """

    limit: Limit
    measure: str
    is_final: bool = False

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
        one = suite.run([attacker], place[0], auxiliary=place[1], with_baseline=False)
        found = replace(found, attempts=found.attempts + one.attempts, skipped=found.skipped + one.skipped)
        if not aim.is_final and any(is_beyond(each.after, aim.limit) for each in one.attempts):
            stopped_by = attacker.name
            break
    return replace(found, skipped=tuple(dict.fromkeys(found.skipped))), stopped_by
