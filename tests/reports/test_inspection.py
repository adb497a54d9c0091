"""What inspect counts, against counting by hand."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from itertools import combinations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples

from queryveil.data import QueryLog
from queryveil.errors import BadParameter
from queryveil.reports.inspection import inspect
from queryveil.testing import log_of, tiny_log
from queryveil.testing.strategies import logs

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
