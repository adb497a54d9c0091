"""Rows in no order: one order is tried, and it is the right one."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from itertools import permutations

import polars as pl
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.swap_by_force import verify_swap_by_force

from queryveil.checks import Arrivals, verify_swap
from queryveil.data import QueryLog
from queryveil.guarantees import SwapAnonymity

DAY = timedelta(days=1)
FIRST = datetime(2006, 3, 1)


def arrivals(users: list[str], days: list[int], *, category: list[int] | None = None) -> Arrivals:
    """Events with a text each, so that only users decide."""
    frame = pl.DataFrame(
        {
            "user": users,
            "query": [f"text {i}" for i in range(len(users))],
            "category": category or [0] * len(users),
            "time": [FIRST + day * DAY for day in sorted(days)],
        },
        schema={"user": pl.String, "query": pl.String, "category": pl.Int64, "time": pl.Datetime("us")},
    )
    return Arrivals(frame=frame, time_unit=DAY, in_order=False)


def rows(pairs: list[tuple[str, int, int]]) -> QueryLog:
    """Rows of a user, a text and a day."""
    return QueryLog.from_frame(
        pl.DataFrame(
            {
                "user": [user for user, _, _ in pairs],
                "query": [f"text {text}" for _, text, _ in pairs],
                "time": [FIRST + day * DAY for _, _, day in pairs],
            },
            schema={"user": pl.String, "query": pl.String, "time": pl.Datetime("us")},
        )
    )


@st.composite
def cases(draw: st.DrawFn) -> tuple[QueryLog, Arrivals, SwapAnonymity]:
    n = draw(st.integers(2, 8))
    users = draw(st.lists(st.sampled_from("abcd"), min_size=n, max_size=n))
    days = draw(st.lists(st.integers(0, 1), min_size=n, max_size=n))
    category = draw(st.lists(st.integers(0, 1), min_size=n, max_size=n))
    left = draw(
        st.lists(
            st.tuples(st.sampled_from("abcd"), st.integers(0, n - 1), st.integers(0, 1)),
            max_size=4,
            unique_by=lambda r: r[1],
        )
    )
    k = draw(st.integers(2, 3))
    return rows(left), arrivals(users, days, category=category), SwapAnonymity(k=k, l=draw(st.integers(2, k)))


@examples(150)
@given(case=cases())
def test_rows_in_no_order_hold_if_they_do_in_any(case: tuple[QueryLog, Arrivals, SwapAnonymity]) -> None:
    released, original, promise = case
    ordered = replace(original, in_order=True)
    by_force = any(
        verify_swap_by_force(released.with_frame(released.frame[list(order)]), promise, original=ordered).holds
        for order in permutations(range(released.n_rows))
    )
    assert verify_swap(released, promise, original=original).holds == by_force


def test_whoever_leaves_nothing_behind_may_have_left_last() -> None:
    came = arrivals(["a", "a", "b"], [0, 0, 0])
    promise = SwapAnonymity(k=2, l=2)
    # Before b leaves, a and b wait; had b left first, a would have been alone when she left.
    released = rows([("b", 0, 0), ("a", 2, 0)])
    assert verify_swap(released, promise, original=came).holds
    assert not verify_swap(released, promise, original=replace(came, in_order=True)).holds


def test_a_row_that_breaks_it_is_named_where_it_stands() -> None:
    came = arrivals(["a", "b", "c", "d"], [0, 0, 1, 1])
    released = rows([("a", 2, 1), ("b", 0, 0)])
    verdict = verify_swap(released, SwapAnonymity(k=3, l=2), original=came)
    assert [(witness.kind, witness.rows) for witness in verdict.witnesses] == [("small_pool", (2,))]
