from __future__ import annotations

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.plain_rebuilding import plain_chance, plain_match, plain_match_of_logs

from queryveil.attacks.rebuild import as_released
from queryveil.attacks.swapped import EncodedLog, Guess, Truth
from queryveil.data import QueryLog
from queryveil.text.classifier import CATEGORIES

TEXTS = ("soccer cup", "tennis rules", "hockey", "piano song", "opera")
POOL_OF = {"soccer cup": 0, "tennis rules": 0, "hockey": 0, "piano song": 1, "opera": 1}
ROWS = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(TEXTS)), max_size=7)
SCHEMA = {"user": pl.String, "query": pl.String}


def log_of_rows(rows: list[tuple[str, str]]) -> QueryLog:
    return QueryLog(frame=pl.DataFrame(rows, schema=SCHEMA, orient="row"))


def encode_rows(rows: list[tuple[str, str]]) -> EncodedLog:
    category = np.array([POOL_OF[text] for _, text in rows], np.int8)
    return EncodedLog.of(log_of_rows(rows), category=category)


def all_rows(order: list[int], *, queries: list[int]) -> Guess:
    return Guess(
        user_row=np.array(order, np.int64), query_row=np.array(queries, np.int64), k_now=np.zeros(17, np.int64)
    )


def n_hit(rows: list[tuple[str, str]], *, original: list[tuple[str, str]]) -> int:
    return Truth.of(log_of_rows(original), released=encode_rows(rows)).n_hit()


def test_the_attacker_has_the_same_classifier() -> None:
    encoded = EncodedLog.of(log_of_rows([("a", "Soccer Cup"), ("b", "piano song"), ("c", "1999")]))
    assert [CATEGORIES[c] for c in encoded.category[:2]] == ["Sports", "Arts"]
    assert encoded.category[2] == len(CATEGORIES)


def test_texts_that_differ_in_case_are_one() -> None:
    encoded = EncodedLog.of(log_of_rows([("a", "Soccer Cup"), ("b", "soccer  cup")]))
    assert encoded.text.tolist() == [0, 0]


def test_targets_are_the_original_rows_that_still_have_a_query() -> None:
    original = log_of_rows([("a", "soccer cup"), ("b", ""), ("c", "219-09-9999"), ("d", "call 212-555-0143")])
    truth = Truth.of(original, released=encode_rows([("a", "soccer cup")]))
    assert truth.n_targets == 2


def test_a_guess_is_judged_by_queries_without_their_identifiers() -> None:
    encoded = encode_rows([("a", "hockey")])
    original = log_of_rows([("a", "hockey 212-555-0143")])
    assert Truth.of(original, released=encoded).n_hit() == 1
    assert Truth.of(original, released=encoded, cleaned=True).n_hit() == 0


def test_reading_a_release_as_it_is_finds_what_was_not_swapped() -> None:
    original = [("a", "hockey"), ("b", "soccer cup"), ("c", "opera")]
    kept, swapped = (
        as_released(Truth.of(log_of_rows(original), released=encode_rows(rows)))
        for rows in (original, [("b", "hockey"), ("a", "soccer cup"), ("a", "opera")])
    )
    assert (kept.attacker, kept.n_found, kept.n_targets) == ("as_released", 3, 3)
    assert swapped.n_found == 0


def test_the_order_of_rows_does_not_matter() -> None:
    rows = [("a", "hockey"), ("b", "opera"), ("c", "hockey")]
    assert n_hit(rows, original=rows[::-1]) == 3


def test_a_row_counts_as_often_as_both_logs_have_it() -> None:
    twice, thrice = [("a", "hockey")] * 2, [("a", "hockey")] * 3
    assert n_hit(twice, original=thrice) == n_hit(thrice, original=twice) == 2


def test_case_and_blanks_of_queries_make_no_difference_and_users_are_not_folded() -> None:
    original = log_of_rows([("a", " Soccer  CUP"), ("A", "hockey")])
    assert Truth.of(original, released=encode_rows([("a", "soccer cup"), ("a", "hockey")])).n_hit() == 1


def test_an_empty_log_matches_nothing() -> None:
    assert n_hit([], original=[("a", "hockey")]) == n_hit([("a", "hockey")], original=[]) == n_hit([], original=[]) == 0


@examples(40)
@given(original=ROWS, released=ROWS, data=st.data())
def test_hits_are_what_the_matcher_counts(
    original: list[tuple[str, str]], released: list[tuple[str, str]], data: st.DataObject
) -> None:
    encoded = encode_rows(released)
    truth = Truth.of(log_of_rows(original), released=encoded)
    rows = list(range(len(released)))
    guess = all_rows(data.draw(st.permutations(rows)), queries=data.draw(st.permutations(rows)))
    guessed = encoded.log_of(guess) if released else log_of_rows([])
    assert truth.n_hit(guess) == plain_match_of_logs(guessed, log_of_rows(original))
    assert truth.n_hit() == plain_match(released, original)


@examples(40)
@given(original=ROWS, released=ROWS)
def test_blind_chance_is_the_best_user_to_take_all_queries_of_a_category_for(
    original: list[tuple[str, str]], released: list[tuple[str, str]]
) -> None:
    truth = Truth.of(log_of_rows(original), released=encode_rows(released))
    rows = [(user, text, POOL_OF[text]) for user, text in released]
    assert truth.n_by_chance == plain_chance(rows, original)


def test_no_random_deal_of_users_finds_more_than_the_best_blind_guess() -> None:
    rng = np.random.default_rng(5)
    texts = [f"text {min(i, 40)}" for i in rng.zipf(1.6, 3000)]
    users = [f"u{min(i, 60)}" for i in rng.zipf(1.5, 3000)]
    log = log_of_rows(list(zip(users, texts, strict=True)))
    encoded = EncodedLog.of(log, category=np.zeros(3000, np.int8))
    truth = Truth.of(log, released=encoded, cleaned=True)
    rows = np.arange(3000)
    one_user = Guess(user_row=np.full(3000, users.index("u1")), query_row=rows, k_now=np.zeros(17, np.int64))
    assert truth.n_by_chance == truth.n_hit(one_user) == users.count("u1")


def test_an_empty_release_exposes_nothing() -> None:
    truth = Truth.of(log_of_rows([("a", "hockey")]), released=encode_rows([]))
    assert (truth.n_targets, truth.n_by_chance, truth.n_hit()) == (1, 0, 0)


def test_no_repr_shows_users_or_texts() -> None:
    encoded = encode_rows([("persona", "hockey")])
    truth = Truth.of(log_of_rows([("persona", "hockey")]), released=encoded)
    for thing in (encoded, truth, all_rows([0], queries=[0]), as_released(truth)):
        assert "persona" not in repr(thing) + str(thing)
        assert "hockey" not in repr(thing) + str(thing)
