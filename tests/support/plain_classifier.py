"""The classifier in plain Python, to compare with: it reads like the paper's algorithm 1 and takes its time.

Tables are dictionaries, queries are split by a regular expression, and a misspelt word is compared with every word.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import polars as pl

from queryveil.text.classifier.classifier import (
    MIN_SPLIT_COUNT,
    N_WORDS,
    SHORTEST,
    read_categories,
    read_frequencies,
    read_recommendations,
)
from queryveil.text.tokens import ENGLISH, join_terms

_MOST_WORDS = 8


class Answer(NamedTuple):
    """The place of a category (-1: none) and the unit that decided."""

    category: int
    main_unit: str | None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PlainClassifier:
    """The three tables, the words that stand in them, and the words that others are corrected to."""

    categories: Mapping[str, int]
    frequencies: Mapping[str, int]
    recommendations: Mapping[str, str]
    words: frozenset[str]
    targets: Mapping[str, int]

    @classmethod
    def of_package(cls) -> PlainClassifier:
        """Take the tables that the package ships."""
        return cls.of(read_frequencies(), read_recommendations(), read_categories())

    @classmethod
    def of(cls, frequencies: pl.DataFrame, recommendations: pl.DataFrame, categories: pl.DataFrame) -> PlainClassifier:
        """Take tables as `classifier.classifier` reads them."""
        best: dict[str, tuple[float, int]] = {}
        for unit, category, weight in categories.iter_rows():
            if unit not in ENGLISH:
                best[unit] = max(best.get(unit, (0.0, 0)), (weight, -category))
        counts = dict(frequencies.iter_rows())
        meant = dict(recommendations.iter_rows())
        texts = [*best, *counts, *meant, *meant.values()]
        parts = [part for text in (*best, *meant, *meant.values()) for part in text.split()]
        fit = [unit for unit in best if re.fullmatch(rf"[a-z]{{{SHORTEST},}}", unit) and counts.get(unit, 0) > 0]
        return cls(
            categories={unit: -negative for unit, (_, negative) in best.items()},
            frequencies=counts,
            recommendations=meant,
            words=frozenset({*texts, *parts, *ENGLISH}),
            targets={unit: i for i, unit in enumerate(sorted(fit, key=lambda unit: -counts[unit])[:N_WORDS])},
        )

    def classify(self, query: str) -> Answer:
        """Paper: algorithm 1 for one query."""
        least, main = float("inf"), None
        for unit in self.units(query):
            count = self.frequencies.get(unit, 0)
            if count < least:
                least, main = count, unit
        return Answer(self.categories[main] if main is not None else -1, main)

    def units(self, query: str) -> list[str]:
        """Return the semantic units, the longest first, each as it was meant."""
        words = join_terms(pl.Series([query]))[0].split()
        found: list[str] = []
        while words:
            for n in range(min(_MOST_WORDS, len(words)), 0, -1):
                units = self._several(words[:n]) if n > 1 else self._one(words[0])
                if units or n == 1:
                    found += units
                    words = words[n:]
                    break
        return found

    def _several(self, words: list[str]) -> list[str]:
        for last in (words[-1], self._singular(words[-1])):
            typed = " ".join([*words[:-1], last or ""])
            unit = typed if typed in self.categories else self.recommendations.get(typed, "")
            if unit in self.categories:
                return [unit]
        return []

    def _one(self, word: str) -> list[str]:
        if word in self.categories:
            return [word]
        if word in self.words:
            meant = self.recommendations.get(word) or self._singular(word)
        else:
            meant = self._singular(word) or self._nearby(word)
        if meant is None and word not in self.words:
            return self._split(word)
        return [meant] if meant is not None and meant in self.categories else []

    def _singular(self, word: str) -> str | None:
        if len(word.encode()) <= 3 or not word.endswith("s") or word.endswith("ss"):
            return None
        forms = [word[:-1]]
        if word.endswith("es"):
            forms += [word[:-2]]
        if word.endswith("ies") and len(word.encode()) > 4:
            forms += [word[:-3] + "y"]
        known = [form for form in forms if form in self.categories] + [form for form in forms if form in self.words]
        return next(iter(known), None)

    def _nearby(self, word: str) -> str | None:
        if not re.fullmatch(r"[a-z]{5,}", word):
            return None
        near = [other for other in _one_apart(word) if other in self.targets and other[0] == word[0]]
        return min(near, key=lambda other: self.targets[other], default=None)

    def _split(self, word: str) -> list[str]:
        if not re.fullmatch(r"[a-z]{5,}", word):
            return []
        best, parts = MIN_SPLIT_COUNT, list[str]()
        for middle in range(3, len(word) - 2):
            left, right = word[:middle], word[middle:]
            if left not in self.words or self.frequencies.get(left, 0) < best:
                continue
            second = right if right in self.categories else self._singular(right) or ""
            if second in self.categories and self.frequencies.get(second, 0) >= best:
                best = min(self.frequencies[left], self.frequencies[second])
                parts = [left, second]
        return [part for part in parts if part in self.categories]


def _one_apart(word: str) -> set[str]:
    """Return every text that is one letter put in, left out or changed, or two neighbours swapped, away."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    cuts = [(word[:i], word[i:]) for i in range(len(word) + 1)]
    less = {a + b[1:] for a, b in cuts if b}
    other = {a + c + b[1:] for a, b in cuts if b for c in letters}
    more = {a + c + b for a, b in cuts for c in letters}
    swapped = {a + b[1] + b[0] + b[2:] for a, b in cuts if len(b) > 1}
    return less | other | more | swapped
