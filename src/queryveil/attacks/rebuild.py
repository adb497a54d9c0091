"""The four de-anonymizers of swap: pools rebuilt from the release, algorithm 3 of Pàmies-Estrems et al."""

from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar
from weakref import WeakKeyDictionary

import numpy as np
import polars as pl

from queryveil.attacks import truth
from queryveil.attacks.attacker import AuxiliaryData
from queryveil.attacks.exposure import Exposure
from queryveil.attacks.truth import N_POOLS, Guess, Seen, Truth
from queryveil.data import Int64s
from queryveil.errors import BadParameter
from queryveil.guarantees import SwapAnonymity
from queryveil.pairing import Pair
from queryveil.rng import check_seed, generator


class Choice(IntEnum):
    """Which of a rebuilt pool's users is taken."""

    RANDOM = truth.RANDOM
    MOST_WAITING = truth.MOST_WAITING
    MOST_SO_FAR = truth.MOST_SO_FAR
    PRODUCT = truth.PRODUCT


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
    user_row, query_row, k_now = truth.rebuild(
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuild1(Rebuilding):
    """Guess by chance from the rebuilt pools.

    Each waiting row is as likely, so a user who waits twice is taken twice as often.

    >>> Rebuild1(k=5, by_time=True).name
    'rebuild_1+T'
    """

    # Paper: section 4.2.2.
    choice: ClassVar[Choice] = Choice.RANDOM


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuild2(Rebuilding):
    """Guess the user who appears most often in the rebuilt pool.

    Among equals one is drawn.

    >>> Rebuild2(k=5, by_time=True).name
    'rebuild_2+T'
    """

    # Paper: section 4.2.2.
    choice: ClassVar[Choice] = Choice.MOST_WAITING


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuild3(Rebuilding):
    """Guess the waiting user who has most rows in the category so far.

    The rows are those of the release up to that moment, the one just read included. Among equals one is drawn.

    >>> Rebuild3(k=5, by_time=True).name
    'rebuild_3+T'
    """

    # Paper: section 4.2.2.
    choice: ClassVar[Choice] = Choice.MOST_SO_FAR


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuild4(Rebuilding):
    """Guess the user whose rows in the category so far, times the places in the rebuilt pool, are most.

    Among equals one is drawn.

    >>> Rebuild4(k=5, by_time=True).name
    'rebuild_4+T'
    """

    # Paper: section 4.2.2.
    choice: ClassVar[Choice] = Choice.PRODUCT


def as_released(truth: Truth) -> Exposure:
    """Read every released row as if its user had asked its query; on a swapped log that finds nothing."""
    return Exposure.counted(
        attacker="as_released",
        knows="the swapped rows",
        what="rows",
        n_targets=truth.n_targets,
        n_found=truth.n_hit_as_released(),
        n_by_chance=truth.n_by_chance,
    )


_TRUTHS: WeakKeyDictionary[Pair, Truth] = WeakKeyDictionary()


def truth_of(pair: Pair) -> Truth:
    """Return what is true of a swapped release, worked out once for all who attack the pair."""
    if pair not in _TRUTHS:
        released = pair.release.log.frame
        user = pair.identity.sole_user()[pair.candidate]
        # Users whom the original lacks keep their own ids, so that their rows are nobody's.
        ids = pair.users.gather(np.maximum(0, user)).zip_with(pl.Series(user >= 0), released["user"])
        seen = Seen.of(pair.release.log.with_frame(released.with_columns(user=ids)))
        _TRUTHS[pair] = Truth.of(pair.log, seen=seen)
    return _TRUTHS[pair]


@dataclass(frozen=True, slots=True, kw_only=True)
class SwapAttacker:
    """An attacker on a pair of an original and a swapped release.

    Parameters
    ----------
    rebuilding
        The attacker who rebuilds the pools; None believes the rows as they stand.
    """

    rebuilding: Rebuilding | None = None

    @property
    def name(self) -> str:
        """What the attacker is called."""
        return "as_released" if self.rebuilding is None else self.rebuilding.name

    def skip_reason(self, pair: Pair, *, auxiliary: AuxiliaryData) -> str | None:  # noqa: ARG002 - all attackers are asked alike
        """Return why it cannot attack this release; None if it can."""
        if not isinstance(pair.release.promise, SwapAnonymity):
            return "no queries changed hands"
        if self.rebuilding is not None and self.rebuilding.by_time and "time" not in pair.release.log.columns:
            return "the release has no times to sort by"
        return None

    def attack(self, pair: Pair, *, auxiliary: AuxiliaryData) -> Exposure:  # noqa: ARG002 - it needs nothing more
        """Attack, and count the rows that were put together as they were."""
        truth = truth_of(pair)
        return as_released(truth) if self.rebuilding is None else self.rebuilding.attack(truth.seen, truth=truth)
