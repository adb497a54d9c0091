"""Whether the most frequent follow-up of a query stays."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.plain_utility import Row, plain_suggestions
from tests.support.releases import MONDAY, released, timed_log

from queryveil.data import QueryLog
from queryveil.pairing import Pair
from queryveil.release import TimeDetail
from queryveil.utility import Score
from queryveil.utility.suggestions import MOST_QUERIES, suggestions

WAYS = {"next": TimeDetail.KEEP, "day": TimeDetail.DAY, "user": TimeDetail.DROP}
ROWS = st.lists(
    st.tuples(
        st.sampled_from(["u1", "u2", "u3", "u4"]),
        st.sampled_from(["elm", "oak", "fir", "yew", ""]),
        st.one_of(st.none(), st.sampled_from([0.0, 0.1, 0.4, 0.8, 5.0, 24.0, 24.3])),
    ),
    max_size=30,
)
Hours = list[tuple[str, str, float | None]]


def measured(before: Hours, after: Hours, *, way: str = "next") -> Score | None:
    logs = [timed_log(rows) for rows in (before, after)]
    if way == "user":
        logs = [QueryLog(frame=log.frame.drop("time")) for log in logs]
    return suggestions(Pair(logs[0], release=released(logs[1], time=WAYS[way]))).named("suggestions_kept")


def plain(rows: Hours) -> list[Row]:
    return [(u, q, None if hours is None else MONDAY + timedelta(hours=hours)) for u, q, hours in rows]


@pytest.mark.parametrize("way", WAYS)
@examples(40)
@given(before=ROWS, after=ROWS)
def test_suggestions_are_those_of_the_definition(way: str, before: Hours, after: Hours) -> None:
    # A column of times that is empty on one side is no times at all, which is another way.
    if way != "user" and any(all(hours is None for _, _, hours in rows) for rows in (before, after)):
        return
    found, expected = measured(before, after, way=way), plain_suggestions(plain(before), plain(after), way=way)
    assert (found is None) == (expected is None)
    if found is not None:
        assert found.value == pytest.approx(expected)


def asked(*pairs: tuple[str, str]) -> Hours:
    """Each pair is asked by a user of its own, the second query six minutes after the first."""
    return [row for i, (a, b) in enumerate(pairs) for row in ((f"u{i}", a, 0.0), (f"u{i}", b, 0.1))]


def test_a_follow_up_that_loses_its_lead_is_not_kept() -> None:
    before = asked(("elm", "oak"), ("elm", "oak"), ("elm", "oak"), ("elm", "fir"), ("elm", "fir"))
    assert (score := measured(before, before)) is not None
    assert score.value == 1
    turned = asked(("elm", "oak"), ("elm", "oak"), ("elm", "fir"), ("elm", "fir"), ("elm", "fir"))
    assert (score := measured(before, turned)) is not None
    assert score.value == 0
    tied = asked(("elm", "oak"), ("elm", "oak"), ("elm", "fir"), ("elm", "fir"))
    assert (score := measured(before, tied)) is not None
    assert score.value == 0.5


def test_what_is_asked_more_than_half_an_hour_later_is_no_follow_up() -> None:
    soon = asked(("elm", "oak"), ("elm", "oak"), ("elm", "oak"))
    for hours, kept in ((0.5, 1), (0.51, 0)):
        later: Hours = [(user, query, hours if query == "oak" else 0.0) for user, query, _ in soon]
        assert (score := measured(soon, later)) is not None
        assert score.value == kept


def test_order_counts_only_where_the_release_has_exact_times() -> None:
    before = asked(("elm", "oak"), ("elm", "oak"), ("elm", "oak"))
    backwards = asked(("oak", "elm"), ("oak", "elm"), ("oak", "elm"))
    exact, by_day = measured(before, backwards), measured(before, backwards, way="day")
    assert exact is not None
    assert by_day is not None
    assert (exact.value, by_day.value) == (0, 1)
    assert "half an hour" in exact.about
    assert "same user and day" in by_day.about


@pytest.mark.slow
def test_a_query_of_two_users_or_with_one_follower_is_not_looked_at() -> None:
    rows = asked(("elm", "oak"), ("elm", "oak"))
    assert measured(rows, rows) is None
    rows = asked(("elm", "oak"), ("elm", "fir"), ("elm", "yew"))
    assert measured(rows, rows) is None


def test_a_program_that_asks_everything_on_one_day_suggests_nothing() -> None:
    people = asked(("elm", "oak"), ("elm", "oak"), ("elm", "oak"))
    programs: Hours = [
        (user, query, 1.0)
        for user in ("p1", "p2", "p3", "p4")
        for query in ("elm", "fir", *(f"word{chr(97 + i % 26)}{chr(97 + i // 26)}" for i in range(MOST_QUERIES)))
    ]
    assert (score := measured(people + programs, people, way="day")) is not None
    assert score.value == 1
