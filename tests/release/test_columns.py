"""What leaves beside the queries: user ids, times and other columns."""

from __future__ import annotations

import hashlib
import hmac
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from queryveil.checks import verify
from queryveil.data import QueryLog
from queryveil.errors import BadParameter
from queryveil.methods import Km
from queryveil.release import ColumnPolicy, Ids, TimeDetail
from queryveil.rng import generator
from queryveil.text.tokens import encode

KEY = b"0123456789abcdef"
TIME = datetime(2006, 3, 1, 7, 17, 12, 345678)


def frame_of(users: list[str]) -> pl.DataFrame:
    n = len(users)
    return pl.DataFrame(
        {
            "user": users,
            "query": [f"query{i}" for i in range(n)],
            "time": [TIME + timedelta(hours=i) for i in range(n)],
            "rank": list(range(n)),
            "url": [f"https://shop{i}.example" for i in range(n)],
            "shop": ["corner"] * n,
        },
        schema={
            "user": pl.String,
            "query": pl.String,
            "time": pl.Datetime("us"),
            "rank": pl.Int64,
            "url": pl.String,
            "shop": pl.String,
        },
    )


FRAME = frame_of([f"id{i % 40:02}" for i in range(120)])


def applied(policy: ColumnPolicy, frame: pl.DataFrame = FRAME, *, seed: int | None = None) -> pl.DataFrame:
    owners, _ = encode(frame["user"])
    return policy.apply(frame, owners, rng=generator(seed))


def user_of_each_query(frame: pl.DataFrame) -> dict[str, str]:
    return dict(zip(frame["query"], frame["user"], strict=True))


def test_fresh_ids_are_the_numbers_from_one_on_one_for_each_user() -> None:
    out = applied(ColumnPolicy())
    assert sorted(map(int, out["user"].unique())) == list(range(1, 41))
    before, after = user_of_each_query(FRAME), user_of_each_query(out)
    assert len({(before[query], after[query]) for query in before}) == 40


def test_fresh_ids_do_not_follow_the_order_of_the_input() -> None:
    after = user_of_each_query(applied(ColumnPolicy()))
    in_order = [int(after[f"query{i}"]) for i in range(40)]
    assert in_order not in (list(range(1, 41)), list(range(40, 0, -1)))


def test_fresh_ids_number_only_the_users_that_are_left() -> None:
    frame, owners = FRAME.tail(60), encode(FRAME["user"])[0][60:]
    out = ColumnPolicy().apply(frame.filter(owners % 2 == 0), owners[owners % 2 == 0], rng=generator(None))
    assert sorted(map(int, out["user"].unique())) == list(range(1, 21))


def test_two_runs_without_a_seed_differ_and_two_with_one_agree() -> None:
    assert not applied(ColumnPolicy()).equals(applied(ColumnPolicy()))
    assert applied(ColumnPolicy(), seed=5).equals(applied(ColumnPolicy(), seed=5))
    assert not applied(ColumnPolicy(), seed=5).equals(applied(ColumnPolicy(), seed=6))


def test_keyed_ids_are_the_first_half_of_hmac_sha256_of_the_id_under_the_key() -> None:
    after = user_of_each_query(applied(ColumnPolicy(ids=Ids.KEYED, key=KEY)))
    for query, user in user_of_each_query(FRAME).items():
        assert after[query] == hmac.new(KEY, user.encode(), hashlib.sha256).hexdigest()[:32]


def test_keyed_ids_repeat_under_the_same_key_and_not_under_another() -> None:
    first, second = (user_of_each_query(applied(ColumnPolicy(ids=Ids.KEYED, key=KEY))) for _ in range(2))
    other = user_of_each_query(applied(ColumnPolicy(ids=Ids.KEYED, key=KEY[::-1])))
    assert first == second
    assert not set(first.values()) & set(other.values())


def test_keyed_ids_take_users_of_every_script() -> None:
    out = applied(ColumnPolicy(ids=Ids.KEYED, key=KEY), frame_of(["जन", "jörg", ""]))
    assert out["user"].n_unique() == 3


def test_kept_ids_are_the_original_ones() -> None:
    assert user_of_each_query(applied(ColumnPolicy(ids=Ids.KEEP))) == user_of_each_query(FRAME)


@pytest.mark.parametrize(
    ("detail", "expected"),
    [
        (TimeDetail.DAY, datetime(2006, 3, 1)),
        (TimeDetail.HOUR, datetime(2006, 3, 1, 7)),
        (TimeDetail.KEEP, TIME),
    ],
)
def test_times_are_cut_to_what_was_asked(detail: TimeDetail, expected: datetime) -> None:
    out = applied(ColumnPolicy(time=detail))
    assert out.filter(query="query0")["time"].item() == expected
    assert out.schema["time"] == pl.Datetime("us")


def test_every_time_is_cut_not_only_the_first() -> None:
    out = applied(ColumnPolicy(time=TimeDetail.DAY))
    assert out["time"].dt.time().n_unique() == 1
    assert sorted(out["time"].dt.date().unique()) == sorted(FRAME["time"].dt.date().unique())


def test_a_missing_time_stays_missing_and_times_before_1970_are_cut_downwards() -> None:
    frame = frame_of(["a", "b"]).with_columns(time=pl.Series([None, datetime(1969, 7, 20, 20, 17)]))
    out = applied(ColumnPolicy(time=TimeDetail.DAY), frame).sort("query")
    assert out["time"].to_list() == [None, datetime(1969, 7, 20)]


def test_dropped_times_and_other_columns_are_not_in_the_release() -> None:
    assert applied(ColumnPolicy()).columns == ["user", "query"]
    assert applied(ColumnPolicy(time=TimeDetail.DAY)).columns == ["user", "query", "time"]


def test_columns_named_in_keep_leave_as_they_are_beside_their_query() -> None:
    out = applied(ColumnPolicy(keep=("shop", "rank")))
    assert out.columns == ["user", "query", "rank", "shop"]
    assert dict(zip(out["query"], out["rank"], strict=True)) == dict(zip(FRAME["query"], FRAME["rank"], strict=True))


def test_a_single_name_to_keep_is_one_column() -> None:
    assert ColumnPolicy(keep="url").keep == ("url",)  # type: ignore[arg-type]


@given(st.lists(st.integers(0, 5), max_size=30))
def test_no_row_is_lost_or_changed_and_the_rows_of_a_user_stay_together(users: list[int]) -> None:
    frame = frame_of([f"id{user}" for user in users])
    out = applied(ColumnPolicy(ids=Ids.KEEP, time=TimeDetail.KEEP, keep=("rank", "url", "shop")), frame)
    assert out.sort("rank").equals(frame)
    runs = out["user"].rle().struct.field("value").to_list()
    assert len(runs) == len(set(runs))


def test_the_order_of_users_and_of_each_users_rows_is_shuffled() -> None:
    frame = frame_of([f"id{i // 40}" for i in range(120)])
    outs = [applied(ColumnPolicy(ids=Ids.KEEP, keep=("rank",)), frame) for _ in range(12)]
    assert len({tuple(out["user"].unique(maintain_order=True)) for out in outs}) > 1
    ranks = [out.filter(user="id0")["rank"].to_list() for out in outs]
    assert all(rank != sorted(rank) for rank in ranks)
    assert len({tuple(rank) for rank in ranks}) == 12


def test_a_log_without_rows_stays_without_rows() -> None:
    for policy in (ColumnPolicy(), ColumnPolicy(ids=Ids.KEYED, key=KEY), ColumnPolicy(ids=Ids.KEEP)):
        out = policy.apply(FRAME.clear(), np.zeros(0, np.int32), rng=generator(None))
        assert out.height == 0
        assert out.schema == {"user": pl.String, "query": pl.String}
    out = ColumnPolicy(time=TimeDetail.DAY).apply(FRAME.clear(), np.zeros(0, np.int32), rng=generator(None))
    assert out.schema == {"user": pl.String, "query": pl.String, "time": pl.Datetime("us")}


def test_the_report_says_what_was_kept_and_dropped() -> None:
    report = ColumnPolicy(keep=("url",)).report(FRAME.columns)
    assert (report.ids, report.time, report.kept, report.dropped) == (
        Ids.FRESH,
        TimeDetail.DROP,
        ("url",),
        ("time", "rank"),
    )
    assert ColumnPolicy(time=TimeDetail.DAY).report(FRAME.columns).dropped == ("rank", "url")
    assert report.n_others_dropped == 1
    assert ColumnPolicy().report(["user", "query"]).time is TimeDetail.DROP


def test_what_the_promise_does_not_cover_is_warned_of_and_nothing_else_is() -> None:
    assert ColumnPolicy().warnings(FRAME.columns) == []
    assert ColumnPolicy(time=TimeDetail.KEEP).warnings(["user", "query"]) == []
    warnings = ColumnPolicy(ids=Ids.KEEP, time=TimeDetail.KEEP, keep=("url", "shop")).warnings(FRAME.columns)
    assert [warning.split()[:2] for warning in warnings] == [
        ["user", "ids"],
        ["times", "are"],
        ["column", "url"],
        ["column", "shop"],
    ]


def alone_by_brute_force(rows: list[tuple[str, datetime | None]]) -> int:
    times = {user: {time for other, time in rows if other == user and time} for user, _ in rows}
    sets = [mine for mine in times.values() if mine]
    return sum(sets.count(mine) == 1 for mine in sets)


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.none() | st.sampled_from([TIME, TIME + timedelta(days=1)]))))
def test_users_alone_with_their_times_are_counted_and_warned_of(rows: list[tuple[str, datetime | None]]) -> None:
    columns = {"user": [user for user, _ in rows], "time": [time for _, time in rows]}
    frame = pl.DataFrame(columns, schema={"user": pl.String, "time": pl.Datetime("us")})
    policy, n = ColumnPolicy(time=TimeDetail.DAY), alone_by_brute_force(rows)
    assert policy.n_alone(frame) == n
    assert policy.warnings(frame.columns, n_alone=n) == [
        f"times are not covered by the promise; users with a set of them that nobody else has: {n}"
    ]
    assert ColumnPolicy().n_alone(frame.select("user")) is None


def test_a_column_to_keep_must_be_there() -> None:
    ColumnPolicy(keep=("url",)).check(FRAME.columns)
    with pytest.raises(BadParameter, match=r"keep must be columns of the log, such as rank, url, got nosuch"):
        ColumnPolicy(keep=("nosuch",)).check(FRAME.columns)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"ids": "same"}, "ids must be one of fresh, keyed, keep, got same"),
        ({"time": "week"}, "time must be one of day, hour, keep, drop, shared, got week"),
        ({"ids": "keyed"}, "key must be a file of at least 16 secret bytes"),
        ({"ids": "keyed", "key": b"short"}, "key must be at least 16 secret bytes, got 5 bytes"),
        ({"key": KEY}, "ids must be keyed when a key is given"),
        ({"keep": ("time",), "time": "drop"}, "ids and time say what becomes of these, got time"),
        ({"keep": ("user",)}, "ids and time say what becomes of these, got user"),
    ],
)
def test_bad_settings_say_what_to_write_instead(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(BadParameter, match=message):
        ColumnPolicy(**settings)


def test_the_key_is_never_shown() -> None:
    policy = ColumnPolicy(ids=Ids.KEYED, key=KEY)
    assert KEY.decode() not in repr(policy) + str(policy)
    with pytest.raises(BadParameter) as caught:
        ColumnPolicy(ids=Ids.KEYED, key=KEY[:8])
    assert KEY[:8].decode() not in str(caught.value)


def test_a_protected_column_leaves_unasked_and_without_a_warning() -> None:
    policy = ColumnPolicy()
    owners = np.arange(FRAME.height, dtype=np.int32)
    out = policy.apply(FRAME, owners, rng=generator(1), protected=("url",))
    assert "url" in out.columns
    assert "rank" not in out.columns
    report = policy.report(FRAME.columns, protected=("url",))
    assert "url" not in report.kept
    assert "url" not in report.dropped
    assert not any("url" in warning for warning in policy.warnings(FRAME.columns, protected=("url",)))


def test_a_release_whose_ids_were_kept_leaves_under_fresh_ones_and_is_the_same_else() -> None:
    users = [f"persona{i:02}" for i in range(12) for _ in range(2)]
    log = QueryLog.from_frame({"user": users, "query": ["kettle", "tea pot"] * 12})
    kept = Km(k=2, m=1, columns=ColumnPolicy(ids=Ids.KEEP)).anonymize(log)
    fresh = kept.with_fresh_ids(generator(5))
    before, after = kept.log.frame, fresh.log.frame
    assert after.drop("user").equals(before.drop("user"))
    pairs = pl.DataFrame({"before": before["user"], "after": after["user"]}).unique()
    assert len(pairs) == pairs["before"].n_unique() == pairs["after"].n_unique() == 12
    assert set(after["user"]) == {str(n) for n in range(1, 13)}
    # Numbers in the order of the ids would tell who is who to whoever knows all ids.
    assert pairs.sort("before")["after"].to_list() != [str(n) for n in range(1, 13)]
    assert fresh.manifest.columns.ids == "fresh"
    assert [text for text in kept.manifest.warnings if text not in fresh.manifest.warnings] == [
        "user ids are the original ones: whoever knows an id knows the person's rows"
    ]
    assert verify(fresh).holds
    assert fresh.with_fresh_ids(generator(5)) is fresh
