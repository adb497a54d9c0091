from datetime import datetime
from pathlib import Path

import polars as pl
import pytest

from queryveil.errors import BadRows, MissingColumn
from queryveil.formats import Format, read_log


def _file(folder: Path, *lines: str, name: str = "log.jsonl") -> Path:
    path = folder / name
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def _reasons(path: Path) -> list[tuple[int, str]]:
    with pytest.raises(BadRows) as caught:
        read_log(path)
    return [(row.line, row.reason) for row in caught.value.rows]


def test_objects_become_rows(tmp_path: Path) -> None:
    log = read_log(_file(tmp_path, '{"user_id": "7", "q": "kettle", "ts": "2024-05-01T00:00:00Z", "position": 3}'))
    assert log.layout.format is Format.JSONL
    assert log.frame.rows() == [("7", "kettle", datetime(2024, 5, 1), 3)]
    assert log.layout.names == {"user": "user_id", "query": "q", "time": "ts", "rank": "position"}


def test_numbers_as_users_and_times_are_read(tmp_path: Path) -> None:
    log = read_log(_file(tmp_path, '{"user": 12345678901234567890, "query": "kettle", "time": 1714558830250}'))
    assert log.frame.rows() == [("12345678901234567890", "kettle", datetime(2024, 5, 1, 10, 20, 30, 250_000))]
    assert log.layout.time_format == "epoch_ms"


def test_a_missing_query_is_empty_and_other_missing_values_are_null(tmp_path: Path) -> None:
    log = read_log(_file(tmp_path, '{"user": "7", "query": null, "url": ""}', '{"user": "8"}'))
    assert log.frame.rows() == [("7", "", None), ("8", "", None)]


@pytest.mark.parametrize("odd", ['{"user": "9", "query": "own"}', '{"user": "9", "session": "9", "query": "own"}'])
@pytest.mark.parametrize("block", [100_000, 1_000_000])
def test_one_row_with_other_keys_changes_no_other_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, odd: str, block: int
) -> None:
    monkeypatch.setattr("queryveil.formats.streams.BLOCK_BYTES", block)
    rows = [f'{{"session": "{i}", "q": "kettle"}}' for i in range(5000)]
    path = _file(tmp_path, *rows, odd, '{"session": "10", "q": "lamp", "ts": "2024-05-01T00:00:00Z"}')
    log = read_log(path, bad_rows="skip")
    assert log.layout.names == {"user": "session", "query": "q", "time": "ts"}
    assert log.frame.select("user", "query").rows()[:5000] == [(str(i), "kettle") for i in range(5000)]
    assert log.frame.select("user", "query").rows()[-1] == ("10", "lamp")


def test_a_key_that_is_asked_for_goes_before_one_that_comes_first(tmp_path: Path) -> None:
    path = _file(tmp_path, '{"user": "7", "q": "no"}', '{"user": "8", "q": "no", "said": "kettle"}')
    assert read_log(path, columns={"query": "said"}).frame["query"].to_list() == ["", "kettle"]
    assert "time" not in read_log(path, columns={"time": ""}).columns


def test_the_likeliest_of_the_keys_of_the_first_line_is_the_query(tmp_path: Path) -> None:
    log = read_log(_file(tmp_path, '{"user": "7", "q": "no", "Query": "kettle", "query": "no"}', '{"user": "8"}'))
    assert log.frame["query"].to_list() == ["kettle", ""]
    late = read_log(_file(tmp_path, '{"note": 1, "user": "7"}', '{"user": "8", "q": "lamp", "query": "kettle"}'))
    assert late.frame["query"].to_list() == ["", "kettle"]


def test_carried_columns_keep_their_type_and_nested_ones_are_json(tmp_path: Path) -> None:
    log = read_log(
        _file(
            tmp_path,
            '{"user": "7", "query": "a", "n": 1, "ok": true, "x": 0.5, "more": {"b": [1, null]}, "mix": 1}',
            '{"user": "8", "query": "b", "n": 2, "ok": null, "x": 1.5, "more": "text", "mix": "one", "late": 9}',
        )
    )
    assert log.frame.select("n", "ok", "x", "more", "mix", "late").rows() == [
        (1, True, 0.5, '{"b":[1,null]}', "1", None),
        (2, None, 1.5, "text", "one", 9),
    ]
    assert log.frame.schema["n"] == pl.Int64


def test_columns_whose_types_differ_between_blocks_become_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("queryveil.formats.streams.BLOCK_BYTES", 100_000)
    lines = [f'{{"user": "{i}", "query": "kettle", "n": {i if i < 5000 else f"{i}.5"}}}' for i in range(10_000)]
    log = read_log(_file(tmp_path, *lines))
    assert log.n_rows == 10_000
    assert log.frame["n"][0] == "0"
    assert log.frame["n"][-1] == "9999.5"


def test_a_line_that_is_not_json_is_a_bad_row(tmp_path: Path) -> None:
    path = _file(
        tmp_path, '{"user": "7", "query": "a"}', '{"user": "7", "query"', "{} {}", '{"user": "8", "query": "b"}'
    )
    assert _reasons(path) == [(2, "this is not JSON"), (3, "this is not JSON")]
    assert read_log(path, bad_rows="skip").frame["user"].to_list() == ["7", "8"]


def test_a_value_that_is_not_an_object_is_a_bad_row(tmp_path: Path) -> None:
    path = _file(tmp_path, '{"user": "7", "query": "a"}', "[1]", '"text"', "null")
    assert [reason for _, reason in _reasons(path)] == ["this is JSON but not an object"] * 3


@pytest.mark.parametrize("query", ["1", "[]", "{}", "true"])
def test_a_query_that_is_not_text_is_a_bad_row(tmp_path: Path, query: str) -> None:
    path = _file(tmp_path, f'{{"user": "7", "query": {query}}}')
    assert _reasons(path) == [(1, "the query, user or url is not text")]


@pytest.mark.parametrize("user", ['""', "null", '" "'])
def test_a_missing_user_is_a_bad_row(tmp_path: Path, user: str) -> None:
    assert _reasons(_file(tmp_path, f'{{"user": {user}, "query": "a"}}')) == [(1, "the user is missing")]


def test_a_nul_byte_and_a_lone_surrogate_are_bad_rows(tmp_path: Path) -> None:
    path = _file(tmp_path, '{"user": "7", "query": "a\0b"}', '{"user": "7", "query": "\\ud800"}')
    assert _reasons(path) == [(1, "the line has a NUL byte"), (2, "this is not JSON")]


def test_deep_nesting_is_a_bad_row(tmp_path: Path) -> None:
    path = _file(
        tmp_path, '{"user": "7", "query": "a", "x": ' + "[" * 100_000 + "]" * 100_000 + "}", '{"user":"7","query":""}'
    )
    assert _reasons(path) == [(1, "this is not JSON")]


def test_an_object_without_user_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(MissingColumn, match="no column for the user among query, url, x;"):
        read_log(_file(tmp_path, '{"query": "a", "url": null, "x": 1}'))


def test_keys_that_may_be_queries_are_not_listed(tmp_path: Path) -> None:
    with pytest.raises(MissingColumn, match="no column for the user among its 2 columns;"):
        read_log(_file(tmp_path, '{"embarrassing itch": 3, "kettle": 1}'))


def test_latin1_lines_are_read_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes('{"user": "7", "query": "caf\u00e9"}\n'.encode("latin-1"))
    log = read_log(path)
    assert log.frame["query"].item() == "caf\u00e9"
    assert log.reading.n_latin1_rows == 1


def test_a_file_of_blank_lines_is_an_empty_log(tmp_path: Path) -> None:
    assert read_log(_file(tmp_path, "", "")).n_rows == 0


def test_a_role_stays_with_its_column_whatever_keys_come_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("queryveil.formats.streams.BLOCK_BYTES", 70_000)
    lines = ['{"session_id": "s", "query": "kettle"}'] * 3000
    lines += ['{"session_id": "t", "user_id": "u", "query": "pan", "click": "/p"}'] * 3000
    log = read_log(_file(tmp_path, *lines), columns={"url": "click"})
    assert log.frame["user"].unique().sort().to_list() == ["s", "t"]
    assert log.frame["url"].unique().sort().to_list() == [None, "/p"]
    assert log.frame["user_id"].null_count() == 3000


def test_a_named_key_that_no_line_has_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(MissingColumn, match="no column for the url among user, query"):
        read_log(_file(tmp_path, '{"user": "7", "query": "a"}'), columns={"url": "click"})
