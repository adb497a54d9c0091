"""Queries cut into terms."""

from __future__ import annotations

import unicodedata

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples

from queryveil.checks import tokens
from queryveil.checks.tokens import terms_of, tokenise


@pytest.mark.parametrize(
    ("query", "terms"),
    [
        ("", []),
        (" \t\n ?!", []),
        ("Blue-Bottle 2nd", ["blue", "bottle", "2nd"]),
        ("snake_case can't", ["snake", "case", "can", "t"]),
        ("cafe\u0301 CAFE\u0301", ["caf\u00e9", "caf\u00e9"]),
        ("नमस्ते दुनिया १२", ["नमस्ते", "दुनिया", "१२"]),
        ("日本語、テスト", ["日本語", "テスト"]),
        ("ΟΔΟΣ İ", ["οδος", "i\u0307"]),
        ("x² ½ Ⅷ", ["x"]),
        ("a\u00a0b\u200bc\x00d", ["a", "b", "c", "d"]),
        ("cat🐈dog", ["cat", "dog"]),
        ("a\U000e0fffb", ["a\U000e0fffb"]),
        ("\u212aelvin", ["kelvin"]),
    ],
)
def test_a_query_is_cut_at_everything_but_letters_marks_and_digits(query: str, terms: list[str]) -> None:
    assert terms_of(query) == terms


@examples(40)
@given(st.text())
def test_terms_hold_letters_marks_digits_and_unknown_characters_only(query: str) -> None:
    for term in terms_of(query):
        assert term
        for character in term:
            category = unicodedata.category(character)
            assert category[0] in "LM" or category in {"Nd", "Cn"}
    joined = "".join(terms_of(query))
    composed = unicodedata.normalize("NFC", query.lower())
    kept = [c for c in composed if unicodedata.category(c)[0] in "LM" or unicodedata.category(c) in {"Nd", "Cn"}]
    assert joined == "".join(kept)


texts = st.text(st.characters(codec="utf-8"), max_size=12) | st.text("aB1 -_.é", max_size=12)


@examples(40)
@given(st.lists(texts, max_size=20), st.integers(1, 8))
def test_many_queries_are_cut_as_each_one_is(queries: list[str], chunk: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokens, "_CHUNK", chunk)
        numbered = tokenise(pl.Series(queries, dtype=pl.String))
    words = numbered.words.to_list()
    bounds = zip(numbered.starts[:-1], numbered.starts[1:], strict=True)
    assert [[words[term] for term in numbered.terms[a:b]] for a, b in bounds] == [terms_of(q) for q in queries]
    assert words == sorted(set(words), key=str.encode)
