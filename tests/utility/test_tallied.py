"""What noisy counts of queries are still good for."""

from __future__ import annotations

import polars as pl
import pytest
from tests.support.releases import released_tallies

from queryveil.data import Format, Layout, QueryLog, Transactions
from queryveil.errors import BadInput
from queryveil.methods.dp.dp import synthesized
from queryveil.testing.logs import log_of
from queryveil.utility import Measures, measure

LOG = {"u1": ["red wine", "Red Wine", "jaguar"], "u2": ["red wine", "jaguar"], "u3": ["old oak tree"], "u4": [""]}


def value(found: Measures, name: str) -> float:
    score = found.named(name)
    assert score is not None, name
    return score.value


def test_of_each_query_as_much_is_kept_as_is_counted_and_was_asked() -> None:
    found = measure(log_of(LOG), released_tallies({"red wine": 2, "jaguar": 9, "never asked": 5}))
    # 2 of the 3 rows of one query, 2 of 2 of another, of 7 rows and 11 terms in all.
    assert value(found, "rows_kept") == pytest.approx(4 / 7)
    assert value(found, "log_size_kept") == pytest.approx((2 * 2 + 2) / 11)
    assert value(found, "queries_kept") == pytest.approx(2 / 3)
    assert value(found, "terms_kept") == pytest.approx(3 / 6)


def test_what_cannot_be_measured_is_said_and_no_size_is_asked_for() -> None:
    found = measure(log_of(LOG), released_tallies({"red wine": 2}))
    assert {score.name for score in found} == {
        "rows_kept",
        "terms_kept",
        "queries_kept",
        "log_size_kept",
        "coverage_volume",
        "coverage_tail_5",
        "coverage_tail_10",
        "coverage_tail_50",
        "words_as_typed",
        "completions_kept",
        "count_query_error",
        "top_queries_kept",
        "frequency_correlation",
    }
    assert found.notes == (
        "users kept, suggestions, profiles and interests are left out: the release has no rows that are one person's",
        "ranking is left out: the log has no clicks, or those judged on have none",
        "spelling is left out: nobody in the log corrects a letter of a query",
        "related queries are left out: no query of three users has another beside it twice",
        "trends are left out: the log has no times, or times of one day only",
        "ranking and completions are judged on queries and clicks that are in the log itself, the log by its own too; "
        "to judge them on other people's, add --public LOG",
        "advertising is left out: it needs a table of what terms are worth: add --values FILE",
        "top URLs are left out: the log has no URLs",
    )


def test_the_order_of_counts_is_compared_with_that_of_rows() -> None:
    log = log_of({f"u{i}": ["a"] * (i < 9) + ["b"] * (i < 6) + ["c"] * (i < 3) for i in range(9)})
    same = measure(log, released_tallies({"a": 80, "b": 60, "c": 10}))
    other = measure(log, released_tallies({"a": 1, "b": 2, "c": 3}))
    assert value(same, "frequency_correlation") == 1.0
    assert value(other, "frequency_correlation") == -1.0
    assert value(same, "top_queries_kept") == 1.0
    assert value(measure(log, released_tallies({"a": 80})), "top_queries_kept") == pytest.approx(1 / 3)


def test_urls_are_measured_by_the_counts_of_clicks() -> None:
    log = log_of({"u1": ["jaguar", "jaguar"], "u2": ["jaguar"]})
    urls = pl.Series("url", ["http://a.example", "http://b.example", None])
    log = log.with_frame(log.frame.with_columns(urls))
    with_one = released_tallies({"jaguar": 3}, clicks={("jaguar", "http://a.example"): 2})
    assert value(measure(log, with_one), "top_urls_kept") == 0.5
    without = measure(log, released_tallies({"jaguar": 3}))
    assert "top URLs are left out: the release has no URLs" in without.notes


def test_terms_are_worth_what_is_counted_of_them() -> None:
    values = pl.DataFrame({"term": ["wine", "jaguar"], "bid": [2.0, 1.0]})
    found = measure(log_of(LOG), released_tallies({"red wine": 1, "jaguar": 50}), values=values)
    assert value(found, "bid_kept") == pytest.approx((1 * 2 + 2) / (3 * 2 + 2))


def test_an_empty_release_keeps_nothing() -> None:
    found = measure(log_of(LOG), released_tallies({}, clicks={}))
    assert [value(found, name) for name in ("rows_kept", "log_size_kept", "queries_kept", "terms_kept")] == [0.0] * 4


def test_an_empty_log_lost_nothing() -> None:
    nothing = QueryLog.from_frame({"user": [], "query": []})
    assert value(measure(nothing, released_tallies({})), "log_size_kept") == 1.0


def test_made_up_rows_are_measured_by_how_often_they_have_a_query() -> None:
    log = log_of({f"u{i}": ["red wine", "jaguar", f"own {i}"] for i in range(300)})
    release = synthesized(released_tallies({"red wine": 300, "jaguar": 300}), n_users=100, seed=1)
    found = measure(log, release)
    assert value(found, "rows_kept") == pytest.approx(release.log.n_rows / log.n_rows)
    assert value(found, "queries_kept") == pytest.approx(2 / 302)
    assert found.named("users_kept") is None
    assert found.notes[0].startswith("all rows are made up")
    # Ever more made-up rows keep no more than the log has.
    many = measure(log, synthesized(released_tallies({"red wine": 99, "never": 99}), n_users=4000, seed=1))
    assert value(many, "rows_kept") == pytest.approx(300 / 900, abs=0.01)
    assert value(many, "queries_kept") == pytest.approx(1 / 302)
    every = measure(log, synthesized(released_tallies({"red wine": 1, "never": 9}), n_users=4000, seed=1))
    assert value(every, "rows_kept") == pytest.approx(0.1, abs=0.01)


def test_counts_are_measured_by_a_log_alone() -> None:
    baskets = Transactions.from_frame({"items": [["a"]]})
    with pytest.raises(BadInput, match="counts of queries are measured by the log that they were made from"):
        measure(baskets, released_tallies({"a": 2}))


def test_items_of_transactions_are_what_queries_are_elsewhere() -> None:
    bags = log_of({"t1": ["10307 12487"], "t2": ["10307 12487 12559"], "t3": ["10307"]})
    log = QueryLog(frame=bags.frame, layout=Layout(format=Format.TRANSACTIONS))
    found = measure(log, released_tallies({"10307": 2, "12559": 5}))
    assert value(found, "rows_kept") == value(found, "log_size_kept") == pytest.approx(3 / 6)
    assert value(found, "queries_kept") == pytest.approx(2 / 3)
