"""Queries cut into terms, in every script."""
# ruff: noqa: RUF001

from __future__ import annotations

import unicodedata

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from queryveil.text import Tokens, join_terms, tokenize
from queryveil.text.tokens import encode

queries = st.lists(
    st.text(max_size=12) | st.text(alphabet="aB1 -é\u0301ΣσİКह\u093f\u094dไ\u0e31ب\u064e۳", max_size=12), max_size=8
)


def one(query: str) -> str:
    return str(join_terms(pl.Series([query]))[0])


def series(texts: list[str]) -> pl.Series:
    return pl.Series(texts, dtype=pl.String)


def words_of(tokens: Tokens) -> list[list[str]]:
    vocabulary = tokens.vocabulary.to_list()
    by_query = [[vocabulary[t] for t in terms] for terms in tokens.query_terms.to_lists()]
    assert tokens.row_terms().to_lists() == [tokens.query_terms.row(q).tolist() for q in tokens.row_query]
    return [by_query[q] for q in tokens.row_query]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("Ad-Placement", "ad placement"),
        ("  RED\twine\n", "red wine"),
        ("www.example.com/a_b?c=d", "www example com a b c d"),
        ("o'hara & sons", "o hara sons"),
        ("route 66b", "route 66b"),
        ("½ x² Ⅷ", "x"),
        ("?!…", ""),
        ("", ""),
        ("naïve CAFÉ", "naïve café"),
        ("STRASSE straße", "strasse straße"),
        ("ΟΔΟΣ", "οδος"),
        ("МОСКВА", "москва"),
        ("नमस्ते दुनिया", "नमस्ते दुनिया"),
        ("ที่นี่", "ที่นี่"),
        ("مَرْحَبًا، بك", "مَرْحَبًا بك"),
        ("٣ مدن", "٣ مدن"),
        ("東京、天気", "東京 天気"),
        ("tea\u00a0pot", "tea pot"),
        ("tea\u200bpot", "tea pot"),
        ("tea\0pot", "tea pot"),
        ("🫖 tea", "tea"),
    ],
)
def test_a_query_is_its_letters_marks_and_digits_in_lower_case(query: str, expected: str) -> None:
    assert one(query) == expected


@pytest.mark.parametrize("text", ["café crème", "Ångström", "हिन्दी", "한국어", "Việt Nam", "ḍ̇"])
def test_composed_and_decomposed_letters_are_the_same_terms(text: str) -> None:
    composed, decomposed = (unicodedata.normalize(form, text) for form in ("NFC", "NFD"))
    assert one(composed) == one(decomposed)
    assert tokenize(pl.Series([composed, decomposed])).n_terms == len(text.split())


@given(st.text(max_size=6))
def test_any_text_is_the_same_composed_and_decomposed(text: str) -> None:
    assert one(unicodedata.normalize("NFC", text)) == one(unicodedata.normalize("NFD", text)) == one(text)


def test_a_mark_never_separates_two_letters() -> None:
    assert one("n\u0303o\u0304x\u0331y") == one(unicodedata.normalize("NFC", "n\u0303o\u0304x\u0331y"))
    assert " " not in one("x\u0331y")


@given(queries)
@example(["", "a"])
@example(["a", ""])
@example(["b", "", "a", "?", "b a"])
@example(["", "", ""])
@example([])
def test_the_terms_of_a_row_joined_are_its_normal_form(texts: list[str]) -> None:
    tokens = tokenize(series(texts))
    assert [" ".join(words) for words in words_of(tokens)] == join_terms(series(texts)).to_list()
    assert [tokens.queries[q] for q in tokens.row_query.tolist()] == join_terms(series(texts)).to_list()


@given(queries)
def test_terms_are_numbered_once_each_and_none_is_empty(texts: list[str]) -> None:
    tokens = tokenize(series(texts))
    vocabulary = tokens.vocabulary.to_list()
    assert len(set(vocabulary)) == len(vocabulary) == tokens.n_terms
    assert "" not in vocabulary
    assert set(tokens.terms.tolist()) == set(range(tokens.n_terms))
    assert tokens.query_terms.ptr[-1] == len(tokens.terms)


@given(queries)
def test_the_normal_form_of_a_normal_form_is_itself(texts: list[str]) -> None:
    once = join_terms(series(texts))
    assert join_terms(once).to_list() == once.to_list()


def test_spellings_of_one_query_are_one_query() -> None:
    tokens = tokenize(pl.Series(["Red wine", "RED  WINE!", "wine red"]))
    assert tokens.row_query.tolist() == [0, 0, 1]
    assert tokens.queries.to_list() == ["red wine", "wine red"]


def test_a_term_twice_in_a_query_is_there_twice() -> None:
    assert words_of(tokenize(pl.Series(["new york new york"]))) == [["new", "york", "new", "york"]]


@given(st.lists(st.text(max_size=5), max_size=10))
def test_codes_lead_back_to_the_texts_in_the_order_of_their_first_appearance(texts: list[str]) -> None:
    codes, distinct = encode(series(texts))
    assert [distinct[code] for code in codes.tolist()] == texts
    assert distinct.to_list() == list(dict.fromkeys(texts))


def test_codes_of_a_column_in_several_chunks_are_those_of_one_chunk() -> None:
    parts = pl.concat([pl.Series(["b", "a"]), pl.Series(["a", "c"])], rechunk=False)
    assert parts.n_chunks() == 2
    codes, distinct = encode(parts)
    assert (codes.tolist(), distinct.to_list()) == ([0, 1, 1, 2], ["b", "a", "c"])


def test_the_repr_of_tokens_shows_no_text() -> None:
    assert repr(tokenize(pl.Series(["brass kettle"]))) == "Tokens(n_rows=1, n_queries=1, n_terms=2)"
