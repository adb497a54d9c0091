"""The shapes a made-up log can have: how many users, how many queries, how the words spread."""

from dataclasses import dataclass
from datetime import datetime

import numpy as np

from queryveil.data import Floats, Int64s


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What a log looks like, at its own number of users; what is not said is as in `web`.

    At other sizes rows and term occurrences grow with the users, lists of names, towns, sites and rare words more
    slowly (`growth` is the power), as they do in real logs.

    >>> ALTAVISTA.users
    367803
    """

    name: str
    users: int
    rows_per_user: float
    max_rows: int  # no user has more; the longest histories come from here
    tail: float  # steepness of the number of rows a user has: larger means fewer long histories
    start: datetime
    days: int
    has_clicks: bool = True
    clicked: float = 0.54  # share of the rows with a rank and a URL
    new_need: float = 0.32  # chance that a row starts something new
    revisit: float = 0.2  # chance that something new is something the user asked before
    repeat: float = 0.5  # chance that a row repeats the one before: the next page, or one more click
    rare: float = 0.5  # chance that a topical need of many rows is about a word from the tail
    deep: int = 5  # how many rows are many; with fewer rows that chance is lower in proportion
    phrase: float = 0.6  # chance that a rare word comes with its neighbour
    rare_modifiers: float = 0.2  # chance that a modifier of a rare word is rare too
    novel: float = 0.4  # chance that such a word is one that nobody else uses
    kinds: tuple[float, float, float] = (0.16, 0.08, 0.08)  # navigational, name and local needs; the rest are topical
    modifiers: float = 0.5  # chance that a query about a rare word, a person or a place starts with one
    stop_words: float = 0.4
    misspelled: float = 0.02  # chance that an English word is mistyped
    tail_words: int = 40  # rare words of each of the 80 subtopics
    tail_power: float = 1.0
    tail_offset: float = 4.0
    surnames: int = 150
    towns: int = 120
    sites: int = 200
    growth: float = 0.8
    users_per_bot: int = 1000
    users_per_planted: int | None = None  # in large logs; None: one in a thousand in logs of all sizes


WEB = Shape(
    name="web",
    users=1000,
    rows_per_user=12.0,
    max_rows=600,
    tail=2.4,
    start=datetime(2024, 3, 1),
    days=30,
    users_per_planted=160,
)
ALTAVISTA = Shape(
    name="altavista",
    users=367_803,
    rows_per_user=1_846_134 / 367_803,
    max_rows=660,
    tail=3.2,
    start=datetime(2002, 9, 8),
    days=1,
    has_clicks=False,
    new_need=0.05,
    revisit=0.05,
    rare=1.0,
    deep=4,
    novel=0.322,
    phrase=0.61,
    rare_modifiers=0.02,
    kinds=(0.084, 0.05, 0.05),
    stop_words=0.5,
    modifiers=0.6,
    tail_words=1100,
    tail_power=0.8,
    tail_offset=2.0,
    surnames=450,
    towns=380,
    sites=580,
    users_per_bot=20_000,
)
AOL = Shape(
    name="aol",
    users=650_000,
    rows_per_user=36_000_000 / 650_000,
    max_rows=4000,
    tail=2.0,
    start=datetime(2006, 3, 1),
    days=92,
    revisit=0.25,
    repeat=0.42,
    tail_words=4000,
    surnames=20_000,
    towns=8_000,
    sites=40_000,
    users_per_bot=20_000,
)

SHAPES = {shape.name: shape for shape in (WEB, ALTAVISTA, AOL)}


def mandelbrot(n: int, *, power: float, offset: float) -> Floats:
    """Return the cumulative Zipf-Mandelbrot chances of ranks 0 to n-1: (rank + 1 + offset) ** -power.

    >>> [round(float(x), 2) for x in mandelbrot(3, power=1.0, offset=0.0)]
    [0.55, 0.82, 1.0]
    """
    weights = (np.arange(1, n + 1) + offset) ** -power
    cumulative: Floats = np.cumsum(weights) / weights.sum()
    cumulative[-1] = 1.0
    return cumulative


def ranks(cumulative: Floats, uniform: Floats) -> Int64s:
    """Turn uniform numbers below 1 into ranks with the given cumulative chances."""
    return np.searchsorted(cumulative, uniform, side="right").astype(np.int64)


def history_lengths(rng: np.random.Generator, *, users: int, mean: float, most: int, power: float) -> Int64s:
    """Draw how many rows each user has: heavy-tailed, with the given mean and largest value."""
    low, high = 0.0, 200.0
    for _ in range(60):
        offset = (low + high) / 2
        cumulative = mandelbrot(most, power=power, offset=offset)
        expected = most - cumulative[:-1].sum()
        low, high = (offset, high) if expected < mean else (low, offset)
    # Spread evenly, so that the sum hardly depends on the seed.
    even = (rng.permutation(users) + 0.5) / users
    return ranks(cumulative, even) + 1


def within(values: Int64s, starts: Int64s, group: Int64s) -> Int64s:
    """Return the running sum of values within each group; `starts` are the groups' first rows.

    >>> within(np.array([1, 1, 1, 1]), np.array([0, 2]), np.array([0, 0, 1, 1])).tolist()
    [1, 2, 1, 2]
    """
    total = np.cumsum(values)
    return total - (total[starts] - values[starts])[group]
