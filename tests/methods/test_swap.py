"""Swap from a log to a release: the house rules, whose rows are kept, in which order, and what is said."""

from __future__ import annotations

import hmac
from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.house_rules import keep_the_house_rules
from tests.support.plain_swap import fold

from queryveil.checks import verify
from queryveil.data import Format, Layout, QueryLog
from queryveil.errors import BadInput, BadParameter
from queryveil.formats import read_log
from queryveil.guarantees import SwapAnonymity, parse_window
from queryveil.methods.swap import Swap
from queryveil.pairing import Pair
from queryveil.release import ColumnPolicy, Ids, TimeDetail
from queryveil.synthesis import synthesize
from queryveil.testing.strategies import logs
from queryveil.text.classifier import Classifier
from queryveil.text.identifiers import remove_identifiers

KEPT = ColumnPolicy(ids="keep")  # type: ignore[arg-type]
EXACT = ColumnPolicy(ids="keep", time="keep")  # type: ignore[arg-type]
METHODS = [
    Swap(k=2, columns=KEPT),
    Swap(k=4, l=2, columns=EXACT),
    Swap(k=3, l=2, drain="release", columns=KEPT),
    Swap(k=2, max_pool=3, order="file", columns=EXACT),
    Swap(k=2, unclassified="drop", columns=ColumnPolicy(ids="keyed", key=b"0123456789abcdef")),  # type: ignore[arg-type]
]
SPORTS = ("tennis titles", "soccer scores", "soccer league", "tennis match", "football league")
DATA = Path(__file__).resolve().parents[2] / ".." / "shared" / "data"


def sports(*, n_users: int = 60, **columns: Any) -> QueryLog:
    rows = {"user": [f"u{i % n_users}" for i in range(60)], "query": [f"{SPORTS[i % 5]} {i}" for i in range(60)]}
    return QueryLog.from_frame(rows | columns)


def hourly(n: int) -> list[datetime]:
    return [datetime(2006, 3, 1) + timedelta(hours=i) for i in range(n)]


def profiles(frame: pl.DataFrame) -> Counter[tuple[str, int]]:
    """Count each user's queries by category."""
    queries = remove_identifiers(frame["query"]).queries
    category = Classifier().classify(queries).category.tolist()
    kept = [text.strip() != "" for text in queries]
    return Counter((user, kind) for user, kind, stays in zip(frame["user"], category, kept, strict=True) if stays)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS, ids=lambda m: f"k={m.k} l={m.l} {m.drain} {m.order} {m.unclassified}")
@examples(6)
@given(log=logs())
def test_swap_keeps_the_house_rules(method: Swap, log: QueryLog) -> None:
    keep_the_house_rules(method, log)


@pytest.mark.slow
def test_swap_keeps_the_house_rules_on_a_log_of_sessions() -> None:
    keep_the_house_rules(METHODS[0], synthesize(users=60, seed=2).log)


@examples(40)
@given(log=logs(), k=st.integers(2, 4), seed=st.integers(0, 999), drain=st.sampled_from(["suppress", "release"]))
def test_nobody_has_more_in_a_category_than_before_and_what_is_gone_is_counted(
    log: QueryLog, k: int, seed: int, drain: str
) -> None:
    release = Swap(k=k, l=2, columns=KEPT, seed=seed, drain=drain).anonymize(log)
    before, after = profiles(log.frame), profiles(release.log.frame)
    assert all(n <= before[each] for each, n in after.items())
    removed = release.manifest.removed
    assert before.total() - after.total() == removed["rows_suppressed"] + removed["rows_repeated"]


@examples(40)
@given(log=logs(), seed=st.integers(0, 999))
def test_what_a_user_asked_again_is_counted_and_leaves_once(log: QueryLog, seed: int) -> None:
    release = Swap(k=2, columns=KEPT, seed=seed).anonymize(log)
    own = [(user, fold(query)) for user, query in log.frame.select("user", "query").iter_rows() if query.strip()]
    assert release.manifest.removed["rows_repeated"] == len(own) - len(set(own))
    n_people = Counter(query for _, query in set(own))
    assert Counter(map(fold, release.log.frame["query"])) <= n_people


def test_a_release_with_its_repeats_put_back_is_caught() -> None:
    log = sports()
    again = log.frame.filter(pl.col("user") == "u7")
    repeated = log.with_frame(pl.concat([log.frame, again, again]))
    release = Swap(k=5, columns=KEPT, seed=1).anonymize(repeated)
    assert release.manifest.removed["rows_repeated"] == 2
    assert verify(release, original=repeated).holds
    row = release.log.frame.filter(pl.col("query") == again["query"][0])
    assert row.height == 1
    back = replace(release, data=log.with_frame(pl.concat([release.log.frame, row])))
    verdict = verify(back, original=repeated)
    assert "repeated_query" in {witness.kind for witness in verdict.witnesses}
    all_of_it = Swap(k=5, columns=KEPT, seed=1, repeats="all").anonymize(repeated)
    assert all_of_it.promise == SwapAnonymity(k=5, l=5)
    assert verify(all_of_it, original=repeated).holds


@examples(40)
@given(log=logs(), seed=st.integers(0, 999))
def test_nobody_is_given_a_query_of_their_own_not_even_one_they_ask_later(log: QueryLog, seed: int) -> None:
    release = Swap(k=2, columns=KEPT, seed=seed).anonymize(log)
    own = {(user, fold(query)) for user, query in log.frame.select("user", "query").iter_rows()}
    assert not own & {(user, fold(query)) for user, query in release.log.frame.select("user", "query").iter_rows()}


def test_what_a_user_asks_later_is_not_given_to_them_before() -> None:
    rows = {"user": ["a", "b", "a", "c"], "query": ["tennis titles", "soccer scores", "Soccer scores", "football"]}
    for seed in range(40):
        release = Swap(k=2, columns=KEPT, seed=seed, order="file").anonymize(QueryLog.from_frame(rows))
        got = release.log.frame.select("user", "query").rows()
        assert all(fold(query) != "soccer scores" for user, query in got if user == "a")


def test_rows_bear_the_time_of_the_arrival_that_set_them_free() -> None:
    log = sports(time=hourly(60))
    release = Swap(k=5, columns=EXACT, seed=1).anonymize(log)
    assert sorted(release.log.frame["time"]) == hourly(60)[4:]
    by_day = Swap(k=5, columns=replace(EXACT, time=TimeDetail.DAY), seed=1).anonymize(log).log.frame["time"]
    assert sorted(by_day) == [time.replace(hour=0) for time in hourly(60)[4:]]
    assert "time" not in Swap(k=5, columns=KEPT, seed=1).anonymize(log).log.columns


def test_a_release_does_not_tell_in_which_order_its_rows_left() -> None:
    log = sports(time=hourly(60))
    times = Swap(k=5, columns=EXACT, seed=1).anonymize(log).log.frame["time"].to_list()
    n_rising = sum(before < after for before, after in pairwise(times))
    assert len(times) / 3 < n_rising < len(times) * 2 / 3


def test_rows_arrive_by_time_and_those_without_one_last() -> None:
    times = [*reversed(hourly(58)), None, None]
    release = Swap(k=5, columns=EXACT, seed=1).anonymize(sports(time=times))
    assert release.log.frame["time"].sort(nulls_last=True).to_list() == [*hourly(58)[4:], None, None]
    as_in_file = Swap(k=5, columns=EXACT, seed=1, order="file").anonymize(sports(time=times))
    assert set(as_in_file.log.frame["time"]) == set(times[4:])


@pytest.mark.parametrize("times", [{}, {"time": [None] * 60}], ids=["no column", "no value"])
def test_a_log_without_times_is_shuffled(times: dict[str, list[Any]]) -> None:
    log = sports(n_users=60, **times)
    user, query = (pl.col(name).str.extract(r"(\d+)$").cast(pl.Int64) for name in ("user", "query"))

    def apart(order: str) -> float:
        rows = Swap(k=5, columns=KEPT, seed=1, order=order).anonymize(log).log.frame
        return float(rows.select((user - query).abs().mean()).item())

    assert apart("file") < 10
    assert apart("time") > 15


def test_kept_columns_go_with_the_query_and_are_warned_of() -> None:
    log = sports(rank=list(range(60)), url=[f"{i}.example" for i in range(60)])
    release = Swap(k=5, columns=ColumnPolicy(ids="keep", keep=("rank",)), seed=1).anonymize(log)  # type: ignore[arg-type]
    assert release.log.columns == ["user", "query", "rank"]
    assert (release.log.frame["query"].str.extract(r"(\d+)$").cast(pl.Int64) == release.log.frame["rank"]).all()
    assert "columns that were kept go with the query to its new user" in release.manifest.warnings


def test_a_log_of_too_few_users_releases_nothing_and_says_so() -> None:
    release = Swap(k=10, columns=KEPT).anonymize(sports(n_users=9))
    assert release.log.n_rows == 0
    assert release.manifest.removed["rows_suppressed"] == 60
    assert "rows suppressed as no pool of k events and l users set them free: 60 of 60" in release.manifest.warnings


def test_draining_releases_more_but_only_from_pools_that_are_full_enough() -> None:
    few_first = QueryLog.from_frame(
        {
            "user": ["a", "b"] * 10 + ["c", "d", "e"],
            "query": [f"{SPORTS[i % 5]} {i}" for i in range(23)],
            "time": hourly(23),
        }
    )
    counts = {}
    for drain in ("suppress", "release"):
        release = Swap(k=3, columns=EXACT, seed=4, drain=drain).anonymize(few_first)
        assert verify(release, original=few_first).holds
        counts[drain] = release.log.n_rows
        assert release.log.frame["time"].max() == hourly(23)[-1]
    assert counts["suppress"] < counts["release"] < 23 - 1


def test_identifiers_go_and_the_manifest_counts_them_by_rule() -> None:
    log = sports()
    frame = log.frame.with_columns(
        query=pl.when(pl.int_range(pl.len()) % 2 == 0)
        .then(pl.col("query") + " a.person@mail.example")
        .otherwise("query")
    )
    numbers = pl.DataFrame({"user": ["u1"], "query": ["219-09-9999"]})
    release = Swap(k=2, columns=KEPT).anonymize(log.with_frame(pl.concat([frame, numbers])))
    assert not release.log.frame["query"].str.contains("@").any()
    removed = release.manifest.removed
    assert (removed["identifiers"], removed["identifiers_by_email"], removed["identifiers_by_ssn"]) == (31, 30, 1)
    assert removed["rows_of_identifiers"] == 1


def test_queries_without_a_category_can_be_dropped() -> None:
    log = QueryLog.from_frame({"user": [f"u{i}" for i in range(20)], "query": [f"{1950 + i}" for i in range(20)]})
    assert Swap(k=2).anonymize(log).log.n_rows == 19
    release = Swap(k=2, unclassified="drop").anonymize(log)
    assert (release.log.n_rows, release.manifest.removed["rows_unclassified"]) == (0, 20)


def test_the_manifest_names_the_settings_and_the_classifier() -> None:
    release = Swap(k=4, classifier=Classifier(kind="paper")).anonymize(sports())
    assert release.manifest.parameters == {
        "k": 4,
        "l": 4,
        "growth": 1.2,
        "max_pool": 10_000,
        "shrink": True,
        "repeats": "once",
        "window": None,
        "min_query_users": 1,
        "drain": "suppress",
        "unclassified": "pool",
        "order": "time",
        "classifier": "paper",
    }
    assert Swap(k=4).anonymize(sports()).manifest.parameters["classifier"] == "evidence"


@pytest.mark.parametrize("kind", ["paper", "evidence"])
def test_a_classifier_can_be_given_by_its_name(kind: str) -> None:
    named, made = (Swap(k=4, classifier=each, columns=KEPT, seed=1) for each in (kind, Classifier(kind=kind)))
    log = synthesize(users=60, seed=2).log
    assert named.anonymize(log).log.frame.equals(made.anonymize(log).log.frame)
    assert named.anonymize(log).manifest.parameters["classifier"] == kind


def test_own_tables_are_named_as_such(tmp_path: Path) -> None:
    table = tmp_path / "categories.csv"
    table.write_text("unit,category,weight\ntennis,Sports,1\n")
    own = Swap(k=4, classifier=Classifier.from_tables(categories=table))
    assert own.anonymize(sports()).manifest.parameters["classifier"] == "own tables"


def test_fresh_ids_cannot_be_verified_and_the_manifest_says_so() -> None:
    release = Swap(k=4).anonymize(sports())
    assert any(warning.startswith("user ids are fresh") for warning in release.manifest.warnings)
    with pytest.raises(BadInput, match="user ids are fresh"):
        verify(release, original=sports())


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"k": 1}, "k must be 2 or more, got 1"),
        ({"k": 3, "l": 4}, r"l must be between 2 and k \(3\), got 4"),
        ({"min_query_users": 2}, "min_query_users must be 1, or 3 and more"),
        ({"min_query_users": 5, "repeats": "all"}, "repeats must be once where texts need several people"),
        ({"window": "1"}, "window must be a number and a unit: 12h, 1d, 7d, 2w, got 1"),
        ({"drain": "leak"}, "drain must be suppress or release, got leak"),
        ({"unclassified": "keep"}, "unclassified must be pool or drop, got keep"),
        ({"order": "random"}, "order must be time or file, got random"),
        ({"classifier": "odp"}, "classifier must be evidence or paper, or a Classifier, got odp"),
        ({"classifier": 3}, "classifier must be evidence or paper, or a Classifier, got 3"),
        ({"seed": -1}, "seed must be 0 or more"),
    ],
)
def test_a_wrong_setting_is_a_clear_error(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(BadParameter, match=message):
        Swap(**wrong)


def test_transactions_are_refused() -> None:
    log = sports()
    with pytest.raises(BadInput, match="swap is for logs of queries"):
        Swap(k=2).anonymize(QueryLog(frame=log.frame, layout=Layout(format=Format.TRANSACTIONS)))


def test_the_promise_is_the_same_without_an_l() -> None:
    assert Swap(k=7).promise == SwapAnonymity(k=7, l=7, once=True, window="1d")
    assert Swap(k=7, l=2, window=None).promise == SwapAnonymity(k=7, l=2, once=True)
    assert Swap(k=7, columns=KEPT).promise == SwapAnonymity(k=7, l=7, once=True)


KEY = b"a made-up key of many bytes"


def test_an_id_is_derived_from_the_key_and_the_window_of_release() -> None:
    """Golden: the pseudonym of a user, and from it and the number of days since 1970 the id."""
    log = sports(time=hourly(60))
    policy = ColumnPolicy(ids=Ids.KEYED, key=KEY, time="day")  # type: ignore[arg-type]
    release = Swap(k=5, columns=policy, seed=1).anonymize(log)
    names = {f"u{i}": hmac.digest(KEY, f"u{i}".encode(), "sha256").hex()[:32] for i in range(60)}
    ids = {
        hmac.digest(KEY, f"{name}\0{day}".encode(), "sha256").hex()[:32]: day
        for name in names.values()
        for day in (13208, 13209, 13210)
    }
    days = [(time - datetime(1970, 1, 1)).days for time in release.log.frame["time"]]
    assert [ids[user] for user in release.log.frame["user"]] == days
    assert release.promise.window == "1d"


@pytest.mark.parametrize("window", ["12h", "1d", "1w"])
def test_ids_change_from_window_to_window_and_the_key_finds_their_people(window: str) -> None:
    log = synthesize(users=60, seed=2).log
    for ids in ("keyed", "fresh"):
        key = KEY if ids == "keyed" else None
        policy = ColumnPolicy(ids=ids, key=key, time="keep")  # type: ignore[arg-type]
        release = Swap(k=3, l=2, columns=policy, window=window).anonymize(log)
        lengths = release.log.frame.group_by("user").agg(pl.col("time").max() - pl.col("time").min())["time"]
        assert (lengths < parse_window(window)).all()
        kept = Swap(k=3, l=2, columns=policy, window=None).anonymize(log)
        assert release.log.n_users > kept.log.n_users
        assert release.manifest.removed["users_left_empty"] <= log.n_users
        if key is not None:
            assert verify(release, original=log, key=key).holds
            found = Pair(log, release=release, key=key).identity
            assert (found.sole_user() >= 0).all()


def test_the_day_before_1970_and_rows_without_a_time_are_two_windows() -> None:
    log = sports(time=[datetime(1969, 12, 31, 12)] * 30 + [None] * 30)
    people = log.with_frame(log.frame.with_columns(user=pl.Series([f"u{i % 30}" for i in range(60)])))
    policy = ColumnPolicy(ids=Ids.KEYED, key=KEY, time="keep")  # type: ignore[arg-type]
    release = Swap(k=5, columns=policy, seed=1).anonymize(people)
    assert set(release.log.frame["time"]) == {datetime(1969, 12, 31, 12), None}
    assert release.log.frame.group_by("user").agg(pl.col("time").n_unique())["time"].max() == 1
    assert verify(release, original=people, key=KEY).holds
    assert (Pair(people, release=release, key=KEY).identity.sole_user() >= 0).all()


def test_a_row_given_to_who_asked_it_is_caught_though_ids_change() -> None:
    log = sports(time=hourly(60))
    policy = ColumnPolicy(ids=Ids.KEYED, key=KEY, time="day")  # type: ignore[arg-type]
    release = Swap(k=5, columns=policy, seed=1).anonymize(log)
    frame = release.log.frame
    row = frame.row(0, named=True)
    asker = log.frame.filter(pl.col("query") == row["query"])["user"][0]
    name = hmac.digest(KEY, asker.encode(), "sha256").hex()[:32]
    day = (row["time"] - datetime(1970, 1, 1)).days
    own = hmac.digest(KEY, f"{name}\0{day}".encode(), "sha256").hex()[:32]
    broken = frame.with_columns(user=pl.when(pl.int_range(pl.len()) == 0).then(pl.lit(own)).otherwise("user"))
    verdict = verify(replace(release, data=log.with_frame(broken)), original=log, key=KEY)
    assert "own_query" in {witness.kind for witness in verdict.witnesses}


@pytest.mark.slow
@pytest.mark.real_data
@pytest.mark.parametrize("name", ["excite-small.log", "ubi-sample.ndjson"])
def test_real_logs_keep_the_promise(name: str) -> None:
    path = DATA / name
    if not path.exists():
        pytest.skip("the logs are not beside the checkout")
    log = read_log(path)
    release = Swap(k=5, l=2, columns=EXACT).anonymize(log)
    verdict = verify(release, original=log)
    assert verdict.holds, verdict.in_words()
    assert release.log.n_rows > 0


@pytest.mark.parametrize("window", ["1d", "7d"])
def test_shared_times_are_those_of_everybody_in_the_window_and_finer_ones_are_found(
    window: str, tmp_path: Path
) -> None:
    log = synthesize(users=200, seed=4).log
    columns = ColumnPolicy(ids=Ids.KEYED, key=KEY, time=TimeDetail.SHARED)
    release = Swap(k=3, window=window, columns=columns, seed=1).anonymize(log)
    assert verify(release.save(tmp_path / "out"), original=log, key=KEY).holds
    assert not any("times" in warning for warning in release.manifest.warnings)
    # An id has rows in one window only, so its time tells no more than the id does.
    assert release.log.frame.group_by("user").agg(pl.col("time").n_unique())["time"].max() == 1
    finer = replace(
        release, data=release.log.with_frame(release.log.frame.with_columns(pl.col("time") + timedelta(hours=5)))
    )
    assert any(
        "times are finer" in fault for fault in verify(finer.save(tmp_path / "finer"), original=log, key=KEY).faults
    )


def test_times_are_shared_only_where_ids_change() -> None:
    log = QueryLog.from_frame({"user": ["1", "2"], "query": ["tea", "rye"]})
    for method in (
        Swap(columns=ColumnPolicy(time=TimeDetail.SHARED)),
        Swap(window=None, columns=ColumnPolicy(time=TimeDetail.SHARED)),
    ):
        with pytest.raises(BadParameter, match="time must be drop, day, hour or keep here"):
            method.anonymize(log)
