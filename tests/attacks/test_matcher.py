from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.plain_rebuilding import plain_match

from queryveil.attacks.swapped import match
from queryveil.data import QueryLog

PAIRS = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["elm", "fern", "red elm"])), max_size=12)


def log_of_rows(rows: list[tuple[str, str]]) -> QueryLog:
    return QueryLog.from_frame({"user": [user for user, _ in rows], "query": [query for _, query in rows]})


def empty() -> QueryLog:
    return QueryLog.from_frame({"user": ["a"], "query": ["elm"]}).with_frame(log_of_rows([("a", "elm")]).frame.clear())


def test_the_order_of_rows_does_not_matter() -> None:
    rows = [("a", "elm"), ("b", "fern"), ("c", "elm")]
    assert match(log_of_rows(rows), other=log_of_rows(rows[::-1])) == 3


def test_swapped_users_match_nothing() -> None:
    assert match(log_of_rows([("a", "elm"), ("b", "fern")]), other=log_of_rows([("b", "elm"), ("a", "fern")])) == 0


def test_a_row_counts_as_often_as_both_logs_have_it() -> None:
    twice, thrice = log_of_rows([("a", "elm")] * 2), log_of_rows([("a", "elm")] * 3)
    assert match(twice, other=thrice) == match(thrice, other=twice) == 2


def test_case_and_blanks_make_no_difference() -> None:
    assert match(log_of_rows([("a", " Red  ELM")]), other=log_of_rows([("a", "red elm")])) == 1


def test_users_are_not_folded() -> None:
    assert match(log_of_rows([("a", "elm")]), other=log_of_rows([("A", "elm")])) == 0


def test_an_empty_log_matches_nothing() -> None:
    assert match(empty(), other=log_of_rows([("a", "elm")])) == 0
    assert match(empty(), other=empty()) == 0


@examples(40)
@given(one=PAIRS, two=PAIRS)
def test_it_counts_as_the_definition_reads(one: list[tuple[str, str]], two: list[tuple[str, str]]) -> None:
    first, second = (log_of_rows(rows) if rows else empty() for rows in (one, two))
    assert match(first, other=second) == plain_match(one, two)
