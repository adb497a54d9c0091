"""The promise of swap judged by hand-made near misses: just inside, and just outside."""

from __future__ import annotations

from datetime import datetime, timedelta

import polars as pl
import pytest
from tests.support.swap_by_force import verify_swap_by_force

from queryveil.checks import Arrivals, Verdict, verify_swap
from queryveil.data import ROLES, QueryLog
from queryveil.errors import MissingColumn
from queryveil.guarantees import SwapAnonymity

START = datetime(2006, 3, 1, 12)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def frame_of(rows: list[list[str]], names: list[str]) -> pl.DataFrame:
    """Make columns of texts; a time is a number of hours, or - for none."""
    columns = {name: [row[i] for row in rows] for i, name in enumerate(names)}
    frame = pl.DataFrame(columns, schema=dict.fromkeys(names, pl.String))
    if "time" not in names:
        return frame
    times = [None if hours == "-" else START + timedelta(hours=float(hours)) for hours in columns["time"]]
    return frame.with_columns(pl.Series("time", times, dtype=ROLES["time"]))


def judged(
    came: str,
    left: str,
    *,
    k: int = 3,
    l: int = 2,  # noqa: E741
    remembered: int | None = None,
    unit: timedelta | None = None,
    max_pool: int | None = None,
) -> Verdict:
    """Judge `user:query/category` that came, with `@hours` if there is a unit, against `user:query` that left.

    An underscore in a query is a blank.
    """
    timed = ["time"] if unit else []

    def cut(text: str) -> list[str]:
        return text.replace("@", ":").replace("/", ":").split(":")

    events = [cut(event) for event in came.split()]
    frame = frame_of(
        [[e[0], e[1].replace("_", " "), e[2], *e[3:]] for e in events], ["user", "query", "category", *timed]
    )
    rows = frame_of([[r[0], r[1].replace("_", " "), *r[2:]] for r in map(cut, left.split())], ["user", "query", *timed])
    original = Arrivals(frame=frame.with_columns(pl.col("category").cast(pl.Int8)), time_unit=unit, max_pool=max_pool)
    promise = SwapAnonymity(k=k, l=l, remembered=remembered)
    released = QueryLog(frame=rows)
    fast = verify_swap(released, promise, original=original)
    assert fast == verify_swap_by_force(released, promise, original=original)
    return fast


def found(verdict: Verdict) -> list[tuple[str, int, int, tuple[int, ...]]]:
    assert verdict.holds == (not verdict.witnesses)
    assert verdict.n_violations == len(verdict.witnesses)
    return [(w.kind, w.support, w.needed, w.rows) for w in verdict.witnesses]


THREE = "a:tea/0 b:rye/0 c:oats/0"


def test_a_query_leaves_a_pool_of_k_events_and_not_one_of_one_less() -> None:
    assert judged(THREE, "b:tea", k=3).holds
    assert found(judged(THREE, "b:tea", k=4)) == [("small_pool", 3, 4, (1,))]


def test_what_has_left_does_not_wait_any_more() -> None:
    assert found(judged(THREE, "b:tea c:rye", k=3)) == [("small_pool", 2, 3, (2,))]
    assert judged(f"{THREE} d:figs/0", "b:tea c:rye", k=3).holds


def test_the_pool_of_another_category_does_not_count() -> None:
    assert found(judged("a:tea/0 b:rye/0 c:oats/1 d:figs/1", "b:tea")) == [("small_pool", 2, 3, (1,))]


def test_l_distinct_users_must_wait_and_one_less_is_too_few() -> None:
    came = "a:tea/0 b:rye/0 a:oats/0 b:figs/0"
    assert judged(came, "b:tea", k=4, l=2).holds
    assert found(judged(came, "b:tea", k=4, l=3)) == [("few_users", 2, 3, (1,))]


def test_a_row_may_have_waited_for_users_or_for_its_text() -> None:
    came = "a:tea/0 a:rye/0 b:oats/0 c:figs/0"
    assert judged(came, "b:tea", k=3, l=3).holds
    assert judged(came, "b:figs", k=3, l=2).holds
    assert judged(came, "c:tea", k=3, l=2).holds


def test_a_user_with_all_rows_given_does_not_wait_any_more() -> None:
    came = "a:tea/0 b:rye/0 c:oats/0 b:figs/0"
    assert found(judged(came, "a:rye c:tea", k=3, l=3)) == [("few_users", 2, 3, (2,))]
    assert judged(came, "b:tea c:rye", k=3, l=3).holds


def test_nobody_is_given_a_query_of_their_own() -> None:
    assert found(judged(THREE, "a:tea")) == [("own_query", 1, 0, (1,))]
    # Who asked the same as another is given the other's, which cannot be told from their own.
    assert found(judged("a:tea/0 b:tea/0 c:oats/0", "a:tea")) == [("own_query", 1, 0, (1,))]


def test_a_query_of_their_own_counts_whenever_and_wherever_it_was_issued() -> None:
    assert found(judged(f"{THREE} b:tea/0 b:tea/0", "b:tea")) == [("own_query", 2, 0, (1,))]


@pytest.mark.parametrize("own", ["Red_Wine", "red__wine", "_red_wine", "RED_WINE_"])
def test_case_and_blanks_do_not_make_another_query(own: str) -> None:
    assert found(judged(f"a:red_wine/0 b:{own}/0 c:oats/0", "b:red_wine")) == [("own_query", 1, 0, (1,))]
    assert judged(f"a:red_wine/0 b:{own}s/0 c:oats/0", "b:red_wine").holds


def test_ways_to_write_an_accent_do_not_make_another_query() -> None:
    assert found(judged("a:caf\u00e9/0 b:CAFE\u0301/0 c:oats/0", "b:caf\u00e9")) == [("own_query", 1, 0, (1,))]


def test_a_user_gets_no_more_rows_of_a_category_than_they_had() -> None:
    came = f"{THREE} d:figs/0 e:plum/0"
    assert judged(came, "b:tea c:rye", k=3).holds
    assert found(judged(came, "b:tea b:oats", k=3)) == [("surplus_row", 2, 1, (2,))]


def test_rows_of_another_category_do_not_pay_for_those_of_this_one() -> None:
    came = "a:tea/0 b:rye/0 c:oats/0 z:nuts/1"
    assert found(judged(came, "z:tea")) == [("surplus_row", 1, 0, (1,))]


def test_the_first_arrival_of_a_text_says_its_category() -> None:
    came = "a:tea/0 b:tea/1 c:oats/0 d:rye/0"
    assert judged(came, "c:tea").holds
    assert not judged(came, "b:tea").holds


def test_a_user_who_never_came_is_given_nothing() -> None:
    assert found(judged(THREE, "nobody:tea")) == [("surplus_row", 1, 0, (1,))]


def test_a_text_leaves_no_more_often_than_it_came() -> None:
    came = "a:tea/0 b:rye/0 c:oats/0 d:tea/0 e:plum/0"
    assert judged(came, "b:tea c:tea", k=3).holds
    assert found(judged(f"{THREE} d:figs/0 e:plum/0", "b:tea c:tea", k=3)) == [("surplus_query", 2, 1, (2,))]


def test_a_text_that_never_came_is_invented_and_takes_nobodys_place() -> None:
    assert found(judged(THREE, "b:gold c:tea b:gold")) == [
        ("surplus_query", 1, 0, (1,)),
        ("surplus_query", 2, 0, (3,)),
    ]


def test_a_text_must_be_as_it_was_typed() -> None:
    assert found(judged(THREE, "b:Tea")) == [("surplus_query", 1, 0, (1,))]


def test_no_fewer_than_none_wait() -> None:
    verdict = judged("a:tea/0 b:tea/0", "c:tea c:tea c:tea c:tea", k=2)
    assert min(witness.support for witness in verdict.witnesses) == 0


def test_a_row_can_break_every_rule_at_once() -> None:
    verdict = judged("a:tea/0 b:rye/1", "a:tea a:tea", k=4, l=3)
    assert sorted(found(verdict)) == [
        ("few_users", 0, 3, (2,)),
        ("few_users", 1, 3, (1,)),
        ("own_query", 1, 0, (1,)),
        ("own_query", 1, 0, (2,)),
        ("small_pool", 0, 4, (2,)),
        ("small_pool", 1, 4, (1,)),
        ("surplus_query", 2, 1, (2,)),
        ("surplus_row", 2, 1, (2,)),
    ]


TIMED = "a:tea/0@0 b:rye/0@1 c:oats/0@2 d:figs/0@3"


def test_what_came_after_a_row_had_left_did_not_wait() -> None:
    assert judged(TIMED, "b:tea@2", unit=HOUR).holds
    assert found(judged(TIMED, "b:tea@1", unit=HOUR)) == [("small_pool", 2, 3, (1,))]
    assert found(judged(TIMED, "d:tea@2", unit=HOUR)) == [("surplus_row", 1, 0, (1,))]
    assert found(judged(TIMED, "b:figs@2", unit=HOUR)) == [("surplus_query", 1, 0, (1,))]
    assert found(judged(TIMED, "b:tea@2", l=3, k=4, unit=HOUR)) == [("small_pool", 3, 4, (1,))]
    assert found(judged("a:tea/0@0 b:rye/0@1 a:oats/0@2 d:figs/0@3", "b:tea@2", l=3, unit=HOUR)) == [
        ("few_users", 2, 3, (1,))
    ]


def test_a_time_says_no_more_than_the_hour_or_day_that_it_was_cut_to() -> None:
    came = "a:tea/0@0.1 b:rye/0@0.2 c:oats/0@0.9 d:figs/0@30"
    assert judged(came, "b:tea@0", unit=HOUR).holds
    assert judged(came, "b:tea@-12", unit=DAY).holds
    assert found(judged(came, "b:tea@-12", k=4, unit=DAY)) == [("small_pool", 3, 4, (1,))]
    # Exact times are compared by the second, which is what every file can hold.
    exact = timedelta(microseconds=1)
    assert judged("a:tea/0@0 b:rye/0@0 c:oats/0@0.0001", "b:tea@0", unit=exact).holds
    assert not judged("a:tea/0@0 b:rye/0@0 c:oats/0@0.001", "b:tea@0", unit=exact).holds


def test_a_row_left_no_later_than_the_rows_after_it() -> None:
    assert found(judged(TIMED, "b:tea@3 c:rye@1", k=2, unit=HOUR)) == [
        ("few_users", 1, 2, (2,)),
        ("small_pool", 1, 2, (2,)),
        ("surplus_row", 1, 0, (2,)),
    ]
    assert found(judged(TIMED, "b:tea@2 a:rye@1", k=3, unit=HOUR)) == [
        ("few_users", 1, 2, (2,)),
        ("small_pool", 1, 3, (2,)),
        ("small_pool", 2, 3, (1,)),
    ]
    assert judged(TIMED, "b:tea@- a:rye@1", k=2, l=2, unit=HOUR).n_violations == 2
    assert judged(TIMED, "b:tea@2 a:rye@3", k=2, l=2, unit=HOUR).holds


def test_a_row_that_left_before_all_arrivals_left_no_pool() -> None:
    kinds = [kind for kind, *_ in found(judged(TIMED, "b:tea@-5", unit=HOUR))]
    assert kinds == ["few_users", "small_pool", "surplus_query", "surplus_row"]


def test_rows_without_a_time_may_have_left_at_the_end() -> None:
    assert judged(f"{TIMED} e:plum/0@-", "b:tea@2 e:rye@-", unit=HOUR).holds
    assert not judged(f"{TIMED} e:plum/0@-", "b:tea@2 e:rye@3", unit=HOUR).holds


def test_arrivals_in_the_order_of_a_file_need_not_be_in_that_of_time() -> None:
    came = "a:tea/0@5 b:rye/0@1 c:oats/0@2 d:figs/0@1"
    assert judged(came, "b:tea@1", k=4, unit=HOUR).holds
    assert found(judged(came, "b:tea@0", k=4, unit=HOUR))[0][0] == "few_users"
    assert judged("a:tea/0@2 b:rye/0@1 c:oats/0@1", "b:tea@2", unit=HOUR).holds


def test_on_a_stream_what_was_issued_after_the_release_is_nobodys_fault() -> None:
    assert judged(f"{TIMED} b:tea/0@4", "b:tea@2", remembered=9, unit=HOUR).holds
    assert found(judged(f"{TIMED} b:tea/0@4", "b:tea@2", unit=HOUR)) == [("own_query", 1, 0, (1,))]
    # It may have left before or after: only what is certain counts.
    assert judged(f"{TIMED} b:tea/0@4", "b:tea@4", remembered=9, unit=HOUR).holds
    assert judged("a:tea/0@0 b:rye/0@1 c:oats/0@2 b:tea/0@3", "b:tea@3", remembered=9, unit=HOUR).holds
    # The row needs five events, so it can only have left after b had issued it.
    assert found(judged(f"{TIMED} b:tea/0@4", "b:tea@4", k=5, remembered=9, unit=HOUR)) == [("own_query", 1, 0, (1,))]


def test_on_a_stream_a_query_is_forgotten_after_so_many_events() -> None:
    came = "b:tea/0@0 a:tea/0@1 c:oats/0@2 d:figs/0@3"
    assert found(judged(came, "b:tea@3", k=4, remembered=4, unit=HOUR)) == [("own_query", 1, 0, (1,))]
    assert judged(came, "b:tea@3", k=4, remembered=3, unit=HOUR).holds
    # With three events it may have left one event earlier or later.
    assert judged(came, "b:tea@3", remembered=3, unit=HOUR).holds
    assert not judged(came, "b:tea@3", remembered=4, unit=HOUR).holds


def test_a_query_issued_again_before_it_is_forgotten_stays_remembered() -> None:
    came = "b:tea/0@0 a:tea/0@1 c:oats/0@2 b:TEA/0@3 d:figs/0@4 e:plum/0@5"
    assert found(judged(came, "b:tea@5", remembered=3, unit=HOUR)) == [("own_query", 2, 0, (1,))]
    # After the third event it is forgotten until the fourth, and the row may have left there.
    assert judged(came, "b:tea@5", remembered=2, unit=HOUR).holds
    assert judged(came, "b:tea@4", remembered=2, unit=HOUR).holds


def test_without_times_the_verdict_says_what_could_not_be_judged() -> None:
    assert judged(THREE, "b:tea").notes == (
        "the release does not tell after which events rows left, so each pool is judged with all that ever came",
    )
    assert judged(TIMED, "b:tea@2", unit=HOUR).notes == ()
    assert judged(THREE, "").notes == ()
    assert "as far as it can be checked" in judged(THREE, "b:tea").in_words()


def test_full_pools_that_must_have_lost_events_are_noted() -> None:
    assert judged(TIMED, "b:tea@2", unit=HOUR, max_pool=3).notes == ()
    lost = judged(TIMED, "b:tea@2", unit=HOUR, max_pool=2)
    assert lost.holds
    assert lost.notes == ("full pools have lost at least 1 event, which is judged as if it had stayed",)


def test_nothing_that_came_and_nothing_that_left_keeps_the_promise() -> None:
    assert judged("", "").holds
    assert judged(THREE, "").holds
    assert found(judged("", "a:tea")) == [("surplus_query", 1, 0, (1,))]


def test_tabs_and_line_ends_are_blanks_as_in_most_files() -> None:
    frame = pl.DataFrame({"user": ["a", "b", "c"], "query": ["red\twine", "rye\0", "oats"], "category": [0, 0, 0]})
    released = QueryLog.from_frame({"user": ["b"], "query": ["red wine"]})
    for check in (verify_swap, verify_swap_by_force):
        assert check(released, SwapAnonymity(k=3, l=3), original=Arrivals(frame=frame)).holds


def test_a_witness_says_its_rule_in_words_and_shows_its_query_only_when_asked() -> None:
    words = {
        witness.kind: witness.in_words() for witness in judged("a:tea/0 b:rye/1", "a:tea a:tea", k=4, l=3).witnesses
    }
    assert words == {
        "few_users": "a query left when at most 1 user waited, 3 are needed (row 1)",
        "small_pool": "a query left when at most 1 event waited, 4 are needed (row 1)",
        "own_query": "a user was given a query of their own (row 2)",
        "surplus_row": "a user was given 2 rows of a category and had asked 1 by then (row 2)",
        "surplus_query": "a text was released 2 times and issued 1 by then (row 2)",
    }
    released = QueryLog.from_frame({"user": ["a"], "query": ["tea"]})
    verdict = judged(THREE, "a:tea")
    assert "tea" not in repr(verdict) + str(verdict.to_dict())
    assert verdict.show(released) == ["tea: a user was given a query of their own (row 1)"]


def test_arrivals_need_their_columns_and_do_not_show_them() -> None:
    frame = pl.DataFrame({"user": ["ida"], "query": ["quince"], "category": [3]})
    assert repr(Arrivals(frame=frame)) == "Arrivals(n_events=1, n_categories=1)"
    with pytest.raises(MissingColumn, match="category"):
        Arrivals(frame=frame.drop("category"))
