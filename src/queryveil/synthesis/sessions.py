"""Rows of synthetic users: their information needs, sessions, refinements, typing errors and times."""

from typing import NamedTuple

import numpy as np

from queryveil.data import Bools, Int64s
from queryveil.synthesis.shapes import Shape, mandelbrot, ranks, within
from queryveil.synthesis.vocabulary import N_HEAD, N_SUBTOPICS, N_VARIANTS, Vocabulary

TOPIC, NAVIGATE, PERSON, LOCAL = range(4)
NONE = -1
N_TOPICS = 16
HEALTH = 4
MAX_WIDTH = 4

_TOPICS = mandelbrot(N_TOPICS, power=0.6, offset=1.0)
_SUBTOPICS = mandelbrot(N_SUBTOPICS, power=0.7, offset=0.5)
_HEAD = mandelbrot(N_HEAD, power=2.2, offset=1.7)


class Needs(NamedTuple):
    """One entry per need: its kind, its subtopic and the words that stay through all its queries."""

    kind: Int64s
    subtopic: Int64s
    left: Int64s
    core: Int64s
    stop: Int64s
    width: Int64s  # how many modifiers the first query has
    rare: Bools
    flipped: Bools
    n_novel: int


def draw_needs(rng: np.random.Generator, *, vocabulary: Vocabulary, user: Int64s, length: Int64s) -> Needs:
    """Draw a need for each session; `user` and `length` say whose it is and how many rows it has."""
    n, shape = len(user), vocabulary.shape
    kind = ranks(np.cumsum([1 - sum(shape.kinds), *shape.kinds]).clip(max=1.0), rng.random(n)).clip(max=LOCAL)
    # Digging deep is for the rare things: long sessions are more often about them.
    rare = rng.random(n) < shape.rare * np.minimum(length, shape.deep) / shape.deep
    subtopic = _topics(rng, user) * N_SUBTOPICS + ranks(_SUBTOPICS, rng.random(n))
    core = vocabulary.start("head") + subtopic * N_HEAD + ranks(_HEAD, rng.random(n))
    ill = np.flatnonzero((subtopic // N_SUBTOPICS == HEALTH) & (rng.random(n) < 0.25))
    core[ill] = vocabulary.draw(rng, "illness", len(ill))
    left = np.full(n, NONE)
    stop = vocabulary.draw_ranked(rng, "stop", n, power=1.0, offset=3.0)
    stop[(rng.random(n) >= shape.stop_words) | (kind == NAVIGATE)] = NONE
    at = np.flatnonzero((kind == TOPIC) & rare)
    core[at], left[at], third, n_novel = _rare_words(rng, vocabulary, subtopic[at])
    stop[at] = np.where(third == NONE, stop[at], third)
    sites, people, places = (np.flatnonzero(kind == which) for which in (NAVIGATE, PERSON, LOCAL))
    core[sites] = vocabulary.draw_ranked(rng, "site", len(sites), power=0.6, offset=50.0)
    left[people] = vocabulary.draw_ranked(rng, "given", len(people), power=0.7, offset=30.0)
    core[people] = vocabulary.draw_ranked(rng, "surname", len(people), power=0.6, offset=50.0)
    left[people[rng.random(len(people)) < 0.4]] = NONE
    left[places] = vocabulary.draw_ranked(rng, "town", len(places), power=0.6, offset=50.0)
    core[places] = vocabulary.draw(rng, "business", len(places))
    plain = (kind == TOPIC) & ~rare
    width = plain + (rng.random(n) < shape.modifiers).astype(np.int64) + (plain & (rng.random(n) < 0.4))
    width[kind == NAVIGATE] = 0
    return Needs(kind, subtopic, left, core, stop, width, rare, rng.random(n) < 0.5, n_novel)


def draw_modifiers(rng: np.random.Generator, *, vocabulary: Vocabulary, subtopic: Int64s, rare: Bools) -> Int64s:
    """Draw one modifier for each entry: mostly from the subtopic, else from the topic or from everywhere."""
    n = len(subtopic)
    source, head = rng.random(n), vocabulary.start("head")
    elsewhere = subtopic // N_SUBTOPICS * N_SUBTOPICS + ranks(_SUBTOPICS, rng.random(n))
    modifier = head + np.where(source < 0.6, subtopic, elsewhere) * N_HEAD + ranks(_HEAD, rng.random(n))
    everywhere = np.flatnonzero(source > 0.8)
    modifier[everywhere] = vocabulary.draw_ranked(rng, "general", len(everywhere), power=1.0, offset=2.0)
    care = np.flatnonzero((subtopic // N_SUBTOPICS == HEALTH) & (source < 0.15))
    modifier[care] = vocabulary.draw(rng, "care", len(care))
    seldom = np.flatnonzero(rare & (source < vocabulary.shape.rare_modifiers))
    modifier[seldom] = _tail_words(rng, vocabulary, subtopic[seldom])
    return modifier


def _topics(rng: np.random.Generator, user: Int64s) -> Int64s:
    """Draw one to four topics for each user, the first ones asked most, and return one of them for each session."""
    n_users = int(user[-1]) + 1
    interests = ranks(_TOPICS, rng.random((n_users, 4)).ravel()).reshape(n_users, 4)
    n_interests = rng.integers(1, 5, n_users)
    pick = (n_interests[user] * rng.random(len(user)) ** 2).astype(np.int64)
    return interests[user, pick]


def _rare_words(
    rng: np.random.Generator, vocabulary: Vocabulary, subtopic: Int64s
) -> tuple[Int64s, Int64s, Int64s, int]:
    """Draw phrases of a core, a left and a third word, and how many words are the users' own and not of the tail."""
    n, shape = len(subtopic), vocabulary.shape
    core = _tail_words(rng, vocabulary, subtopic)
    # Neighbours in rank make a phrase: they are asked together more often than not.
    left = np.where(rng.random(n) < shape.phrase, _neighbour(vocabulary, core, distance=1), NONE)
    third = np.where((left != NONE) & (rng.random(n) < 0.5), _neighbour(vocabulary, core, distance=3), NONE)
    novel = np.flatnonzero(rng.random(n) < shape.novel)
    third[novel] = NONE
    n_novel = 0
    for column, chance in ((core, 1.0), (left, 0.85), (third, 0.4)):
        novel = novel[rng.random(len(novel)) < chance]
        column[novel] = len(vocabulary.table) + n_novel + np.arange(len(novel))
        n_novel += len(novel)
    return core, left, third, n_novel


def _neighbour(vocabulary: Vocabulary, word: Int64s, *, distance: int) -> Int64s:
    first = vocabulary.start("tail")
    return np.asarray(first + np.minimum((word - first) ^ distance, vocabulary.size("tail") - 1), np.int64)


def _tail_words(rng: np.random.Generator, vocabulary: Vocabulary, subtopic: Int64s) -> Int64s:
    n_tail = vocabulary.size("tail") // (N_TOPICS * N_SUBTOPICS)
    chances = mandelbrot(n_tail, power=vocabulary.shape.tail_power, offset=vocabulary.shape.tail_offset)
    return vocabulary.start("tail") + subtopic * n_tail + ranks(chances, rng.random(len(subtopic)))


class Rows(NamedTuple):
    """The rows of some users as numbers: `cells` are the words of each query in their order, -1 for none."""

    user: Int64s
    session_start: Bools
    kind: Int64s
    subtopic: Int64s
    core: Int64s
    cells: list[Int64s]
    n_novel: int


def draw_rows(rng: np.random.Generator, *, vocabulary: Vocabulary, lengths: Int64s, is_bot: Bools) -> Rows:
    """Draw all rows of some users, `lengths` of them each."""
    shape = vocabulary.shape
    user = np.repeat(np.arange(len(lengths)), lengths)
    first = np.cumsum(lengths) - lengths
    # A bot asks for few things, again and again; who asks most has the most different needs.
    restless = shape.new_need + 0.5 * (1 - shape.new_need) * np.minimum(lengths / shape.max_rows, 1)
    starts = rng.random(len(user)) < np.where(is_bot, 0.02, restless)[user]
    starts[first] = True
    session = np.cumsum(starts) - 1
    at = np.flatnonzero(starts)
    need = _revisits(rng, shape=shape, owner=user[at])[session]
    needs = draw_needs(rng, vocabulary=vocabulary, user=user[at], length=np.bincount(session))
    cells = _refine(rng, vocabulary=vocabulary, needs=needs, need=need, session=session, at=at)
    _mistype(rng, vocabulary=vocabulary, cells=cells)
    return Rows(user, starts, needs.kind[need], needs.subtopic[need], needs.core[need], cells, needs.n_novel)


def _revisits(rng: np.random.Generator, *, shape: Shape, owner: Int64s) -> Int64s:
    """Return the session whose need each session has: itself, or an earlier session of the user."""
    n = len(owner)
    index = np.arange(n)
    earlier = index - np.searchsorted(owner, owner)
    back = 1 + (rng.random(n) * earlier).astype(np.int64)
    need = np.where((rng.random(n) < shape.revisit) & (earlier > 0), index - np.minimum(back, earlier), index)
    while not np.array_equal(further := need[need], need):
        need = further
    return need


def _refine(
    rng: np.random.Generator, *, vocabulary: Vocabulary, needs: Needs, need: Int64s, session: Int64s, at: Int64s
) -> list[Int64s]:
    """Turn needs into queries: from row to row a word is added, dropped or swapped, or nothing changes."""
    step = rng.random(len(need))
    rest = 1 - vocabulary.shape.repeat
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
    pool = np.append(draw_modifiers(rng, vocabulary=vocabulary, subtopic=subtopic, rare=rare), NONE)
    where = base[need] + offset
    modifiers = [np.where(width > i, pool[np.minimum(where + i, len(pool) - 1)], NONE) for i in range(MAX_WIDTH)]
    return _arrange(vocabulary, needs, need, modifiers)


def _arrange(vocabulary: Vocabulary, needs: Needs, need: Int64s, modifiers: list[Int64s]) -> list[Int64s]:
    core, left, stop = needs.core[need], needs.left[need], needs.stop[need]
    for i, modifier in enumerate(modifiers):
        for other in (core, left, *modifiers[:i]):
            modifier[modifier == other] = NONE
    first_stop, beyond = vocabulary.ranges["stop"]
    stop[(modifiers[0] == NONE) & (stop >= first_stop) & (stop < beyond)] = NONE
    flipped = needs.flipped[need]
    first, *others = modifiers
    before = np.where(flipped, stop, NONE)
    after = np.where(flipped, NONE, first)
    navigates = needs.kind[need] == NAVIGATE
    www, com = vocabulary.start("web"), vocabulary.start("web") + 1
    form = needs.subtopic[need] % 5
    before[navigates & (form < 3)] = www
    after[navigates & (form != 4)] = com
    return [np.where(flipped, first, NONE), before, left, core, np.where(flipped, NONE, stop), after, *others]


def _mistype(rng: np.random.Generator, *, vocabulary: Vocabulary, cells: list[Int64s]) -> None:
    n_spelled = vocabulary.size("variants") // N_VARIANTS
    for column in cells:
        at = np.flatnonzero((column >= 0) & (column < n_spelled))
        at = at[rng.random(len(at)) < vocabulary.shape.misspelled]
        column[at] = vocabulary.start("variants") + column[at] * N_VARIANTS + rng.integers(0, N_VARIANTS, len(at))


PAUSE = 31 * 60  # seconds of rest that end a sitting; a session in the sense of the methods ends after 30 minutes
SITTING_ROWS = 60  # a person's sitting never has more rows, so none looks like a bot

# The chances of the hours of a day, summed up.
_HOURS = np.cumsum([3, 2, 1, 1, 1, 1, 2, 3, 5, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 7, 7, 7, 6, 4]) / 110


def draw_times(rng: np.random.Generator, *, shape: Shape, rows: Rows, lengths: Int64s, is_bot: Bools) -> Int64s:
    """Return the seconds from the start of the log to each row, in order within each user."""
    user, first = rows.user, np.cumsum(lengths) - lengths
    n_sessions = np.add.reduceat(rows.session_start, first, dtype=np.int64)
    # There must be time for all sittings, so whoever has many needs settles several in one.
    chance = np.minimum(0.8, shape.days * 12 / n_sessions)
    starts = rows.session_start & (rng.random(len(user)) < chance[user])
    starts |= (np.arange(len(user)) - first[user]) % SITTING_ROWS == 0
    starts &= ~is_bot[user]
    starts[first] = True
    at = np.flatnonzero(starts)
    sitting = np.cumsum(starts) - 1
    pace = np.where(is_bot, 2.0, np.minimum(45.0, shape.days * 86_400 / 3 / lengths))
    gap = 1 + (rng.standard_exponential(len(user)) * pace[user]).astype(np.int64).clip(max=900)
    gap[at] = 0
    passed = np.cumsum(gap)
    inside = passed - passed[at][sitting]
    lasts = np.bincount(sitting, weights=gap).astype(np.int64) + PAUSE
    start = _place(rng, shape=shape, owner=user[at], lasts=lasts)
    return np.asarray(start[sitting] + inside, np.int64)


def _place(rng: np.random.Generator, *, shape: Shape, owner: Int64s, lasts: Int64s) -> Int64s:
    """Put the sittings of each user on the clock: at likely hours, one after the other, within the log's days."""
    n, span = len(owner), shape.days * 86_400
    second = ranks(_HOURS, rng.random(n)) * 3600 + rng.integers(0, 3600, n)
    wish = rng.integers(0, shape.days, n) * 86_400 + second
    wish = wish[np.lexsort((wish, owner))]
    before = np.cumsum(lasts) - lasts
    # Pushing a sitting behind its predecessors is a running maximum; users are kept apart by a large step.
    apart = owner * (4 * span + int(lasts.sum()))
    start = np.maximum.accumulate(wish - before + apart) - apart + before
    last = np.searchsorted(owner, owner, side="right") - 1
    remaining = before[last] + lasts[last] - before
    return np.asarray(np.minimum(start, span - remaining), np.int64)
