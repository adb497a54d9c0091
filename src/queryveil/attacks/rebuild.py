"""Attacks on swap: its rows as they stand, its most active ids, and pools rebuilt from the release.

The last are the four de-anonymizers of Pàmies-Estrems et al., algorithm 3.
"""

from dataclasses import dataclass
from enum import IntEnum
from math import ceil
from typing import ClassVar

import numpy as np

from queryveil.attacks._scoring import no_swap
from queryveil.attacks.attacker import Attacker, AuxiliaryData, Exposure, Reasons, SeededAttacker
from queryveil.attacks.swapped import N_POOLS, EncodedLog, Guess, Truth, most_active_rows, truth_of
from queryveil.data import Floats, Int32s, Int64s
from queryveil.kernels import njit
from queryveil.pairing import Pair
from queryveil.rng import generator
from queryveil.settings import setting

_RANDOM, _MOST_WAITING, _MOST_SO_FAR = 1, 2, 3
"""The numbers of `Choice`; any other stands for the product."""


def as_released(truth: Truth) -> Exposure:
    """Read every released row as if its user had asked its query; on a swapped log that finds nothing."""
    return truth.exposure("as_released", knows="the swapped rows")


@dataclass(frozen=True, slots=True, kw_only=True)
class AsReleased(Attacker):
    """Take the rows of a swapped release as they are."""

    name = "as_released"

    def reasons(self, pair: Pair, *, auxiliary: AuxiliaryData) -> Reasons:  # noqa: ARG002 - as every attacker
        return no_swap(pair)

    def attack(self, pair: Pair, *, auxiliary: AuxiliaryData) -> Exposure:  # noqa: ARG002 - as every attacker
        return as_released(truth_of(pair))


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveId(Attacker):
    """Take every query of a category for one of the id that has most rows there, which profiles show.

    A blind guesser, who knows no categories, takes all queries for those of one user, the best one.
    """

    name = "active_id"
    knows = "the swapped rows and the classifier"
    what = "rows"

    def reasons(self, pair: Pair, *, auxiliary: AuxiliaryData) -> Reasons:  # noqa: ARG002 - as every attacker
        return no_swap(pair)

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

    RANDOM = _RANDOM
    MOST_WAITING = _MOST_WAITING
    MOST_SO_FAR = _MOST_SO_FAR
    PRODUCT = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilding(SeededAttacker):
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

    @property
    def name(self) -> str:
        return f"rebuild_{int(self.choice)}" + ("+T" if self.by_time else "")

    def guess(self, released: EncodedLog) -> Guess:
        """Pair users and queries of a release anew; what still waits at the end is not guessed."""
        order = released.time_order() if self.by_time else None
        return rebuilt(released, choice=self.choice, k=self.k, growth=self.growth, order=order, seed=self.seed)

    def judged(self, truth: Truth) -> Exposure:
        """Return how many rows of the guess are true."""
        knows = "the swapped rows" + (" sorted by time" if self.by_time else "") + ", k and the classifier"
        return truth.exposure(self.name, knows=knows, guess=self.guess(truth.released))

    def reasons(self, pair: Pair, *, auxiliary: AuxiliaryData) -> Reasons:  # noqa: ARG002 - as every attacker
        yield from no_swap(pair)
        if self.by_time and "time" not in pair.release.log.columns:
            yield "the release has no times to sort by"

    def attack(self, pair: Pair, *, auxiliary: AuxiliaryData) -> Exposure:  # noqa: ARG002 - as every attacker
        return self.judged(truth_of(pair))


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
    user_row, query_row, k_now = _rebuild(category, pair, draws, n_pairs, k, growth, int(choice), grows)
    if order is not None:
        user_row, query_row = order[user_row], order[query_row]
    return Guess(user_row=user_row, query_row=query_row, k_now=k_now)


@njit(cache=True, nogil=True)
def _rebuild(
    category: Int32s, pair: Int32s, draws: Floats, n_pairs: int, k: int, growth: float, choice: int, grows: bool
) -> tuple[Int64s, Int64s, Int64s]:
    """Return the row that each guess takes its user from, the row of its query, and the final k of every category.

    `pair` numbers a row's user and category, so that one user has another number in another category. Each row has two
    draws from [0, 1): for the user, and for the query. Without `grows` a full pool is drawn from even if all its users
    are the same.
    """
    n_rows = len(category)
    k_now = np.full(N_POOLS, k, np.int64)
    size = np.zeros(N_POOLS, np.int64)
    n_users = np.zeros(N_POOLS, np.int64)
    users = [np.empty(k, np.int64) for _ in range(N_POOLS)]
    queries = [np.empty(k, np.int64) for _ in range(N_POOLS)]
    waiting, so_far = np.zeros(n_pairs, np.int32), np.zeros(n_pairs, np.int32)
    seen = np.full(n_pairs, -1, np.int64)
    guessed_user, guessed_query = np.empty(n_rows, np.int64), np.empty(n_rows, np.int64)
    n_guessed = 0
    for row in range(n_rows):
        c, who = category[row], pair[row]
        users[c][size[c]], queries[c][size[c]] = row, row
        size[c] += 1
        n_users[c] += waiting[who] == 0
        waiting[who] += 1
        so_far[who] += 1
        # Paper: algorithm 3, line 5. It asks for exactly k; a pool grows by one row at a time, so it is never passed.
        if size[c] < k_now[c]:
            continue
        if grows and n_users[c] < 2:
            k_now[c] = ceil(k_now[c] * growth)
            if k_now[c] > len(users[c]):
                more = np.empty(max(len(users[c]), k_now[c] - len(users[c])), np.int64)
                users[c], queries[c] = np.concatenate((users[c], more)), np.concatenate((queries[c], more))
            continue
        at = _choose(users[c][: size[c]], pair, waiting, so_far, seen, row, choice, draws[row, 0])
        query_at = int(draws[row, 1] * size[c])
        taken = users[c][at]
        guessed_user[n_guessed], guessed_query[n_guessed] = taken, queries[c][query_at]
        n_guessed += 1
        waiting[pair[taken]] -= 1
        n_users[c] -= waiting[pair[taken]] == 0
        size[c] -= 1
        users[c][at], queries[c][query_at] = users[c][size[c]], queries[c][size[c]]
    return guessed_user[:n_guessed].copy(), guessed_query[:n_guessed].copy(), k_now


@njit(cache=True, nogil=True)
def _choose(
    users: Int64s, pair: Int32s, waiting: Int32s, so_far: Int32s, seen: Int64s, row: int, choice: int, draw: float
) -> int:
    """Return the place of the user that is taken; ties are decided by the draw, each user as likely."""
    if choice == _RANDOM:
        return int(draw * len(users))
    places = np.empty(len(users), np.int64)
    best, n_best = -1, 0
    for i in range(len(users)):
        who = pair[users[i]]
        if seen[who] == row:
            continue
        seen[who] = row
        score = 1 if choice == _MOST_SO_FAR else int(waiting[who])
        score *= 1 if choice == _MOST_WAITING else int(so_far[who])
        if score > best:
            best, n_best = score, 0
        if score == best:
            places[n_best] = i
            n_best += 1
    return int(places[int(draw * n_best)])


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
