"""Information needs of synthetic users: a fixed core and varying modifiers."""

from dataclasses import dataclass

import numpy as np

from queryveil.synthesis.shapes import Ints, Shape, mandelbrot, ranks
from queryveil.synthesis.vocabulary import N_HEAD, N_SUBTOPICS, Vocabulary

TOPIC, NAVIGATE, PERSON, LOCAL = range(4)
NONE = -1
N_TOPICS = 16
HEALTH = 4

_TOPICS = mandelbrot(N_TOPICS, power=0.6, offset=1.0)
_SUBTOPICS = mandelbrot(N_SUBTOPICS, power=0.7, offset=0.5)
_HEAD = mandelbrot(N_HEAD, power=2.2, offset=1.7)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Needs:
    """One entry per need: its kind, its subtopic and the words that stay through all its queries."""

    kind: Ints
    subtopic: Ints
    left: Ints
    core: Ints
    stop: Ints
    width: Ints
    """How many modifiers the first query has."""
    rare: Ints
    flipped: Ints
    n_novel: int


def draw_needs(
    rng: np.random.Generator, *, shape: Shape, vocabulary: Vocabulary, user: Ints, length: Ints, novel_from: int
) -> Needs:
    """Draw a need for each session; `user` and `length` say whose it is and how many rows it has."""
    n = len(user)
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
    core[at], left[at], third, n_novel = _rare_words(
        rng, shape=shape, vocabulary=vocabulary, subtopic=subtopic[at], novel_from=novel_from
    )
    stop[at] = np.where(third == NONE, stop[at], third)
    for which, draw in ((NAVIGATE, _site), (PERSON, _person), (LOCAL, _place)):
        at = np.flatnonzero(kind == which)
        left[at], core[at] = draw(rng, vocabulary, len(at))
    plain = (kind == TOPIC) & ~rare
    width = plain + (rng.random(n) < shape.modifiers).astype(np.int64) + (plain & (rng.random(n) < 0.4))
    width[kind == NAVIGATE] = 0
    return Needs(
        kind=kind,
        subtopic=subtopic,
        left=left,
        core=core,
        stop=stop,
        width=width.astype(np.int64),
        rare=rare.astype(np.int64),
        flipped=(rng.random(n) < 0.5).astype(np.int64),
        n_novel=n_novel,
    )


def draw_modifiers(
    rng: np.random.Generator, *, shape: Shape, vocabulary: Vocabulary, subtopic: Ints, rare: Ints
) -> Ints:
    """Draw one modifier for each entry: mostly from the subtopic, else from the topic or from everywhere."""
    n = len(subtopic)
    source, head = rng.random(n), vocabulary.start("head")
    elsewhere = subtopic // N_SUBTOPICS * N_SUBTOPICS + ranks(_SUBTOPICS, rng.random(n))
    modifier = head + np.where(source < 0.6, subtopic, elsewhere) * N_HEAD + ranks(_HEAD, rng.random(n))
    everywhere = np.flatnonzero(source > 0.8)
    modifier[everywhere] = vocabulary.draw_ranked(rng, "general", len(everywhere), power=1.0, offset=2.0)
    care = np.flatnonzero((subtopic // N_SUBTOPICS == HEALTH) & (source < 0.15))
    modifier[care] = vocabulary.draw(rng, "care", len(care))
    seldom = np.flatnonzero((rare == 1) & (source < shape.rare_modifiers))
    modifier[seldom] = _tail_words(rng, shape, vocabulary, subtopic[seldom])
    return modifier


def _topics(rng: np.random.Generator, user: Ints) -> Ints:
    """Draw one to four topics for each user, the first ones asked most, and return one of them for each session."""
    n_users = int(user[-1]) + 1
    interests = ranks(_TOPICS, rng.random((n_users, 4)).ravel()).reshape(n_users, 4)
    n_interests = rng.integers(1, 5, n_users)
    pick = (n_interests[user] * rng.random(len(user)) ** 2).astype(np.int64)
    return interests[user, pick]


def _rare_words(
    rng: np.random.Generator, *, shape: Shape, vocabulary: Vocabulary, subtopic: Ints, novel_from: int
) -> tuple[Ints, Ints, Ints, int]:
    """Draw phrases of a core, a left and a third word: from the subtopic's tail, or words of the user's own.

    The number of these is the last value.
    """
    n = len(subtopic)
    core = _tail_words(rng, shape, vocabulary, subtopic)
    # Neighbours in rank make a phrase: they are asked together more often than not.
    left = np.where(rng.random(n) < shape.phrase, _neighbour(vocabulary, core, distance=1), NONE)
    third = np.where((left != NONE) & (rng.random(n) < 0.5), _neighbour(vocabulary, core, distance=3), NONE)
    novel = np.flatnonzero(rng.random(n) < shape.novel)
    third[novel] = NONE
    n_novel = 0
    for column, chance in ((core, 1.0), (left, 0.85), (third, 0.4)):
        novel = novel[rng.random(len(novel)) < chance]
        column[novel] = novel_from + n_novel + np.arange(len(novel))
        n_novel += len(novel)
    return core, left, third, n_novel


def _neighbour(vocabulary: Vocabulary, word: Ints, *, distance: int) -> Ints:
    first = vocabulary.start("tail")
    words: Ints = first + np.minimum((word - first) ^ distance, vocabulary.size("tail") - 1)
    return words


def _tail_words(rng: np.random.Generator, shape: Shape, vocabulary: Vocabulary, subtopic: Ints) -> Ints:
    n_tail = vocabulary.size("tail") // (N_TOPICS * N_SUBTOPICS)
    chances = mandelbrot(n_tail, power=shape.tail_power, offset=shape.tail_offset)
    words: Ints = vocabulary.start("tail") + subtopic * n_tail + ranks(chances, rng.random(len(subtopic)))
    return words


def _site(rng: np.random.Generator, vocabulary: Vocabulary, n: int) -> tuple[Ints, Ints]:
    return np.full(n, NONE), vocabulary.draw_ranked(rng, "site", n, power=0.6, offset=50.0)


def _person(rng: np.random.Generator, vocabulary: Vocabulary, n: int) -> tuple[Ints, Ints]:
    given = vocabulary.draw_ranked(rng, "given", n, power=0.7, offset=30.0)
    surname = vocabulary.draw_ranked(rng, "surname", n, power=0.6, offset=50.0)
    given[rng.random(n) < 0.4] = NONE
    return given, surname


def _place(rng: np.random.Generator, vocabulary: Vocabulary, n: int) -> tuple[Ints, Ints]:
    town = vocabulary.draw_ranked(rng, "town", n, power=0.6, offset=50.0)
    return town, vocabulary.draw(rng, "business", n)
