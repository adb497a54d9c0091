"""What inspect counts, against counting by hand."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import datetime
from itertools import combinations
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples

from queryveil.data import Int64s, QueryLog
from queryveil.errors import BadParameter
from queryveil.methods.km.combinations import mark_alone
from queryveil.reports.inspection import Alone, count_alone, inspect
from queryveil.testing import log_of, tiny_log
from queryveil.testing.strategies import logs
from queryveil.text import tokenize
from queryveil.text.histories import collect
from queryveil.text.tokens import encode

Sets = list[set[str]]


def alone_by_hand(histories: Sets, *, k: int, m: int) -> dict[int, int]:
    def sets_of(history: set[str], size: int) -> list[tuple[str, ...]]:
        return [c for s in range(1, size + 1) for c in combinations(sorted(history), s)]

    support = Counter(c for history in histories for c in sets_of(history, m))
    return {
        size: sum(any(support[c] < k for c in sets_of(history, size)) for history in histories)
        for size in range(1, m + 1)
    }


@examples(40)
@given(
    st.lists(st.sets(st.sampled_from(["amber", "birch", "cedar", "dahlia", "elm"]), max_size=5), max_size=9),
    st.integers(2, 4),
    st.integers(1, 3),
)
def test_users_who_stand_alone_are_those_counted_by_hand(histories: Sets, k: int, m: int) -> None:
    log = log_of({f"u{i}": [" ".join(sorted(history)), ""] for i, history in enumerate(histories)})
    assert inspect(log, k=k, m=m).alone == alone_by_hand(histories, k=k, m=m)


def test_three_terms_of_which_each_pair_is_shared_tell_a_user_only_together() -> None:
    log = log_of({"u1": ["a b c"], "u2": ["a b"], "u3": ["a c"], "u4": ["b c"]})
    assert inspect(log).alone == {1: 0, 2: 0, 3: 1}


def test_the_sizes_are_those_of_the_log() -> None:
    log = QueryLog.from_frame(
        {
            "user": ["u1", "u1", "u2", "u2"],
            "query": ["Brass kettle", "brass KETTLE", "", "kettle?"],
            "time": [datetime(2006, 3, 2), None, datetime(2006, 3, 1), datetime(2006, 3, 5)],
        }
    )
    found = inspect(log)
    assert (found.n_rows, found.n_users, found.n_distinct_queries, found.n_empty_queries) == (4, 2, 4, 1)
    assert (found.n_terms, found.n_term_occurrences, found.longest_history) == (2, 5, 2)
    assert (found.first_time, found.last_time) == (datetime(2006, 3, 1), datetime(2006, 3, 5))
    assert found.columns == ("user", "query", "time")


@examples(40)
@given(logs())
def test_counts_agree_with_polars(log: QueryLog) -> None:
    found = inspect(log, m=1)
    assert (found.n_rows, found.n_users) == (log.n_rows, log.n_users)
    assert found.n_distinct_queries == log.frame["query"].n_unique()


def test_a_log_without_rows_has_nobody_who_stands_alone() -> None:
    found = inspect(QueryLog(frame=pl.DataFrame(schema={"user": pl.String, "query": pl.String})))
    assert found.alone == {1: 0, 2: 0, 3: 0}
    assert (found.n_rows, found.n_users, found.longest_history, found.first_time) == (0, 0, 0, None)


def test_a_user_alone_in_a_log_stands_alone_unless_all_queries_are_empty() -> None:
    assert inspect(log_of({"u1": ["kettle"]})).alone == {1: 1, 2: 1, 3: 1}
    assert inspect(log_of({"u1": ["", "?"]})).alone == {1: 0, 2: 0, 3: 0}


@pytest.mark.parametrize(
    ("k", "m", "message"), [(1, 3, "k must be 2 or more"), (2, 0, "m must be 1, 2 or 3"), (2, 4, "m must be 1, 2 or 3")]
)
def test_bad_settings_say_what_to_write_instead(k: int, m: int, message: str) -> None:
    with pytest.raises(BadParameter, match=message):
        inspect(tiny_log(), k=k, m=m)


def test_neither_the_repr_nor_the_plain_form_holds_text() -> None:
    found = inspect(tiny_log())
    for term in ("jaguar", "zanzibar", "u1"):
        assert term not in repr(found) + str(found.to_dict())


def test_terms_that_the_same_users_have_take_no_steps_however_many_they_are() -> None:
    words = " ".join(f"w{i}" for i in range(2000))
    assert counted({f"u{i}": [words] for i in range(3)})[1] == 0
    own, n_steps = counted({f"u{i}": [f"{words} own{i}"] for i in range(3)})
    assert (own.n_users, n_steps) == ({1: 3, 2: 3, 3: 3}, 0)


def test_terms_that_nearly_everybody_has_take_no_steps_either() -> None:
    # Every user lacks two of the terms, another two each.
    users = {f"u{i}": [" ".join(f"w{j}" for j in range(40) if j // 2 != i)] for i in range(20)}
    assert counted(users, k=3)[1] == 0
    assert counted(users, k=18)[0].n_users == {1: 0, 2: 0, 3: 20}


def crossing(n_users: int, n_terms: int) -> dict[str, list[str]]:
    """Return users of whom about half have each term, no two terms the same half."""
    return {
        f"u{i}": [" ".join(f"w{j}" for j in range(n_terms) if hash((i * 7919, j * 104729)) % 2)] for i in range(n_users)
    }


def test_beyond_the_limit_of_steps_the_figure_is_a_lower_bound_and_says_so() -> None:
    users = crossing(100, 80)
    (whole, n_whole), (bounded, n_bounded) = counted(users), counted(users, most_steps=1000)
    assert (whole.at_least, bounded.at_least) == ((), (3,))
    # Each thread may end the row that it has begun, and counts what it passes by.
    assert n_bounded <= n_whole / 5
    assert bounded.n_users[3] <= whole.n_users[3]
    assert {size: bounded.n_users[size] for size in (1, 2)} == {size: whole.n_users[size] for size in (1, 2)}


def counted(users: dict[str, list[str]], *, k: int = 2, most_steps: int | None = None) -> tuple[Alone, int]:
    """Return what is counted, and the steps it took to look at combinations of three."""
    frame = log_of(users).frame
    owners, names = encode(frame["user"])
    histories = collect(tokenize(frame["query"]), owners, n_users=len(names))
    steps = []

    def mark(*arguments: Any) -> Int64s:
        steps.append(mark_alone(*arguments))
        return steps[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("queryveil.reports.inspection.mark_alone", mark)
        if most_steps is not None:
            patch.setattr("queryveil.reports.inspection._LEAST_STEPS", most_steps)
            patch.setattr("queryveil.reports.inspection._STEPS_PER_ENTRY", 0)
        return count_alone(histories, k=k, m=3), int(steps[-1].sum())


def test_a_lower_bound_is_told_as_one() -> None:
    found = replace(inspect(tiny_log()), at_least=(3,))
    two, three = (found.facts()[f"users with {size} terms nobody else has"] for size in (2, 3))
    assert (two, three) == ("4 (100 %)", "at least 4 (100 %)")
    assert "at least 4 (" in found._repr_html_()
