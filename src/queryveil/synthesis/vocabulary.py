"""The words of a made-up log: real ones for the head of each topic, invented ones for the long tail."""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import polars as pl

from queryveil.data import Int64s
from queryveil.synthesis.shapes import Shape, mandelbrot, ranks

N_SUBTOPICS = 5
N_HEAD = 14
N_VARIANTS = 16

# A word is read back as runs of consonants and vowels, so two numbers never give the same word.
_ONSETS = pl.Series("b br d dr f fl g gr h j k kl l m n p pl r s st t tr v z".split())  # noqa: SIM905 - a line each
_VOWELS = pl.Series(["a", "e", "i", "o", "u", "ai", "ee", "ou"])
_CODAS = pl.Series(["n", "l", "r", "s", "x", "m", "k", "t", "p", "nd"])
_N_SHORT = 300_000
_GIVEN = pl.Series(["nya", "lyo"])
_SURNAMES = pl.Series(["brandt", "mondy", "sky", "lundh", "vyk", "hartz", "wyn", "quist"])
_TOWNS = pl.Series(["ford", "bury", "ville", "fields", "wyck", "mouth", "burgh", "worth"])


def invent(serials: Int64s, *, endings: pl.Series = _CODAS) -> pl.Series:
    """Return a pronounceable word for each serial number, all of them different.

    >>> invent(np.arange(3)).n_unique()
    3
    """
    long = serials >= _N_SHORT
    syllables, n = len(_ONSETS) * len(_VOWELS), len(endings)
    # Multiplying by a number without common factor shuffles the serials, and keeps them apart.
    short_space, long_space = syllables**2 * n, syllables**3 * n
    scrambled = np.where(long, (serials - _N_SHORT) * 48_271 % long_space, serials * 48_271 % short_space)
    parts: list[pl.Series] = []
    for digit in range(3):
        syllable = scrambled % syllables
        scrambled = scrambled // syllables if digit < 2 else np.where(long, scrambled // syllables, scrambled)
        parts += [_ONSETS.gather(syllable // len(_VOWELS)), _VOWELS.gather(syllable % len(_VOWELS))]
    frame = pl.DataFrame({str(i): part for i, part in enumerate([*parts, endings.gather(scrambled % n)])})
    frame = frame.with_columns(pl.when(pl.Series(long)).then(pl.col(str(i))).alias(str(i)) for i in (4, 5))
    return frame.select(word=pl.concat_str(pl.all(), ignore_nulls=True))["word"]


@cache
def words() -> dict[str, Any]:
    """Read the word lists that ship with the package."""
    lists = tomllib.loads(resources.files("queryveil.synthesis").joinpath("words.toml").read_text(encoding="utf-8"))
    return {name: value if name == "topics" else value.split() for name, value in lists.items()}


def misspell(word: str, *, variant: int) -> str:
    """Mistype a word in one of sixteen ways: letters swapped, dropped, doubled or replaced.

    >>> [misspell("guitar", variant=v) for v in range(4)]
    ['ugitar', 'gitar', 'guiitar', 'guiuar']
    """
    at = (variant + variant // 4) % (len(word) - 1)
    ways = (
        word[at + 1] + word[at] + word[at + 2 :],
        word[at + 1 :],
        word[at] + word[at:],
        "eaiou"[(len(word) + variant) % 5] + word[at + 1 :],
    )
    return word[:at] + ways[variant % 4]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Vocabulary:
    """All words that more than one user may use, as one column; each kind is a range of its rows.

    A user's own word has a number above the column's length; `invent` makes it when it is needed.
    """

    shape: Shape
    table: pl.Series
    ranges: dict[str, tuple[int, int]]
    next_serial: int
    n_more: int = 0  # how many names and towns were added for people planted in large logs

    def numbers(self, word: Int64s) -> Int64s:
        """Return the numbers that words would have without the names and towns of people planted in large logs."""
        is_after = (word >= self.start("secret_town")).astype(np.int64) + (word >= len(self.table))
        return np.asarray(word - self.n_more * is_after, np.int64)

    def start(self, kind: str) -> int:
        """Return the number of the first word of a kind."""
        return self.ranges[kind][0]

    def size(self, kind: str) -> int:
        """Return how many words of a kind there are."""
        return self.ranges[kind][1] - self.ranges[kind][0]

    def draw(self, rng: np.random.Generator, kind: str, n: int) -> Int64s:
        """Draw n words of a kind, each as likely as any other."""
        return self.start(kind) + rng.integers(0, self.size(kind), n)

    def draw_ranked(self, rng: np.random.Generator, kind: str, n: int, *, power: float, offset: float) -> Int64s:
        """Draw n words of a kind, the first ones most often."""
        return self.start(kind) + ranks(mandelbrot(self.size(kind), power=power, offset=offset), rng.random(n))


def build_vocabulary(shape: Shape, *, users: int, n_secrets: int, n_more: int = 0, shift: int) -> Vocabulary:
    """Lay out the words for a log of that many users; `shift` makes the invented ones differ."""
    n_secrets += n_more
    scale = (users / shape.users) ** shape.growth
    lists = words()
    head = [word for topic in lists["topics"].values() for subtopic in topic for word in subtopic.split()]
    real = {"head": head, **{kind: lists[kind] for kind in ("general", "business", "illness", "care", "stop")}}
    parts: dict[str, pl.Series] = {kind: pl.Series(kind, values, dtype=pl.String) for kind, values in real.items()}
    parts["web"] = pl.Series(["www", "com"])
    spelled = [word for kind in ("head", "general", "business") for word in real[kind]]
    parts["variants"] = pl.Series([misspell(word, variant=v) for word in spelled for v in range(N_VARIANTS)])
    n_tail, n_sites = max(10, round(shape.tail_words * scale)), max(20, round(shape.sites * scale))
    n_given = max(20, round(shape.surnames * scale * 0.4))
    n_surnames, n_towns = max(20, round(shape.surnames * scale)), max(20, round(shape.towns * scale))
    coined = {
        "site": invent(np.arange(n_sites) + shift),
        "tail": invent(np.arange(n_sites, n_sites + 16 * N_SUBTOPICS * n_tail) + shift),
        "given": invent(np.arange(n_given) + shift + 7_000, endings=_GIVEN),
        "surname": invent(np.arange(n_surnames + n_secrets) + shift + 14_000, endings=_SURNAMES),
        "town": invent(np.arange(n_towns + n_secrets) + shift + 70_000, endings=_TOWNS),
    }
    taken = pl.concat(parts.values())
    for kind, column in coined.items():
        clash = column.is_in(taken.implode())
        parts[kind] = pl.select(pl.when(clash).then(column + "ix").otherwise(column))[:, 0] if clash.any() else column
    parts["secret_name"], parts["surname"] = parts["surname"].tail(n_secrets), parts["surname"].head(n_surnames)
    parts["secret_town"], parts["town"] = parts["town"].tail(n_secrets), parts["town"].head(n_towns)
    ends = [0, *accumulate(len(column) for column in parts.values())]
    table = pl.concat([column.rename("word") for column in parts.values()]).rechunk()
    next_serial = shift + n_sites + 16 * N_SUBTOPICS * n_tail
    ranges = dict(zip(parts, pairwise(ends), strict=True))
    return Vocabulary(shape=shape, table=table, ranges=ranges, next_serial=next_serial, n_more=n_more)
