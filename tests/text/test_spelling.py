"""What misspelt words were meant to be: one letter away, the most frequent first, and only what is in no table."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples

from queryveil.text.classifier import Classifier, Kind
from queryveil.text.classifier._word_kernels import Nearby, are_one_apart, find_nearby, index_deletions
from queryveil.text.classifier.classifier import byte_words, read_recommendations

words = st.text("abc", min_size=1, max_size=6)


def distance(one: str, other: str) -> int:
    """The restricted Damerau-Levenshtein distance, by its definition."""
    table = np.zeros((len(one) + 1, len(other) + 1), int)
    table[:, 0], table[0, :] = range(len(one) + 1), range(len(other) + 1)
    for i in range(1, len(one) + 1):
        for j in range(1, len(other) + 1):
            best = [table[i - 1, j] + 1, table[i, j - 1] + 1, table[i - 1, j - 1] + (one[i - 1] != other[j - 1])]
            if i > 1 and j > 1 and one[i - 1] == other[j - 2] and one[i - 2] == other[j - 1]:
                best.append(table[i - 2, j - 2] + 1)
            table[i, j] = min(best)
    return int(table[-1, -1])


@examples(300)
@given(one=words, other=words)
def test_one_apart_means_a_distance_of_at_most_one(one: str, other: str) -> None:
    a, b = (np.frombuffer(text.encode(), np.uint8) for text in (one, other))
    assert are_one_apart(a, 0, len(a), b, 0, len(b)) == (distance(one, other) <= 1)


@examples(200)
@given(word=words, known=st.lists(words, min_size=1, max_size=12, unique=True))
def test_the_index_finds_what_comparing_with_every_word_finds(word: str, known: list[str]) -> None:
    table = byte_words(pl.Series(known))
    nearby = Nearby(*index_deletions(table), table, np.arange(len(known), dtype=np.int32))
    data = np.frombuffer(word.encode(), np.uint8)
    found = find_nearby(data, 0, len(data), nearby)
    near = [i for i, other in enumerate(known) if other[0] == word[0] and distance(word, other) <= 1]
    assert found == min(near, default=-1)


def main_unit(query: str) -> str | None:
    unit: str | None = Classifier(kind=Kind.PAPER).classify(pl.Series([query])).main_unit[0]
    return unit


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("artic", "arctic"),
        ("diabeets", "diabetes"),
        ("chemotherpy", "chemotherapy"),
        ("chemotheerapy", "chemotherapy"),
        ("basketbal", "basketball"),
        ("restaraunt", "restaurant"),
    ],
)
def test_a_misspelt_word_is_read_as_it_was_meant(typed: str, meant: str) -> None:
    assert main_unit(typed) == meant


@pytest.mark.parametrize("word", ["chest", "cheat", "beach", "train", "trial"])
def test_a_known_word_is_never_corrected(word: str) -> None:
    assert main_unit(word) == word


@pytest.mark.parametrize("word", ["zxqv", "b4nana5", "qwrtzp", "жжжжжж"])
def test_short_words_and_words_with_digits_or_other_letters_are_left_alone(word: str) -> None:
    assert main_unit(word) is None


def test_what_is_recommended_is_known_and_different() -> None:
    table = read_recommendations()
    known = set(Classifier().table.names.to_list())
    parts = [part for text in table["correct"] for part in text.split()]
    assert (table["misspelt"] != table["correct"]).all()
    assert sum(part in known for part in parts) > 0.85 * len(parts)
