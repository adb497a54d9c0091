"""When each row was asked: sittings through the day, with more than half an hour between them."""

from __future__ import annotations

import numpy as np

from queryveil.synth.chance import Ints, ranks
from queryveil.synth.shapes import Shape

PAUSE = 31 * 60
"""Seconds of rest that end a sitting; a session in the sense of the methods ends after 30 minutes."""
SITTING_ROWS = 60
"""A person's sitting never has more rows, so none looks like a bot."""

_HOURS = np.array([3, 2, 1, 1, 1, 1, 2, 3, 5, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 7, 7, 7, 6, 4], dtype=np.float64)


def draw_times(
    rng: np.random.Generator, *, shape: Shape, user: Ints, lengths: Ints, is_bot: Ints, session_start: Ints
) -> Ints:
    """Give each row its seconds since the log's start, in order within each user."""
    first = np.cumsum(lengths) - lengths
    sitting_start = _sittings(rng, shape=shape, user=user, first=first, is_bot=is_bot, session_start=session_start)
    at = np.flatnonzero(sitting_start)
    sitting = np.cumsum(sitting_start) - 1
    pace = np.where(is_bot, 2.0, np.minimum(45.0, shape.days * 86_400 / 3 / lengths))
    gap = 1 + (rng.standard_exponential(len(user)) * pace[user]).astype(np.int64).clip(max=900)
    gap[at] = 0
    passed = np.cumsum(gap)
    inside = passed - passed[at][sitting]
    lasts = np.bincount(sitting, weights=gap).astype(np.int64) + PAUSE
    start = _place(rng, shape=shape, owner=user[at], lasts=lasts)
    times: Ints = start[sitting] + inside
    return times


def _sittings(
    rng: np.random.Generator, *, shape: Shape, user: Ints, first: Ints, is_bot: Ints, session_start: Ints
) -> Ints:
    n_sessions = np.add.reduceat(session_start, first)
    # There must be time for all sittings, so whoever has many needs settles several in one.
    chance = np.minimum(0.8, shape.days * 12 / n_sessions)
    starts = (session_start == 1) & (rng.random(len(user)) < chance[user])
    starts |= (np.arange(len(user)) - first[user]) % SITTING_ROWS == 0
    starts &= is_bot[user] == 0
    starts[first] = True
    flags: Ints = starts.astype(np.int64)
    return flags


def _place(rng: np.random.Generator, *, shape: Shape, owner: Ints, lasts: Ints) -> Ints:
    """Put the sittings of each user on the clock: at likely hours, one after the other, within the log's days."""
    n, span = len(owner), shape.days * 86_400
    hours = np.cumsum(_HOURS) / _HOURS.sum()
    hours[-1] = 1.0
    second = ranks(hours, rng.random(n)) * 3600 + rng.integers(0, 3600, n)
    wish = rng.integers(0, shape.days, n) * 86_400 + second
    wish = wish[np.lexsort((wish, owner))]
    before = np.cumsum(lasts) - lasts
    # Pushing a sitting behind its predecessors is a running maximum; users are kept apart by a large step.
    apart = owner * (4 * span + int(lasts.sum()))
    start = np.maximum.accumulate(wish - before + apart) - apart + before
    last = np.searchsorted(owner, owner, side="right") - 1
    remaining = before[last] + lasts[last] - before
    placed: Ints = np.minimum(start, span - remaining)
    return placed
