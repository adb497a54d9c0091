"""Queries with noisy counts: what is counted, what leaves, and what is told of the log besides."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.house_rules import keep_the_house_rules

from queryveil import Dp, read_log, read_release, verify
from queryveil.data import Format, Layout, QueryLog, Reading
from queryveil.errors import BadParameter, MissingColumn
from queryveil.guarantees import DifferentialPrivacy
from queryveil.methods.dp import Choice, Mechanism
from queryveil.methods.dp._mechanisms import plan_for, release_chance
from queryveil.methods.dp.dp import contributions_of
from queryveil.rng import generator
from queryveil.synthesis import synthesize
from queryveil.testing import log_of
from queryveil.testing.strategies import clicked_logs, logs

DATA = Path(__file__).resolve().parents[2] / ".." / "shared" / "data"
QUIET = Dp(epsilon=100, delta=0.5, max_queries=3, mechanism=Mechanism.LAPLACE)
"""So much epsilon that the noise is 0 but for a chance of 1e-14, and whatever two people ask leaves.

The chance is 2 exp(-epsilon/max_queries) for each count: more queries a person, or a part of epsilon, make it larger.
"""
METHODS = [
    Dp(epsilon=20, delta=0.5, max_queries=2, rounds=2),
    Dp(epsilon=20, delta=0.5, max_queries=3, choose=Choice.FREQUENT),
    Dp(epsilon=20, delta=0.5, clicks=0.5),
]


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS, ids=["two rounds", "frequent", "clicks"])
@examples(8)
@given(data=st.data())
def test_dp_keeps_the_house_rules(method: Dp, data: st.DataObject) -> None:
    log = data.draw(clicked_logs() if method.clicks else st.one_of(logs(), logs(with_time=False), clicked_logs()))
    keep_the_house_rules(method, log)


@pytest.mark.slow
def test_dp_keeps_the_house_rules_on_a_log_of_sessions() -> None:
    keep_the_house_rules(Dp(epsilon=5, clicks=0.3), synthesize(users=60, seed=2).log)


def released(method: Dp, log: QueryLog) -> dict[str, int]:
    return dict(method.anonymize(log).tallies.frame.iter_rows())


def test_people_are_counted_and_not_rows_however_a_query_is_typed() -> None:
    log = log_of(
        {
            "persona1": ["Kestrel  LANTERN", "mulberry", "mulberry", "mulberry"],
            "persona2": [" kestrel lantern", "KESTREL lantern"],
            "persona3": ["kestrel lantern", "", " "],
            "persona4": ["", "nutmeg"],
        }
    )
    assert released(QUIET, log) == {"kestrel lantern": 3}


def test_nobody_counts_for_more_queries_than_allowed() -> None:
    log = log_of({f"persona{i}": [f"kettle {n}" for n in range(8)] for i in range(80)})
    assert sum(released(QUIET, log).values()) == 80 * 3
    assert sum(released(replace(QUIET, max_queries=4), log).values()) == 80 * 4


def test_frequent_queries_of_a_person_are_picked_first_if_wished() -> None:
    asked = ["kestrel"] * 5 + ["lantern"] * 3 + ["mulberry"] * 2 + ["nutmeg"]
    log = log_of({f"persona{i}": asked for i in range(9)})
    method = replace(QUIET, max_queries=2, choose=Choice.FREQUENT)
    assert released(method, log) == {"kestrel": 9, "lantern": 9}


def test_in_the_second_round_people_pick_from_what_is_not_out_yet() -> None:
    asked = ["kestrel"] * 3 + ["lantern"] * 2 + ["mulberry"]
    log = log_of({f"persona{i}": asked for i in range(9)})
    method = replace(QUIET, max_queries=1, choose=Choice.FREQUENT)
    assert released(method, log) == {"kestrel": 9}
    assert released(replace(method, rounds=2), log) == {"kestrel": 9, "lantern": 9}


def test_rows_come_by_count_and_text_and_not_as_they_stood_in_the_log() -> None:
    asked = {"mulberry": 5, "kestrel": 5, "nutmeg": 9, "lantern": 2}
    log = log_of({f"{query} {i}": [query] for query, n in asked.items() for i in range(n)})
    rows = [("nutmeg", 9), ("kestrel", 5), ("mulberry", 5), ("lantern", 2)]
    assert QUIET.anonymize(log).tallies.frame.rows() == rows
    assert QUIET.anonymize(log.with_frame(log.frame.reverse())).tallies.frame.rows() == rows


def clicked(rows: list[tuple[str, str, str | None]]) -> QueryLog:
    return QueryLog(
        frame=pl.DataFrame(rows, schema={"user": pl.String, "query": pl.String, "url": pl.String}, orient="row")
    )


def test_clicks_are_counted_for_released_queries_alone_and_once_for_each_person() -> None:
    birds, lamps = "https://birds.example", "https://lamps.example"
    log = clicked(
        [
            *[(f"persona{i}", "Kestrel", birds) for i in range(6) for _ in range(3)],
            *[(f"persona{i}", "kestrel ", lamps) for i in range(4)],
            ("persona0", "kestrel", None),
            *[(f"persona{i}", "kestrel", "not a url") for i in range(6)],
            ("persona7", "a query of one person", birds),
        ]
    )
    quiet = replace(QUIET, max_queries=1, max_clicks=2, clicks=0.5)
    tallies = quiet.anonymize(log).tallies
    assert tallies.frame.rows() == [("kestrel", 6)]
    assert tallies.clicks is not None
    assert tallies.clicks.rows() == [("kestrel", birds, 6), ("kestrel", lamps, 4)]
    one = replace(quiet, max_clicks=1).anonymize(log).tallies.clicks
    assert one is not None
    assert one["count"].sum() <= 6
    assert QUIET.anonymize(log).tallies.clicks is None


def test_clicks_of_a_log_without_urls_are_refused() -> None:
    with pytest.raises(MissingColumn, match="no column for the url among user, query"):
        replace(QUIET, clicks=0.5).anonymize(log_of({"persona1": ["kestrel"]}))


def test_items_of_transactions_have_no_clicks() -> None:
    log = QueryLog(
        frame=clicked([("1", "10 20", "https://a.example")]).frame, layout=Layout(format=Format.TRANSACTIONS)
    )
    with pytest.raises(BadParameter, match="clicks must be 0 for transactions, whose items have no clicked URLs, got"):
        replace(QUIET, clicks=0.5).anonymize(log)
    assert released(QUIET, log) == {}


def test_columns_of_the_log_are_not_named_in_memory() -> None:
    layout = Layout(format=Format.JSONL, names={"user": "who"}, columns=("who", "query", "notes of one person"))
    release = QUIET.anonymize(QueryLog(frame=common_log().frame, layout=layout))
    assert release.tallies.layout == Layout(format=Format.JSONL)


def test_items_of_transactions_count_as_queries() -> None:
    bags = log_of({str(i): ["10 20", "30"] if i < 4 else ["10"] for i in range(6)})
    log = QueryLog(frame=bags.frame, layout=Layout(format=Format.TRANSACTIONS))
    assert released(QUIET, log) == {"10": 6, "20": 4, "30": 4}


def session(user: str, *, n_queries: int) -> list[tuple[str, str, datetime]]:
    """Return so many queries of one user within a minute, the first of them again and again."""
    start = datetime(2006, 3, 1, 7)
    asked = [("kestrel", second) for second in range(9)] + [(f"kestrel {user} {n}", 10) for n in range(n_queries - 9)]
    return [(user, query, start.replace(second=second)) for query, second in asked]


def timed(rows: list[tuple[str, str, datetime]]) -> QueryLog:
    frame = pl.DataFrame(rows, schema=["user", "query", "time"], orient="row")
    return QueryLog(frame=frame.cast({"time": pl.Datetime("us")}))


@pytest.mark.parametrize("n_people", [2, 30, 300])
def test_users_who_are_programs_are_left_out_by_their_own_rows_alone(n_people: int) -> None:
    # Whatever others do, 40 queries in a session are a person's with a threshold of 40, and a program's with 39.
    rows = [row for i in range(n_people) for row in session(f"persona{i}", n_queries=10)]
    log = timed([*rows, *session("robot", n_queries=40)])
    method = replace(QUIET, max_queries=1, choose=Choice.FREQUENT)
    assert released(replace(method, bot_threshold=39), log) == {"kestrel": n_people}
    assert released(replace(method, bot_threshold=40), log) == {"kestrel": n_people + 1}
    assert released(replace(method, bot_threshold=None), log) == {"kestrel": n_people + 1}
    crowd = timed([row for i in range(n_people) for row in session(f"persona{i}", n_queries=40)])
    assert released(replace(method, bot_threshold=40), crowd) == {"kestrel": n_people}
    assert released(replace(method, bot_threshold=39), crowd) == {}


def test_a_query_that_nobody_picked_gets_no_noise() -> None:
    log = log_of({f"persona{i}": [f"kettle {i} {n}" for n in range(200)] for i in range(20)})
    # Of the 4,000 queries 20 are picked; noise on a count of 0 would reach the threshold in one of ten.
    method = Dp(epsilon=1.0, delta=0.5, max_queries=1, mechanism=Mechanism.LAPLACE)
    assert method.noise[0].threshold == 2
    assert len(released(method, log)) <= 20


def test_with_zealous_noise_counts_below_the_first_threshold_never_leave() -> None:
    log = log_of({f"persona{i}": [f"kettle {i}"] for i in range(300)})
    method = Dp(epsilon=1.0, delta=0.5, max_queries=1, mechanism=Mechanism.ZEALOUS)
    # With noise a count of 1 would leave in more than one of five.
    assert (method.noise[0].least, method.noise[0].threshold) == (2, 3)
    assert released(method, log) == {}


def test_a_query_that_one_person_asked_never_leaves_a_quiet_release() -> None:
    log = log_of({f"persona{i}": [f"kettle {i}", "kestrel"] for i in range(500)})
    assert released(QUIET, log) == {"kestrel": 500}


def common_log(n: int = 300) -> QueryLog:
    return log_of({f"persona{i}": ["kestrel", "lantern", "mulberry"] for i in range(n)})


def test_the_manifests_of_neighbouring_logs_with_as_many_rows_are_the_same() -> None:
    log = common_log()
    extra = log_of({"persona left out": ["a query of one person", "another one"] * 300})
    # The person is also the reason for a column, and for rows that were hard to read.
    frame = pl.concat([log.frame, extra.frame.with_columns(note=pl.lit("x"))], how="diagonal")
    neighbour = QueryLog(frame=frame, reading=Reading(n_bad_rows_skipped=3, n_latin1_rows=2))
    one, other = (Dp(seed=1).anonymize(each) for each in (log, neighbour))
    assert one.tallies.n_queries == other.tallies.n_queries == 3
    assert msgspec.json.encode(one.manifest) == msgspec.json.encode(other.manifest)


def test_the_manifest_says_how_noise_was_added_and_the_checker_agrees(tmp_path: Path) -> None:
    method = Dp(epsilon=2.0, delta=1e-6, max_queries=1, rounds=2, mechanism=Mechanism.GAUSSIAN)
    release = method.anonymize(common_log())
    assert release.promise == DifferentialPrivacy(epsilon=2.0, delta=1e-6)
    assert release.manifest.noise == method.noise
    assert [part.epsilon for part in method.noise] == pytest.approx([0.4, 1.6])
    assert release.manifest.parameters["rounds"] == 2
    assert release.manifest.warnings == ()
    folder = release.save(tmp_path / "release")
    again = read_release(folder)
    assert again.manifest.noise == method.noise
    assert again.tallies.frame.equals(release.tallies.frame)
    assert verify(again, original=common_log()).holds


@pytest.mark.parametrize("form", [Format.CSV, Format.TSV, Format.JSONL, Format.PARQUET, Format.AOL])
def test_odd_texts_are_read_back_as_they_were_released(form: Format, tmp_path: Path) -> None:
    queries = ['"kestrel', "a\tb", "a\0b", "été, 'x'", "\ufeffmark", "null", "\\n", "c\u2028d", "1e5", "İ"]
    log = clicked([(f"persona{i}", query, f'https://x.example/"{len(query)},') for i in range(60) for query in queries])
    method = replace(QUIET, max_queries=20, max_clicks=20, clicks=0.5)
    release = method.anonymize(QueryLog(frame=log.frame, layout=Layout(format=form)))
    again = read_release(release.save(tmp_path / "release"))
    assert again.tallies.n_queries == len(queries) - 1
    assert again.tallies.frame.equals(release.tallies.frame)
    assert again.tallies.clicks is not None
    assert release.tallies.clicks is not None
    assert again.tallies.clicks.equals(release.tallies.clicks)
    assert verify(again, original=log).holds


def test_a_seeded_release_says_so_and_never_shows_the_seed() -> None:
    release = Dp(seed=987654).anonymize(common_log())
    assert release.manifest.warnings == ("made with a seed: whoever knows it can take the noise away",)
    assert "987654" not in msgspec.json.encode(release.manifest).decode() + repr(Dp(seed=987654)) + repr(release)


@pytest.mark.parametrize(
    ("setting", "beginnings"),
    [
        ({"epsilon": 10, "delta": 1e-3}, []),
        ({"epsilon": 10.5}, ["epsilon above 10 promises next to nothing: "]),
        ({"delta": 0.002}, ["delta above 0.001 promises next to nothing: "]),
        ({"epsilon": 11, "delta": 0.5}, ["epsilon above 10 ", "delta above 0.001 "]),
    ],
)
def test_settings_that_promise_next_to_nothing_are_warned_of(setting: dict[str, Any], beginnings: list[str]) -> None:
    warnings = Dp(**setting).anonymize(log_of({})).manifest.warnings
    assert [warning.startswith(each) for warning, each in zip(warnings, beginnings, strict=True)] == [True] * len(
        beginnings
    )


def test_the_manifest_says_whose_noise_it_is() -> None:
    assert Dp().anonymize(log_of({})).manifest.versions["opendp"] == version("opendp")
    assert "opendp" not in Dp(seed=1).anonymize(log_of({})).manifest.versions


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"epsilon": "1"}, "epsilon must be a number, got '1'"),
        ({"epsilon": True}, "epsilon must be a number, got True"),
        ({"delta": None}, "delta must be a number, got None"),
        ({"max_queries": True}, "max_queries must be a whole number from 1 to 1000, got True"),
        ({"max_clicks": "5"}, "max_clicks must be a whole number from 1 to 1000, got 5"),
        ({"rounds": True}, "rounds must be 1 or 2, got True"),
        ({"clicks": False}, "clicks must be a part of the budget"),
        ({"clicks": "0.5"}, "clicks must be a part of the budget"),
        ({"bot_threshold": True}, "bot_threshold must be 1 or more"),
        ({"bot_threshold": "9"}, "bot_threshold must be 1 or more"),
        ({"seed": True}, "seed must be a whole number, 0 or more, got a bool"),
        ({"seed": "987654"}, "seed must be a whole number, 0 or more, got a str"),
        ({"epsilon": 0}, "epsilon must be above 0 and at most 100, got 0"),
        ({"epsilon": float("nan")}, "epsilon must be above 0"),
        ({"epsilon": 1e-5}, "epsilon must be 0.0001 or more in each part of a release"),
        ({"delta": 1}, "delta must be above 0 and below 1, got 1"),
        ({"delta": 0}, "delta must be above 0 and below 1, got 0"),
        ({"max_queries": 0}, "max_queries must be a whole number from 1 to 1000, got 0"),
        ({"max_queries": 2.5}, "max_queries must be a whole number from 1 to 1000, got 2.5"),
        ({"max_clicks": 1001}, "max_clicks must be a whole number from 1 to 1000, got 1001"),
        ({"rounds": 3}, "rounds must be 1 or 2, got 3"),
        ({"rounds": "auto"}, "rounds must be 1 or 2, got auto"),
        ({"clicks": 1}, "clicks must be a part of the budget, 0 or more and below 1, got 1"),
        ({"clicks": -0.1}, "clicks must be a part of the budget"),
        ({"mechanism": "none"}, "mechanism must be one of auto"),
        ({"choose": "best"}, "choose must be one of random, frequent, got best"),
        ({"bot_threshold": 0}, "bot_threshold must be 1 or more"),
        ({"seed": -1}, "seed must be 0 or more"),
    ],
)
def test_settings_that_cannot_be_are_refused_in_one_line(setting: dict[str, Any], message: str) -> None:
    with pytest.raises(BadParameter) as caught:
        Dp(**setting)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


@pytest.mark.slow
@pytest.mark.real_data
@pytest.mark.parametrize(("max_queries", "expected"), [(1, 357.3), (5, 337.0), (10, 322.7)])
def test_as_many_items_of_bms_webview_1_leave_as_were_worked_out_before(max_queries: int, expected: float) -> None:
    path = DATA / "bms-webview-1.txt"
    if not path.is_file():
        pytest.skip("bms-webview-1.txt is not beside the checkout")
    log = read_log(path, format="transactions")
    rows = log.frame.select("user", pl.col("query").str.split(" ")).explode("query")
    owners, items = (rows[name].rank("dense").to_numpy().astype(np.int32) - 1 for name in ("user", "query"))
    n_items = int(items.max()) + 1
    counts = contributions_of(owners, items).counts(
        n_items=n_items, most=max_queries, choose=Choice.RANDOM, rng=generator(3)
    )
    plan = plan_for(epsilon=1.0, delta=1e-5, max_items=max_queries)
    assert float(release_chance(plan, counts).sum()) == pytest.approx(expected, abs=4)
