"""Histories against plain dicts, and the way back to queries."""

from __future__ import annotations

from collections import Counter

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples

from queryveil.data import Bools, Int32s
from queryveil.text import Tokens, tokenize
from queryveil.text import histories as module
from queryveil.text.histories import Histories, collect, rewrite

N_USERS = 4
words = st.lists(st.sampled_from(["amber", "birch", "cedar", "dahlia", "हिन्दी"]), max_size=5)
rows = st.lists(st.tuples(st.integers(0, N_USERS - 1), words), max_size=12)
Rows = list[tuple[int, list[str]]]


def read(given_rows: Rows) -> tuple[Tokens, Int32s, Histories]:
    tokens = tokenize(pl.Series([" ".join(terms) for _, terms in given_rows], dtype=pl.String))
    owners = np.array([user for user, _ in given_rows], dtype=np.int32)
    return tokens, owners, collect(tokens, owners, n_users=N_USERS)


def written(tokens: Tokens, owners: Int32s, histories: Histories, marks: Bools) -> list[str]:
    return rewrite(tokens, owners, histories, np.where(marks, histories.terms, -1), tokens.vocabulary).to_list()


def as_counters(tokens: Tokens, histories: Histories) -> list[dict[str, int]]:
    ptr = histories.user_terms.ptr.tolist()
    return [
        {tokens.vocabulary[int(histories.terms[i])]: int(histories.counts[i]) for i in range(ptr[u], ptr[u + 1])}
        for u in range(histories.n_users)
    ]


def plainly(given_rows: Rows) -> list[Counter[str]]:
    counters = [Counter[str]() for _ in range(N_USERS)]
    for user, terms in given_rows:
        counters[user].update(terms)
    return counters


@given(rows)
def test_collect_counts_the_terms_of_each_user_as_a_dict_would(given_rows: Rows) -> None:
    tokens, _, histories = read(given_rows)
    assert as_counters(tokens, histories) == [dict(counter) for counter in plainly(given_rows)]
    for user in range(N_USERS):
        assert (np.diff(histories.user_terms.row(user)) > 0).all()


@given(rows)
def test_support_counts_users_and_frequency_counts_occurrences(given_rows: Rows) -> None:
    tokens, _, histories = read(given_rows)
    counters = plainly(given_rows)
    vocabulary = tokens.vocabulary.to_list()
    assert histories.support().tolist() == [sum(word in counter for counter in counters) for word in vocabulary]
    assert histories.frequency().tolist() == [sum(counter[word] for counter in counters) for word in vocabulary]
    assert np.bincount(histories.entry_user, minlength=N_USERS).tolist() == [len(counter) for counter in counters]


@examples(40)
@given(rows, st.randoms(use_true_random=False))
def test_rewrite_keeps_exactly_the_kept_terms_in_their_order_and_number(given_rows: Rows, random: object) -> None:
    tokens, owners, histories = read(given_rows)
    marks = np.array([random.random() < 0.5 for _ in histories.terms], dtype=np.bool_)  # type: ignore[attr-defined]
    kept = histories.keep(marks)
    stays = [set(counter) for counter in as_counters(tokens, kept)]
    expected = [" ".join(term for term in terms if term in stays[user]) for user, terms in given_rows]
    assert written(tokens, owners, histories, marks) == expected


@examples(40)
@given(rows)
def test_keeping_everything_changes_nothing_and_keeping_nothing_leaves_empty_queries(given_rows: Rows) -> None:
    tokens, owners, histories = read(given_rows)
    everything, nothing = (np.full(len(histories.terms), mark) for mark in (True, False))
    assert written(tokens, owners, histories, everything) == [" ".join(t) for _, t in given_rows]
    assert written(tokens, owners, histories, nothing) == [""] * len(given_rows)
    assert histories.keep(nothing).n_users == N_USERS


def test_rewriting_in_parts_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    tokens, owners, histories = read([(0, ["amber", "birch"]), (1, ["birch"]), (0, ["cedar", "amber", "amber"])])
    marks = histories.terms != tokens.vocabulary.to_list().index("birch")
    whole = written(tokens, owners, histories, marks)
    monkeypatch.setattr(module, "_ROWS_AT_ONCE", 2)
    assert written(tokens, owners, histories, marks) == whole == ["amber", "", "cedar amber amber"]


def test_a_term_that_one_user_keeps_is_not_given_back_to_another() -> None:
    tokens, owners, histories = read([(0, ["amber"]), (1, ["amber"])])
    assert written(tokens, owners, histories, histories.entry_user == 0) == ["amber", ""]


def test_other_words_may_stand_for_terms() -> None:
    tokens, owners, histories = read([(0, ["amber", "birch"]), (1, ["birch"])])
    stands_for = np.where(histories.entry_user == 0, 0, -1).astype(np.int32)
    assert rewrite(tokens, owners, histories, stands_for, pl.Series(["tree"])).to_list() == ["tree tree", ""]


def test_the_repr_of_histories_shows_no_text() -> None:
    _, _, histories = read([(0, ["amber", "amber"]), (1, ["birch"])])
    assert repr(histories) == "Histories(n_users=4, n_terms=2, n_entries=2)"
