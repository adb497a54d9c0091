"""What attackers who seek something are set up with: how much, and by which draws."""

from __future__ import annotations

from dataclasses import dataclass, field

from queryveil.errors import BadParameter
from queryveil.rng import check_seed


@dataclass(frozen=True, slots=True, kw_only=True)
class Seeker:
    """An attacker that seeks at most `n_targets`; a `seed` repeats what is drawn."""

    n_targets: int = 1000
    seed: int | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_least("n_targets", self.n_targets, least=1)
        check_seed(self.seed)


def check_least(name: str, value: int, *, least: int) -> None:
    """Raise if a setting is too small."""
    if value < least:
        raise BadParameter(name, value, allowed=f"{least} or more")
