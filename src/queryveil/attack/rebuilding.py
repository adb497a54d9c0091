"""What the four de-anonymizers share: pools rebuilt from the release, by algorithm 3 of Pàmies-Estrems et al."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar

from queryveil.attack.exposure import Exposure
from queryveil.attack.seen import N_POOLS, Guess, Seen
from queryveil.attack.truth import Truth
from queryveil.errors import BadParameter
from queryveil.kernels import rebuilding as kernel
from queryveil.kernels.arrays import Int64s
from queryveil.rng import check_seed, generator


class Choice(IntEnum):
    """Which of a rebuilt pool's users is taken."""

    RANDOM = kernel.RANDOM
    MOST_WAITING = kernel.MOST_WAITING
    MOST_SO_FAR = kernel.MOST_SO_FAR
    PRODUCT = kernel.PRODUCT


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilding:
    """An attacker who reads a swapped release row by row and does what the anonymizer did.

    Users and queries of a category wait apart; once k of each wait, a user is chosen, a query drawn, and both are
    written down as a guess. If all users are the same, k is multiplied by `growth`. The attacker has the k and the
    growth of the release, and its classifier. With `by_time` the rows are sorted by time first (+T in the paper).
    """

    k: int = 10
    growth: float = 1.2
    by_time: bool = False
    seed: int | None = None

    choice: ClassVar[Choice] = Choice.RANDOM

    def __post_init__(self) -> None:
        if self.k < 2:
            raise BadParameter("k", self.k, allowed="2 or more")
        if not self.growth > 1:
            raise BadParameter("growth", self.growth, allowed="above 1")
        check_seed(self.seed)

    @property
    def name(self) -> str:
        """What the attacker is called."""
        return f"rebuild_{int(self.choice)}" + ("+T" if self.by_time else "")

    def guess(self, seen: Seen) -> Guess:
        """Put users and queries of a release together anew; what still waits at the end stays unguessed."""
        return rebuilt(
            seen,
            choice=self.choice,
            k=self.k,
            growth=self.growth,
            order=seen.time_order() if self.by_time else None,
            seed=self.seed,
        )

    def attack(self, seen: Seen, *, truth: Truth) -> Exposure:
        """Guess, and count the rows that are true; `truth` must be about what is seen."""
        if truth.seen is not seen:
            raise BadParameter(
                "truth", "that of another release", allowed="made for what is seen: Truth.of(log, seen=)"
            )
        return Exposure.counted(
            attacker=self.name,
            knows="the swapped rows" + (" sorted by time" if self.by_time else "") + ", k and the classifier",
            what="rows",
            n_targets=truth.n_targets,
            n_found=truth.n_hit(self.guess(seen)),
            n_by_chance=truth.n_by_chance,
        )


def rebuilt(
    seen: Seen,
    *,
    choice: Choice,
    k: int,
    growth: float = 1.2,
    grows: bool = True,
    order: Int64s | None = None,
    seed: int | None = None,
) -> Guess:
    """Run algorithm 3; with a random choice and on an original log it is algorithm 2 as the paper prints it.

    Without `grows` a pair leaves a full pool even if all its users are the same. `order` says which row comes when.
    """
    category, pair = seen.category, seen.pair
    if order is not None:
        category, pair = category[order], pair[order]
    user_row, query_row, k_now = kernel.rebuild(
        category,
        pair,
        generator(seed).random((seen.n_rows, 2)),
        N_POOLS,
        len(seen.users) * N_POOLS,
        k,
        growth,
        int(choice),
        grows,
    )
    if order is not None:
        user_row, query_row = order[user_row], order[query_row]
    return Guess(user_row=user_row, query_row=query_row, k_now=k_now)
