"""Semantic units: the longest first, plurals, stop words, and what was typed as one word."""

from __future__ import annotations

import polars as pl
import pytest

from queryveil.text.classifier import Classifier
from queryveil.text.classifier.classifier import UnitTable, byte_words
from queryveil.text.tokens import join_terms


@pytest.fixture(scope="module")
def table() -> UnitTable:
    return UnitTable.build(
        frequencies=pl.DataFrame({"unit": ["walk", "red", "water"], "count": [5, 2_000_000, 3_000_000]}),
        recommendations=pl.DataFrame({"misspelt": ["soop", "my tea"], "correct": ["soup", "mint tea"]}),
        categories=pl.DataFrame(
            {
                "unit": [
                    "soup",
                    "soup bowl",
                    "soup bowl set",
                    "bowl",
                    "mint tea",
                    "berry",
                    "glass",
                    "red",
                    "water",
                    "the",
                ],
                "category": pl.Series([5, 12, 12, 12, 5, 5, 12, 0, 11, 0], dtype=pl.Int32),
                "weight": pl.Series([1.0] * 10, dtype=pl.Float32),
            }
        ),
    )


def units(table: UnitTable, query: str, *, reads_corrected: bool = True) -> list[str]:
    found = table.find(pl.Series([query]), reads_corrected=reads_corrected)
    return [table.names[unit] for unit in found.unit.tolist() if unit >= 0]


def test_the_units_of_the_paper_s_example_are_its_three() -> None:
    found = units(Classifier().table, "european soccer barcelona players")
    assert found[:2] == ["european soccer", "barcelona"]
    assert found[2] in ("player", "players")
    assert len(found) == 3


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("soup", ["soup"]),
        ("soup bowl", ["soup bowl"]),
        ("soup bowl set", ["soup bowl set"]),
        ("soup bowl soup bowl set soup", ["soup bowl", "soup bowl set", "soup"]),
        ("soup, bowl", ["soup bowl"]),
        ("set bowl soup", ["bowl", "soup"]),
        ("soup bowls", ["soup bowl"]),
        ("soups bowls", ["soup", "bowl"]),
        ("berries glasses", ["berry", "glass"]),
        ("the soup of the walk", ["soup"]),
        ("redwater redwaters", ["red", "water", "red", "water"]),
        ("my tea", ["mint tea"]),
        ("SOUP Bowl", ["soup bowl"]),
        ("mint été tea", []),
    ],
)
def test_units_are_found_longest_first(table: UnitTable, query: str, expected: list[str]) -> None:
    assert units(table, query) == expected


def test_units_of_several_words_are_found_among_corrected_words_only_if_asked(table: UnitTable) -> None:
    assert units(table, "soop bowl") == ["soup bowl"]
    assert units(table, "soop bowl", reads_corrected=False) == ["soup", "bowl"]


def test_a_stop_word_is_no_unit_though_a_table_lists_it(table: UnitTable) -> None:
    assert "the" not in table.names.to_list()
    assert units(table, "the") == []


def test_words_are_those_of_the_tokens_everywhere_else() -> None:
    queries = pl.Series(
        ["Ad-Placement,  LONDON!", "", "Crème BRÛLÉE—now", "a1 b_2", "हिन्दी", "İstanbul", None, "\x00x"]
    )
    words = byte_words(queries)
    texts = [bytes(words.data[a:b]).decode() for a, b in zip(words.starts, words.ends, strict=True)]
    found = [" ".join(texts[a:b]) for a, b in zip(words.ptr, words.ptr[1:], strict=False)]
    assert found == join_terms(queries.fill_null("")).to_list()


def test_a_table_of_units_does_not_show_them() -> None:
    assert repr(Classifier().table).startswith("UnitTable(n_units=")
