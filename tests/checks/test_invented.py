"""What a release must not add to its original."""

from __future__ import annotations

from datetime import datetime

from queryveil import Km, verify
from queryveil.checks.invented import invented
from queryveil.data import QueryLog
from queryveil.guarantees import KmAnonymity

PROMISE = KmAnonymity(k=2, m=2)
ORIGINAL = QueryLog.from_frame({"user": ["u", "u", "v", "w"], "query": ["a b", "a c", "b b", "d"]})


def found(users: list[str], queries: list[str]) -> tuple[int, list[tuple[int, int, int, tuple[int, ...]]]]:
    log = QueryLog.from_frame({"user": users, "query": queries})
    n, witnesses = invented(log, original=ORIGINAL, promise=PROMISE)
    assert all(witness.kind == "invented" for witness in witnesses)
    return n, [(w.size, w.support, w.needed, w.rows) for w in witnesses]


def test_a_log_invents_nothing_against_itself() -> None:
    assert invented(ORIGINAL, original=ORIGINAL, promise=PROMISE) == (0, [])


def test_deleting_and_renaming_invents_nothing() -> None:
    assert found(["2", "1", "1"], ["b", "c a", "B"]) == (0, [])


def test_an_empty_release_invents_nothing() -> None:
    assert found([], []) == (0, [])


def test_a_term_that_the_original_lacks_is_invented() -> None:
    assert found(["1", "2"], ["a", "b new"]) == (1, [(1, 1, 0, (2,))])


def test_a_term_with_more_users_than_before_is_invented() -> None:
    assert found(["1", "2"], ["a", "a"]) == (1, [(1, 2, 1, (1,))])


def test_a_term_with_more_occurrences_than_before_is_invented() -> None:
    assert found(["1", "2"], ["b b b", "b"]) == (1, [(1, 4, 3, (1,))])


def test_more_users_or_rows_than_before_are_invented() -> None:
    assert found(["1", "2", "3", "4"], ["", "", "", ""]) == (1, [(0, 4, 3, ())])
    assert found(["1", "1", "1", "1", "1"], ["", "", "", "", ""]) == (1, [(0, 5, 4, ())])


def test_with_windows_a_user_of_the_original_may_come_back_once_per_window() -> None:
    times = [datetime(2020, 1, day) for day in (2, 3, 3)]
    original = QueryLog.from_frame({"user": ["u", "u", "v"], "query": ["a", "a", "a"], "time": times})
    release = QueryLog.from_frame({"user": ["1", "2", "3"], "query": ["a", "a", "a"], "time": times})
    assert invented(release, original=original, promise=PROMISE)[0] == 2
    assert invented(release, original=original, promise=KmAnonymity(k=2, m=2, window="1d")) == (0, [])
    assert invented(release, original=original, promise=KmAnonymity(k=2, m=2, window="7d"))[0] == 2


def test_a_sign_newer_than_this_python_may_have_parted_two_terms() -> None:
    query = "jaguar\U0001fae9 \u0377x"
    log = QueryLog.from_frame({"user": ["1", "2"], "query": [query, query]})
    assert verify(Km(k=2, m=2).anonymize(log), original=log).holds
    other = QueryLog.from_frame({"user": ["1", "2"], "query": ["lion", "lion"]})
    assert not verify(Km(k=2, m=2).anonymize(log), original=other).holds
