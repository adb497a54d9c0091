"""Attacks on swap: its rows as they stand, its most active ids, and pools rebuilt from the release.

The last are the four de-anonymizers of Pàmies-Estrems et al., algorithm 3.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar

import numpy as np

from queryveil.attacks import _rebuild_kernels
from queryveil.attacks.attacker import AttackerBase, AuxiliaryData, Exposure
from queryveil.attacks.swapped import N_POOLS, EncodedLog, Guess, Truth, most_active_rows, truth_of
from queryveil.data import Int64s
from queryveil.guarantees import SwapAnonymity
from queryveil.pairing import Pair
from queryveil.rng import check_seed, generator
from queryveil.settings import check_settings, setting


def as_released(truth: Truth) -> Exposure:
    """Read every released row as if its user had asked its query; on a swapped log that finds nothing."""
    return truth.exposure("as_released", knows="the swapped rows")


@dataclass(frozen=True, slots=True, kw_only=True)
class AsReleased:
    """Take the rows of a swapped release as they are."""

    name = "as_released"

    def skip_reason(self, pair: Pair, *, auxiliary: AuxiliaryData) -> str | None:  # noqa: ARG002 - as every attacker
        return None if isinstance(pair.release.promise, SwapAnonymity) else "no queries changed hands"

    def attack(self, pair: Pair, *, auxiliary: AuxiliaryData) -> Exposure:  # noqa: ARG002 - as every attacker
        return as_released(truth_of(pair))


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveId(AttackerBase):
    """Take every query of a category for one of the id that has most rows there, which profiles show.

    A blind guesser, who knows no categories, takes all queries for those of one user, the best one.
    """

    name = "active_id"
    knows = "the swapped rows and the classifier"
    what = "rows"

    def skip_reason(self, pair: Pair, *, auxiliary: AuxiliaryData) -> str | None:  # noqa: ARG002 - as every attacker
        return None if isinstance(pair.release.promise, SwapAnonymity) else "no queries changed hands"

    def attack(self, pair: Pair, *, auxiliary: AuxiliaryData) -> Exposure:  # noqa: ARG002 - as every attacker
        truth = truth_of(pair)
        user_row = most_active_rows(pair)[truth.released.category]
        guess = Guess(user_row=user_row, query_row=np.arange(len(user_row)), k_now=np.zeros(N_POOLS, np.int64))
        n_by_chance = int(truth.hits_by_user().sum(axis=1).max(initial=0))
        return self.exposure(n_targets=truth.n_targets, n_found=truth.n_hit(guess), n_by_chance=n_by_chance)


class Choice(IntEnum):
    """The user who is taken from a rebuilt pool: a random one, or the one with the highest number.

    That number is the user's rows that wait in the pool, those of the category so far, or the product of both.
    """

    RANDOM = 1
    MOST_WAITING = 2
    MOST_SO_FAR = 3
    PRODUCT = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilding:
    """Read a swapped release row by row and do what the anonymizer did.

    Users and queries of a category wait apart; once k of each wait, a user is chosen, a query drawn, and the two are a
    guess. If all users are the same, k is multiplied by `growth`. The attacker has the classifier of the release.

    - `k`, `growth`: those of the release.
    - `by_time`: whether the rows are sorted by time first (+T in the paper).
    - `seed`: repeats what is drawn.

    >>> Rebuild4(k=5, by_time=True).name
    'rebuild_4+T'
    """

    choice: ClassVar[Choice] = Choice.RANDOM

    k: int = setting(10, at_least=2, help="The k of the release.")
    growth: float = setting(1.2, above=1, help="The growth of the release.")
    by_time: bool = False
    seed: int | None = None

    def __post_init__(self) -> None:
        check_settings(self)
        check_seed(self.seed)

    @property
    def name(self) -> str:
        return f"rebuild_{int(self.choice)}" + ("+T" if self.by_time else "")

    def guess(self, released: EncodedLog) -> Guess:
        """Pair users and queries of a release anew; what still waits at the end is not guessed."""
        order = released.time_order() if self.by_time else None
        return rebuilt(released, choice=self.choice, k=self.k, growth=self.growth, order=order, seed=self.seed)

    def exposure(self, truth: Truth) -> Exposure:
        """Return how many rows of the guess are true."""
        knows = "the swapped rows" + (" sorted by time" if self.by_time else "") + ", k and the classifier"
        return truth.exposure(self.name, knows=knows, guess=self.guess(truth.released))

    def skip_reason(self, pair: Pair, *, auxiliary: AuxiliaryData) -> str | None:  # noqa: ARG002 - as every attacker
        if not isinstance(pair.release.promise, SwapAnonymity):
            return "no queries changed hands"
        if self.by_time and "time" not in pair.release.log.columns:
            return "the release has no times to sort by"
        return None

    def attack(self, pair: Pair, *, auxiliary: AuxiliaryData) -> Exposure:  # noqa: ARG002 - as every attacker
        return self.exposure(truth_of(pair))


def rebuilt(
    released: EncodedLog,
    *,
    choice: Choice,
    k: int,
    growth: float = 1.2,
    grows: bool = True,
    order: Int64s | None = None,
    seed: int | None = None,
) -> Guess:
    """Run algorithm 3; with a random choice and on an original log it is algorithm 2 as the paper prints it.

    Without `grows` a full pool is drawn from even if all its users are the same. `order` has the rows in their order.
    """
    n_pairs, draws = len(released.users) * N_POOLS, generator(seed).random((released.n_rows, 2))
    category, pair = released.category, released.pair
    if order is not None:
        category, pair = category[order], pair[order]
    user_row, query_row, k_now = _rebuild_kernels.rebuild(
        category, pair, draws, N_POOLS, n_pairs, k, growth, int(choice), grows
    )
    if order is not None:
        user_row, query_row = order[user_row], order[query_row]
    return Guess(user_row=user_row, query_row=query_row, k_now=k_now)


# Paper: section 4.2.2.
class Rebuild1(Rebuilding):
    """Guess a waiting row at random, so that a user who waits twice is taken twice as often."""

    choice = Choice.RANDOM


class Rebuild2(Rebuilding):
    """Guess the user who is most often in the rebuilt pool; ties are drawn."""

    choice = Choice.MOST_WAITING


class Rebuild3(Rebuilding):
    """Guess the waiting user who has most rows in the category so far, the one just read included; ties are drawn."""

    choice = Choice.MOST_SO_FAR


class Rebuild4(Rebuilding):
    """Guess the user with most rows in the category so far, times the places in the rebuilt pool; ties are drawn."""

    choice = Choice.PRODUCT
