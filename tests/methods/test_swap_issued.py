"""Keyed hashes of texts, and the filter of blocks: never a miss, few mistakes."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.plain_swap import fold

from queryveil.data import UInt64s
from queryveil.methods.swap._issued import (
    BITS,
    empty_filter,
    has,
    hash_queries,
    hash_users,
    pair_hash,
    pair_hashes,
    put,
)

# What Python's Unicode does not know yet may be a letter in that of Polars.
KNOWN = st.characters(exclude_categories=("Cs", "Cn"))
KEY = np.array([3, 0x1234567890ABCDEF], np.uint64)


def hashes(n: int, *, seed: int = 0) -> UInt64s:
    return np.random.default_rng(seed).integers(0, 2**64, n, dtype=np.uint64)


def test_what_was_put_in_is_always_found() -> None:
    known = hashes(200_000)
    blocks = empty_filter(100_000)
    put(blocks, known)
    assert all(has(blocks, key) for key in known[::50])


def test_of_a_thousand_others_few_are_found_by_mistake() -> None:
    blocks = empty_filter(100_000)
    put(blocks, hashes(100_000))
    others = hashes(20_000, seed=1)
    assert sum(has(blocks, key) for key in others) < 0.012 * len(others)
    assert blocks.nbytes * 8 <= BITS * 100_000 * 1.01


def test_pairs_of_few_users_and_texts_do_not_collide_in_the_filter() -> None:
    """Hashes of pairs must be spread however regular the users and texts are."""
    users = hash_users(pl.Series([str(i) for i in range(400)]), key=KEY)
    texts = hash_queries(pl.Series([f"query {i}" for i in range(500)]), key=KEY)
    pairs = pair_hashes(np.repeat(users, 500), np.tile(texts, 400))
    assert len(np.unique(pairs)) == len(pairs)
    blocks = empty_filter(100_000)
    put(blocks, pairs[::2])
    assert sum(has(blocks, key) for key in pairs[1::20]) < 0.012 * len(pairs[1::20])
    assert pair_hash(users[1], texts[2]) != pair_hash(users[2], texts[1])


def test_an_empty_filter_has_nothing_and_a_small_one_is_not_too_small() -> None:
    assert not has(np.zeros(0, np.uint64), np.uint64(7))
    assert not has(empty_filter(1), np.uint64(7))
    assert empty_filter(1).ctypes.data % 64 == 0


@examples(40)
@given(texts=st.lists(st.text(KNOWN, max_size=12), min_size=1, max_size=30))
def test_queries_have_the_same_hash_exactly_if_their_words_are_the_same(texts: list[str]) -> None:
    numbers = hash_queries(pl.Series(texts, dtype=pl.String), key=KEY)
    by_words: dict[str, set[int]] = {}
    for text, number in zip(texts, numbers.tolist(), strict=True):
        by_words.setdefault(fold(text), set()).add(number)
    assert all(len(found) == 1 for found in by_words.values())
    ascii_words = {words for words in by_words if words.isascii()}
    assert len({number for words in ascii_words for number in by_words[words]}) == len(ascii_words)


@pytest.mark.parametrize(
    "alike",
    [
        ["red wine", "Red Wine", "  red\twine ", "RED-WINE!", "red, wine"],
        ["été", "ÉTÉ", "e\u0301te\u0301", " Été?"],
        ["12345678 12345678", "12345678  12345678."],
        ["", "  ", "?!"],
    ],
)
def test_ways_of_typing_a_query_are_the_same_query(alike: list[str]) -> None:
    assert len(set(hash_queries(pl.Series(alike), key=KEY).tolist())) == 1


def test_texts_that_differ_in_blanks_between_letters_or_in_length_differ() -> None:
    texts = ["ab", "a b", "a", "aa", "aaaaaaaa", "aaaaaaaaa", "a" * 16, "a" * 17, "aaaaaaaa a", "b" * 8 + "a" * 8]
    assert len(set(hash_queries(pl.Series(texts), key=KEY).tolist())) == len(texts)
    users = ["A", "a", " a", "a ", "a-b", "a b"]
    assert len(set(hash_users(pl.Series(users), key=KEY).tolist())) == len(users)


def test_another_key_gives_other_hashes() -> None:
    texts = pl.Series(["red wine", "tea"])
    other = np.array([4, 0x1234567890ABCDEF], np.uint64)
    odd = np.array([3, 0x1234567890ABCDED], np.uint64)
    ours = hash_queries(texts, key=KEY)
    assert not (ours == hash_queries(texts, key=other)).any()
    assert not (ours == hash_queries(texts, key=odd)).any()


def test_a_slice_of_a_column_is_hashed_as_a_column_of_its_own() -> None:
    texts = pl.Series([f"a query of number {i}" for i in range(100)])
    assert hash_queries(texts, key=KEY)[40:60].tolist() == hash_queries(texts[40:60], key=KEY).tolist()
    assert hash_users(texts, key=KEY)[40:60].tolist() == hash_users(texts[40:60], key=KEY).tolist()


def test_hashes_stay_the_same_in_later_versions() -> None:
    """They are kept in stores, so a change here would forget who issued what."""
    user, text = hash_users(pl.Series(["u1"]), key=KEY)[0], hash_queries(pl.Series(["Red wine"]), key=KEY)[0]
    assert int(text) == 10246684150593978944
    assert int(user) == 16733116143719283453
    assert int(pair_hash(user, text)) == 7209073470867164896
