"""Query logs taken from frames of every kind."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from datetime import date, datetime
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from queryveil.data import QueryLog, Reading
from queryveil.errors import BadInput, BadParameter, MissingColumn, QueryveilError

COLUMNS = {"user": ["u1", "u2", "u1"], "query": ["brass kettle", "", "kettle"]}


@pytest.mark.parametrize(
    "data",
    [
        COLUMNS,
        pl.DataFrame(COLUMNS),
        pl.LazyFrame(COLUMNS),
        pd.DataFrame(COLUMNS),
        pa.table(COLUMNS),
        pa.record_batch(COLUMNS),
    ],
    ids=["dict", "polars", "lazy", "pandas", "arrow", "arrow batch"],
)
def test_frames_of_every_kind_give_the_same_log(data: Any) -> None:
    log = QueryLog.from_frame(data)
    assert log.frame.equals(pl.DataFrame(COLUMNS))
    assert (log.n_rows, log.n_users, log.columns) == (3, 2, ["user", "query"])


def test_a_log_comes_back_as_polars_pandas_and_arrow() -> None:
    log = QueryLog.from_frame(COLUMNS)
    assert log.to_polars().to_dict(as_series=False) == COLUMNS
    assert log.to_pandas().to_dict("list") == COLUMNS
    assert log.to_arrow().to_pydict() == COLUMNS


def test_columns_names_the_column_of_each_role_and_the_rest_is_carried_along() -> None:
    log = QueryLog.from_frame({"who": ["a"], "q": ["b"], "shop": ["c"]}, columns={"user": "who", "query": "q"})
    assert log.frame.to_dict(as_series=False) == {"user": ["a"], "query": ["b"], "shop": ["c"]}


def test_a_column_named_for_a_role_goes_before_one_called_like_the_role() -> None:
    log = QueryLog.from_frame({"user": ["old"], "who": ["new"], "query": ["b"]}, columns={"user": "who"})
    assert log.frame["user"].to_list() == ["new"]


def test_two_roles_may_swap_their_names() -> None:
    log = QueryLog.from_frame({"user": ["b"], "query": ["a"]}, columns={"user": "query", "query": "user"})
    assert log.frame.to_dict(as_series=False) == {"user": ["a"], "query": ["b"]}


def test_numbers_and_categories_are_fine_as_users_and_a_missing_query_is_an_empty_one() -> None:
    log = QueryLog.from_frame(pd.DataFrame({"user": [7, 8], "query": pd.Categorical(["kettle", None])}))
    assert log.frame.to_dict(as_series=False) == {"user": ["7", "8"], "query": ["kettle", ""]}


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        (["2006-03-01 07:17:12"], datetime(2006, 3, 1, 7, 17, 12)),
        ([date(2006, 3, 1)], datetime(2006, 3, 1)),
        (pl.Series([datetime(2006, 3, 1, 7)], dtype=pl.Datetime("ms")), datetime(2006, 3, 1, 7)),
        (pl.Series([datetime(2006, 3, 1, 7)]).dt.replace_time_zone("Asia/Tokyo"), datetime(2006, 2, 28, 22)),
        ([None], None),
    ],
    ids=["text", "dates", "milliseconds", "zone", "missing"],
)
def test_times_of_every_kind_become_utc_microseconds(times: Any, expected: datetime | None) -> None:
    log = QueryLog.from_frame({"user": ["a"], "query": ["b"], "time": times})
    assert log.frame.schema["time"] == pl.Datetime("us")
    assert log.frame["time"].to_list() == [expected]


def test_whole_numbers_that_pandas_wrote_as_floats_are_ranks() -> None:
    log = QueryLog.from_frame(pd.DataFrame({"user": ["a", "b"], "query": ["c", "d"], "rank": [3, None]}))
    assert log.frame["rank"].to_list() == [3, None]


SECRET = "secretword"
BAD = {
    "a list": [SECRET],
    "nothing": None,
    "a Series": pd.Series([SECRET]),
    "a Polars Series": pl.Series([SECRET]),
    "columns of different length": {"user": ["a"], "query": [SECRET, "b"]},
    "mixed types": {"user": ["a", "b"], "query": [3, SECRET]},
    "mixed types in pandas": pd.DataFrame({"user": ["a", "b"], "query": [3, SECRET]}),
    "a column twice": pd.DataFrame([["a", SECRET, SECRET]], columns=["user", "query", "query"]),
    "an Arrow column twice": pa.table([["a"], [SECRET], [SECRET]], names=["user", "query", "query"]),
    "a name that is no text": {1: [SECRET]},
    "a lazy frame that cannot be computed": pl.LazyFrame({"user": ["a"], "query": [SECRET]}).with_columns(
        pl.col("query").cast(pl.Int64)
    ),
    "a missing user": {"user": ["a", None], "query": [SECRET, SECRET]},
    "lists": {"user": ["a"], "query": [[SECRET]]},
    "bytes that are no text": {"user": ["a"], "query": [SECRET.encode() + b"\xff"]},
    "no time": {"user": ["a"], "query": ["b"], "time": [SECRET]},
    "a time as a bare number": {"user": ["a"], "query": [SECRET], "time": [1141197432]},
    "no rank": {"user": ["a"], "query": ["b"], "rank": [SECRET]},
    "a broken rank": {"user": ["a"], "query": [SECRET], "rank": [1.5]},
    "no query column": {"user": ["a"], "what": [SECRET]},
    "no user column": {"query": [SECRET]},
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_query_log_is_a_clear_error_without_any_text_of_it(name: str) -> None:
    with pytest.raises(BadInput) as caught:
        QueryLog.from_frame(BAD[name])
    assert SECRET not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_a_column_that_is_named_but_not_there_is_an_error() -> None:
    with pytest.raises(MissingColumn, match="no column for the user among user, query"):
        QueryLog.from_frame(COLUMNS, columns={"user": "who"})


@pytest.mark.parametrize(
    ("columns", "message"),
    [({"usr": "user"}, "one of user, query, time"), ({"user": "user", "query": "user"}, "a different column")],
)
def test_a_role_that_there_is_not_and_a_column_with_two_roles_are_errors(columns: Any, message: str) -> None:
    with pytest.raises(BadParameter, match=message):
        QueryLog.from_frame(COLUMNS, columns=columns)


def test_a_log_made_by_hand_must_have_the_right_types() -> None:
    with pytest.raises(BadInput, match="the user column must be String, found Int64"):
        QueryLog(frame=pl.DataFrame({"user": [1], "query": ["a"]}))
    with pytest.raises(BadInput, match="missing values"):
        QueryLog(frame=pl.DataFrame({"user": ["u"], "query": [None]}, schema={"user": pl.String, "query": pl.String}))


def test_a_log_cannot_be_changed() -> None:
    log = QueryLog.from_frame(COLUMNS)
    with pytest.raises(FrozenInstanceError):
        log.frame = pl.DataFrame(COLUMNS)  # type: ignore[misc]


def test_changing_the_frame_given_or_taken_leaves_the_log_as_it_was() -> None:
    given = pl.DataFrame(COLUMNS)
    log = QueryLog.from_frame(given)
    for frame in (given, log.to_polars()):
        frame.insert_column(0, pl.Series("more", [1, 2, 3]))
        frame[0, "query"] = "changed"
    assert log.frame.to_dict(as_series=False) == COLUMNS


def test_with_frame_keeps_how_the_log_was_read() -> None:
    log = QueryLog(frame=pl.DataFrame(COLUMNS), reading=Reading(n_bad_rows_skipped=3))
    other = log.with_frame(log.frame.head(1))
    assert (other.n_rows, other.reading, log.n_rows) == (1, log.reading, 3)


def test_the_repr_of_a_log_shows_its_size_and_no_text() -> None:
    log = QueryLog.from_frame(COLUMNS)
    assert repr(log) == str(log) == "QueryLog(n_rows=3, n_users=2, columns=['user', 'query'])"


def test_every_error_of_a_frame_is_one_of_ours() -> None:
    assert issubclass(BadInput, QueryveilError)
