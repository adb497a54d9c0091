"""Promises within windows of time."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from tests.support.km_by_force import verify_km_by_force

from queryveil.checks import Verdict, verify_km
from queryveil.data import QueryLog
from queryveil.errors import BadParameter
from queryveil.guarantees import KmAnonymity

DAILY = KmAnonymity(k=2, m=2, window="1d")


def log_of(*rows: tuple[str, str, str | None]) -> QueryLog:
    """User, query, and day and hour of January 2020 as `3 18:00`."""
    times = [datetime.strptime(f"2020-01-{row[2]}", "%Y-%m-%d %H:%M") if row[2] else None for row in rows]
    return QueryLog.from_frame({"user": [r[0] for r in rows], "query": [r[1] for r in rows], "time": times})


def judged(log: QueryLog, promise: KmAnonymity, *, time_unit: timedelta | None = None) -> Verdict:
    verdict = verify_km(log, promise, time_unit=time_unit)
    by_force = verify_km_by_force(log, promise, time_unit=time_unit)
    assert (verdict.holds, verdict.n_violations, verdict.notes) == (
        by_force.holds,
        by_force.n_violations,
        by_force.notes,
    )
    assert verdict.witnesses == by_force.witnesses
    return verdict


def test_support_that_is_split_over_windows_does_not_count() -> None:
    log = log_of(("1", "a", "1 10:00"), ("2", "a", "2 10:00"))
    assert judged(log, KmAnonymity(k=2, m=1)).holds
    verdict = judged(log, DAILY)
    assert [(w.kind, w.support, w.rows) for w in verdict.witnesses] == [
        ("combination", 1, (1,)),
        ("combination", 1, (2,)),
    ]


def test_support_within_a_window_counts() -> None:
    log = log_of(("1", "a b", "1 00:00"), ("2", "b a", "1 23:59"), ("3", "a b", "2 00:00"), ("4", "a b", "2 08:00"))
    assert judged(log, DAILY).holds
    assert judged(log, KmAnonymity(k=2, m=None, window="1d")).holds
    assert judged(log, KmAnonymity(k=2, m=2, window="12h")).n_violations == 4


def test_a_user_id_in_two_windows_is_a_violation_of_its_own_kind() -> None:
    log = log_of(("1", "a", "1 10:00"), ("2", "a", "1 11:00"), ("1", "a", "2 10:00"), ("3", "a", "2 10:00"))
    verdict = judged(log, DAILY)
    assert [(w.kind, w.size, w.support, w.needed, w.rows) for w in verdict.witnesses] == [
        ("linked_windows", 0, 2, 1, (1, 3))
    ]
    assert not verdict.holds
    assert (verdict.n_users, verdict.n_checked_users) == (3, 4)
    assert "one user id stands in 2 windows (rows 1, 3)" in verdict.in_words()


def test_an_id_is_linked_even_where_it_has_no_terms() -> None:
    log = log_of(("1", "a", "1 10:00"), ("2", "a", "1 11:00"), ("2", "", "3 10:00"), ("1", "a", "1 12:00"))
    assert [w.rows for w in judged(log, DAILY).witnesses] == [(2, 3)]


def test_rows_without_a_time_are_a_window_of_their_own() -> None:
    assert judged(log_of(("1", "a", None), ("2", "a", None)), DAILY).holds
    assert judged(log_of(("1", "a", None), ("2", "a", "1 10:00")), DAILY).n_violations == 2
    linked = judged(log_of(("1", "", None), ("1", "", "1 10:00")), DAILY)
    assert [w.kind for w in linked.witnesses] == ["linked_windows"]


def test_windows_before_1970_are_cut_at_midnight_too() -> None:
    times = [datetime(1969, 12, 31, 1), datetime(1969, 12, 31, 23), datetime(1970, 1, 1, 1), datetime(1970, 1, 1, 2)]
    log = QueryLog.from_frame({"user": list("1234"), "query": ["a", "a", "b", "b"], "time": times})
    assert judged(log, DAILY).holds
    straddling = QueryLog.from_frame({"user": ["1", "2"], "query": ["a", "a"], "time": times[1:3]})
    assert judged(straddling, DAILY).n_violations == 2


def test_weeks_begin_where_the_count_from_1970_puts_them() -> None:
    # 1970-01-01 was a Thursday, and so is 2020-01-02.
    log = log_of(("1", "a", "1 10:00"), ("2", "a", "2 10:00"))
    assert judged(log, KmAnonymity(k=2, m=1, window="7d")).n_violations == 2
    log = log_of(("1", "a", "2 10:00"), ("2", "a", "8 10:00"))
    assert judged(log, KmAnonymity(k=2, m=1, window="1w")).holds


def test_without_times_the_promise_is_judged_over_the_whole_log_and_the_verdict_says_so() -> None:
    log = QueryLog.from_frame({"user": ["1", "2"], "query": ["a", "a"]})
    verdict = judged(log, DAILY)
    assert verdict.holds
    assert verdict.notes == ("the log has no times, so windows of 1d cannot be told apart; judged over the whole log",)
    assert not judged(log, KmAnonymity(k=3, m=1, window="1d")).holds


def test_times_coarser_than_the_window_are_judged_over_the_whole_log() -> None:
    log = log_of(("1", "a", "1 00:00"), ("2", "a", "2 00:00"), ("1", "a", "2 00:00"))
    day = timedelta(days=1)
    blurred = judged(log, KmAnonymity(k=2, m=1, window="12h"), time_unit=day)
    assert blurred.holds
    assert len(blurred.notes) == 1
    told_apart = judged(log, KmAnonymity(k=2, m=1, window="2d"), time_unit=day)
    assert told_apart.notes == ()


def test_a_window_that_is_no_multiple_of_the_time_unit_cannot_be_told() -> None:
    log = log_of(("1", "a", "1 00:00"), ("2", "a", "1 00:00"))
    assert judged(log, KmAnonymity(k=2, m=1, window="36h"), time_unit=timedelta(days=1)).notes
    assert not judged(log, KmAnonymity(k=2, m=1, window="36h"), time_unit=timedelta(hours=1)).notes


def test_a_time_unit_of_nothing_is_a_clear_error() -> None:
    with pytest.raises(BadParameter, match="time_unit must be longer than nothing"):
        verify_km(log_of(("1", "a", None)), DAILY, time_unit=timedelta(0))
