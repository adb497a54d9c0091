from datetime import UTC, date, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from queryveil.errors import BadFile, BadRows, MissingColumn
from queryveil.formats import Format, read_log
from queryveil.reports.inspection import inspect


def _file(folder: Path, columns: dict[str, Any], name: str = "log.parquet") -> Path:
    path = folder / name
    pl.DataFrame(columns).write_parquet(path)
    return path


def test_columns_are_found_by_name_and_others_keep_their_type(tmp_path: Path) -> None:
    log = read_log(_file(tmp_path, {"n": [1.5], "AnonID": [7], "Query": ["kettle"], "tags": [["a", "b"]]}))
    assert log.layout.format is Format.PARQUET
    assert log.frame.to_dicts() == [{"user": "7", "query": "kettle", "n": 1.5, "tags": ["a", "b"]}]


@pytest.mark.parametrize(
    ("value", "time"),
    [
        (datetime(2024, 5, 1, 10, 20, 30), datetime(2024, 5, 1, 10, 20, 30)),
        (datetime(2024, 5, 1, 10, 20, 30, tzinfo=UTC), datetime(2024, 5, 1, 10, 20, 30)),
        (date(2024, 5, 1), datetime(2024, 5, 1)),
        ("2024-05-01T10:20:30+02:00", datetime(2024, 5, 1, 8, 20, 30)),
        (1714558830, datetime(2024, 5, 1, 10, 20, 30)),
        (1714558830250.0, datetime(2024, 5, 1, 10, 20, 30, 250_000)),
        (None, None),
    ],
)
def test_times_of_every_type_are_read(tmp_path: Path, value: Any, time: datetime | None) -> None:
    assert read_log(_file(tmp_path, {"user": ["7"], "query": ["a"], "time": [value]})).frame["time"].item() == time


def test_a_time_in_another_zone_becomes_utc(tmp_path: Path) -> None:
    times = pl.Series([datetime(2024, 5, 1, 10)]).dt.replace_time_zone("Europe/Vienna").dt.cast_time_unit("ns")
    log = read_log(_file(tmp_path, {"user": ["7"], "query": ["a"], "time": times}))
    assert log.frame["time"].item() == datetime(2024, 5, 1, 8)


def test_a_missing_query_is_empty_and_ranks_become_whole_numbers(tmp_path: Path) -> None:
    log = read_log(_file(tmp_path, {"user": ["7", "8"], "query": ["a", None], "rank": [3.0, None], "url": ["", "u"]}))
    assert log.frame.rows() == [("7", "a", 3, None), ("8", "", None, "u")]


def test_bad_rows_are_named_by_their_number(tmp_path: Path) -> None:
    path = _file(tmp_path, {"user": ["7", None, ""], "query": ["a", "b", "c"], "rank": [1.5, 2.0, 3.0]})
    with pytest.raises(BadRows) as caught:
        read_log(path)
    assert [(row.line, row.reason) for row in caught.value.rows] == [
        (1, "the rank cannot be read as a whole number"),
        (2, "the user is missing"),
        (3, "the user is missing"),
    ]
    assert read_log(path, bad_rows="skip").n_rows == 0


def test_a_rank_too_large_is_a_bad_row(tmp_path: Path) -> None:
    rank = pl.Series([2**64 - 1], dtype=pl.UInt64)
    with pytest.raises(BadRows, match="rank"):
        read_log(_file(tmp_path, {"user": ["7"], "query": ["a"], "rank": rank}))


def test_a_truncated_file_is_a_clear_error(tmp_path: Path) -> None:
    path = _file(tmp_path, {"user": ["7"] * 1000, "query": ["kettle"] * 1000})
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(BadFile, match="not a whole Parquet file"):
        read_log(path)


def test_a_file_that_only_claims_to_be_parquet_is_a_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    path.write_text("user,query\n7,kettle\n")
    with pytest.raises(BadFile, match="not a whole Parquet file"):
        read_log(path)


def test_parquet_is_known_by_its_content(tmp_path: Path) -> None:
    assert read_log(_file(tmp_path, {"user": ["7"], "query": ["a"]}, name="log.dat")).n_rows == 1


def test_a_missing_column_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(MissingColumn, match="no column for the query among user, text"):
        read_log(_file(tmp_path, {"user": ["7"], "text": ["a"]}))


def test_no_rows_are_an_empty_log_with_its_columns(tmp_path: Path) -> None:
    empty = pl.DataFrame(schema={"user": pl.String, "query": pl.String, "time": pl.Datetime("ms"), "n": pl.Int8})
    path = tmp_path / "log.parquet"
    empty.write_parquet(path)
    assert read_log(path).frame.schema == {
        "user": pl.String,
        "query": pl.String,
        "time": pl.Datetime("us"),
        "n": pl.Int8,
    }


@pytest.mark.parametrize("kind", [pl.Datetime("us"), pl.Datetime("ms"), pl.Datetime("us", "Europe/Vienna"), pl.Date])
def test_a_time_in_a_year_that_python_has_not_is_a_bad_row(tmp_path: Path, kind: Any) -> None:
    far = 2**31 - 1 if kind == pl.Date else 2**62
    times = pl.Series([0, far, -far], dtype=pl.Int32 if kind == pl.Date else pl.Int64).cast(kind)
    path = _file(tmp_path, {"user": ["7"] * 3, "query": ["a"] * 3, "time": times})
    with pytest.raises(BadRows) as caught:
        read_log(path)
    assert [(row.line, row.reason) for row in caught.value.rows] == [
        (2, "the time cannot be read as a time"),
        (3, "the time cannot be read as a time"),
    ]
    assert inspect(read_log(path, bad_rows="skip")).last_time == datetime(1970, 1, 1)


@pytest.mark.parametrize("value", [9_999_999_999, -62_135_596_801, 1e300, float("inf")])
def test_a_number_beyond_those_years_is_one_too(tmp_path: Path, value: float) -> None:
    path = _file(tmp_path, {"user": ["7"] * 3, "query": ["a"] * 3, "time": [1714558830250.0, float(value), None]})
    with pytest.raises(BadRows, match="line 2: the time cannot be read as a time\\n1 row cannot be read"):
        read_log(path)


def test_a_damaged_file_is_refused_where_arrow_reads_on(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    table = pa.table({"user": ["u1", "u2", "u3"], "query": ["tea", "rye", "caf#"]})
    pq.write_table(table, path, compression="none", use_dictionary=False, write_statistics=False)
    whole = path.read_bytes()
    not_text = whole.replace(b"caf#", b"caf\xe9")
    # A page of a kind that is not known is passed over, and its rows with it.
    page_lost = whole[:5] + bytes([whole[5] ^ 1]) + whole[6:]
    assert sum(batch.num_rows for batch in pq.ParquetFile(BytesIO(page_lost)).iter_batches()) == 0
    for damaged in (not_text, page_lost):
        path.write_bytes(damaged)
        for policy in ("fail", "skip"):
            with pytest.raises(BadFile, match="this is not a whole Parquet file"):
                read_log(path, bad_rows=policy)
