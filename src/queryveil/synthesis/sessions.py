"""Rows of synthetic users: sessions, refinements and typing errors."""

from dataclasses import dataclass

import numpy as np

from queryveil.synthesis.needs import NAVIGATE, NONE, Needs, draw_modifiers, draw_needs
from queryveil.synthesis.shapes import Ints, Shape, ranks, within
from queryveil.synthesis.vocabulary import N_VARIANTS, Vocabulary

MAX_WIDTH = 4


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Rows:
    """The rows of some users as numbers: `cells` are the words of each query in their order, -1 for none."""

    user: Ints
    session_start: Ints
    """Whether the row starts something new."""
    kind: Ints
    subtopic: Ints
    core: Ints
    cells: list[Ints]
    n_novel: int


def draw_rows(
    rng: np.random.Generator, *, shape: Shape, vocabulary: Vocabulary, lengths: Ints, is_bot: Ints, novel_from: int
) -> Rows:
    """Draw all rows of some users, `lengths` of them each."""
    user = np.repeat(np.arange(len(lengths)), lengths)
    first = np.cumsum(lengths) - lengths
    # A bot asks for few things, again and again; who asks most has the most different needs.
    restless = shape.new_need + 0.5 * (1 - shape.new_need) * np.minimum(lengths / shape.max_rows, 1)
    starts = rng.random(len(user)) < np.where(is_bot, 0.02, restless)[user]
    starts[first] = True
    session = np.cumsum(starts) - 1
    at = np.flatnonzero(starts)
    need = _revisits(rng, shape=shape, owner=user[at])[session]
    length = np.bincount(session)
    needs = draw_needs(rng, shape=shape, vocabulary=vocabulary, user=user[at], length=length, novel_from=novel_from)
    cells = _refine(rng, shape=shape, vocabulary=vocabulary, needs=needs, need=need, session=session, at=at)
    _mistype(rng, shape=shape, vocabulary=vocabulary, cells=cells)
    return Rows(
        user=user,
        session_start=starts.astype(np.int64),
        kind=needs.kind[need],
        subtopic=needs.subtopic[need],
        core=needs.core[need],
        cells=cells,
        n_novel=needs.n_novel,
    )


def _revisits(rng: np.random.Generator, *, shape: Shape, owner: Ints) -> Ints:
    """Say for each session whose need it has: its own, or that of an earlier session of the user."""
    n = len(owner)
    index = np.arange(n)
    first = np.searchsorted(owner, owner)
    earlier = index - first
    back = 1 + (rng.random(n) * earlier).astype(np.int64)
    need = np.where((rng.random(n) < shape.revisit) & (earlier > 0), index - np.minimum(back, earlier), index)
    while True:
        further = need[need]
        if np.array_equal(further, need):
            return need
        need = further


def _refine(
    rng: np.random.Generator, *, shape: Shape, vocabulary: Vocabulary, needs: Needs, need: Ints, session: Ints, at: Ints
) -> list[Ints]:
    """Turn needs into queries: from row to row a word is added, dropped or swapped, or nothing changes."""
    step = rng.random(len(need))
    rest = 1 - shape.repeat
    added = (step > 1 - 0.3 * rest).astype(np.int64)
    dropped = ((step > 1 - 0.6 * rest) & (added == 0)).astype(np.int64)
    swapped = ((step > 1 - rest) & (step <= 1 - 0.6 * rest)).astype(np.int64)
    for change in (added, dropped, swapped):
        change[at] = 0
    width = (needs.width[need] + within(added - dropped, at, session)).clip(0, MAX_WIDTH)
    width[needs.kind[need] == NAVIGATE] = 0
    offset = within(swapped, at, session)
    reach = np.zeros(len(needs.kind), dtype=np.int64)
    np.maximum.at(reach, need, offset + width)
    base = np.cumsum(reach) - reach
    subtopic, rare = np.repeat(needs.subtopic, reach), np.repeat(needs.rare, reach)
    pool = np.append(draw_modifiers(rng, shape=shape, vocabulary=vocabulary, subtopic=subtopic, rare=rare), NONE)
    where = base[need] + offset
    modifiers = [np.where(width > i, pool[np.minimum(where + i, len(pool) - 1)], NONE) for i in range(MAX_WIDTH)]
    return _arrange(vocabulary, needs, need, modifiers)


def _arrange(vocabulary: Vocabulary, needs: Needs, need: Ints, modifiers: list[Ints]) -> list[Ints]:
    core, left, stop = needs.core[need], needs.left[need], needs.stop[need]
    for i, modifier in enumerate(modifiers):
        for other in (core, left, *modifiers[:i]):
            modifier[modifier == other] = NONE
    first_stop, beyond = vocabulary.ranges["stop"]
    stop[(modifiers[0] == NONE) & (stop >= first_stop) & (stop < beyond)] = NONE
    flipped = needs.flipped[need] == 1
    first, *others = modifiers
    before = np.where(flipped, stop, NONE)
    after = np.where(flipped, NONE, first)
    navigates = needs.kind[need] == NAVIGATE
    www, com = vocabulary.start("web"), vocabulary.start("web") + 1
    form = needs.subtopic[need] % 5
    before[navigates & (form < 3)] = www
    after[navigates & (form != 4)] = com
    return [np.where(flipped, first, NONE), before, left, core, np.where(flipped, NONE, stop), after, *others]


def _mistype(rng: np.random.Generator, *, shape: Shape, vocabulary: Vocabulary, cells: list[Ints]) -> None:
    n_spelled = vocabulary.size("variants") // N_VARIANTS
    for column in cells:
        at = np.flatnonzero((column >= 0) & (column < n_spelled))
        at = at[rng.random(len(at)) < shape.misspelled]
        column[at] = vocabulary.start("variants") + column[at] * N_VARIANTS + rng.integers(0, N_VARIANTS, len(at))


PAUSE = 31 * 60
"""Seconds of rest that end a sitting; a session in the sense of the methods ends after 30 minutes."""
SITTING_ROWS = 60
"""A person's sitting never has more rows, so none looks like a bot."""

_HOURS = np.array([3, 2, 1, 1, 1, 1, 2, 3, 5, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 7, 7, 7, 6, 4], dtype=np.float64)


def draw_times(
    rng: np.random.Generator, *, shape: Shape, user: Ints, lengths: Ints, is_bot: Ints, session_start: Ints
) -> Ints:
    """Return the seconds of each row since the log's start, in order within each user."""
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
