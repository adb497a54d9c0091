from datetime import datetime
from pathlib import Path

import polars as pl
import pytest

from queryveil.errors import BadRows
from queryveil.formats import Format, read_log

HEADER = "AnonID\tQuery\tQueryTime\tItemRank\tClickURL\n"
ROW = "7\tgreen kettle\t2006-03-01 07:17:12\t3\thttp://kettles.example\n"


def _file(folder: Path, text: str | bytes, name: str = "log.txt") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def _reasons(path: Path) -> list[tuple[int, str]]:
    with pytest.raises(BadRows) as caught:
        read_log(path, format="aol")
    return [(row.line, row.reason) for row in caught.value.rows]


def test_a_file_with_a_header_is_read(tmp_path: Path) -> None:
    log = read_log(_file(tmp_path, HEADER + ROW))
    assert log.layout.format is Format.AOL
    assert log.layout.has_header
    assert log.frame.rows() == [("7", "green kettle", datetime(2006, 3, 1, 7, 17, 12), 3, "http://kettles.example")]


def test_a_file_without_a_header_is_read(tmp_path: Path) -> None:
    log = read_log(_file(tmp_path, ROW + ROW))
    assert log.layout.format is Format.AOL
    assert not log.layout.has_header
    assert log.n_rows == 2


def test_a_header_alone_is_an_empty_log_with_all_columns(tmp_path: Path) -> None:
    log = read_log(_file(tmp_path, HEADER))
    assert log.n_rows == 0
    assert log.columns == ["user", "query", "time", "rank", "url"]
    assert log.frame.schema["time"] == pl.Datetime("us")


def test_an_empty_query_stays_and_other_empty_fields_are_missing(tmp_path: Path) -> None:
    log = read_log(_file(tmp_path, HEADER + "7\t\t\t\t\n"))
    assert log.frame.rows() == [("7", "", None, None, None)]


def test_quotes_have_no_meaning(tmp_path: Path) -> None:
    log = read_log(_file(tmp_path, HEADER + '7\t"green\t2006-03-01 07:17:12\t\t\n8\tket"tle"\t\t\t\n'))
    assert log.frame["query"].to_list() == ['"green', 'ket"tle"']


def test_blanks_around_a_query_stay(tmp_path: Path) -> None:
    assert read_log(_file(tmp_path, HEADER + "7\t green \t\t\t\n")).frame["query"].item() == " green "


def test_a_byte_order_mark_is_dropped(tmp_path: Path) -> None:
    log = read_log(_file(tmp_path, b"\xef\xbb\xbf" + (HEADER + ROW).encode()))
    assert log.n_rows == 1
    assert read_log(_file(tmp_path, b"\xef\xbb\xbf" + ROW.encode())).frame["user"].item() == "7"


def test_windows_line_ends_are_no_part_of_the_last_column(tmp_path: Path) -> None:
    log = read_log(_file(tmp_path, (HEADER + ROW + "8\tx\t\t\t\n").replace("\n", "\r\n")))
    assert log.frame["url"].to_list() == ["http://kettles.example", None]


def test_the_last_newline_may_be_missing(tmp_path: Path) -> None:
    assert read_log(_file(tmp_path, (HEADER + ROW + ROW).removesuffix("\n"))).n_rows == 2


def test_blank_lines_are_passed_over_but_counted_as_lines(tmp_path: Path) -> None:
    path = _file(tmp_path, HEADER + "\n" + ROW + "\r\n" + "8\tx\n")
    assert _reasons(path) == [(5, "expected 5 tab-separated columns, found 2")]


def test_a_line_that_is_not_utf8_is_read_as_latin1_and_counted(tmp_path: Path) -> None:
    rows = "7\tcafé\t\t\t\n".encode("latin-1") + "8\tcafé\t\t\t\n".encode()
    log = read_log(_file(tmp_path, HEADER.encode() + rows))
    assert log.frame["query"].to_list() == ["café", "café"]
    assert log.reading.n_latin1_rows == 1


@pytest.mark.parametrize(
    "broken", [b"\xc0\xaf", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\xe2\x82", b"\x80", b"\xe0\x80\xaf"]
)
def test_bytes_that_only_look_like_utf8_are_latin1(tmp_path: Path, broken: bytes) -> None:
    log = read_log(_file(tmp_path, b"7\tx" + broken + b"\t2006-03-01 07:17:12\t\t\n"))
    assert log.frame["query"].item() == "x" + broken.decode("latin-1")
    assert log.reading.n_latin1_rows == 1


def test_too_few_and_too_many_columns_are_bad_rows(tmp_path: Path) -> None:
    path = _file(tmp_path, HEADER + ROW + "8\tx\t\n" + ROW + "9\tx\t\t\t\t\n")
    assert _reasons(path) == [
        (3, "expected 5 tab-separated columns, found 3"),
        (5, "expected 5 tab-separated columns, found 6"),
    ]


def test_a_missing_user_is_a_bad_row(tmp_path: Path) -> None:
    assert _reasons(_file(tmp_path, HEADER + "\tx\t\t\t\n \tx\t\t\t\n")) == [
        (2, "the user is missing"),
        (3, "the user is missing"),
    ]


@pytest.mark.parametrize(
    "time", ["yesterday", "2006-02-30 00:00:00", "2006-03-01 24:00:00", "2006-03-01 1", "0000-00-00 00:00:00"]
)
def test_an_unreadable_time_is_a_bad_row(tmp_path: Path, time: str) -> None:
    assert _reasons(_file(tmp_path, f"{HEADER}7\tx\t{time}\t\t\n")) == [(2, "the time cannot be read as a time")]


@pytest.mark.parametrize("rank", ["first", "1.5", "99999999999999999999"])
def test_an_unreadable_rank_is_a_bad_row(tmp_path: Path, rank: str) -> None:
    assert _reasons(_file(tmp_path, f"{HEADER}7\tx\t\t{rank}\t\n")) == [
        (2, "the rank cannot be read as a whole number")
    ]


def test_a_rank_written_with_a_point_is_read(tmp_path: Path) -> None:
    assert read_log(_file(tmp_path, f"{HEADER}7\tx\t\t3.0\t\n7\tx\t\t4\t\n")).frame["rank"].to_list() == [3, 4]


def test_a_nul_byte_is_a_bad_row(tmp_path: Path) -> None:
    assert _reasons(_file(tmp_path, f"{HEADER}7\tx\0y\t\t\t\n")) == [(2, "the line has a NUL byte")]


def test_a_line_over_a_mebibyte_is_a_bad_row_and_the_next_line_is_read(tmp_path: Path) -> None:
    path = _file(tmp_path, HEADER + "7\t" + "x" * (1 << 20) + "\t\t\t\n" + ROW)
    assert _reasons(path) == [(2, "the line is longer than 1 MiB")]
    log = read_log(path, bad_rows="skip")
    assert log.n_rows == 1
    assert log.reading.n_bad_rows_skipped == 1


@pytest.mark.slow
def test_a_line_of_100_megabytes_is_one_bad_row_whatever_blocks_it_spans(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    with path.open("wb") as file:
        file.write((HEADER + ROW).encode() + b"7\t")
        for _ in range(100):
            file.write(b"x" * 1_000_000)
        file.write(b"\t\t\t\n" + ROW.encode() + b"8\tx\n")
    assert _reasons(path) == [(3, "the line is longer than 1 MiB"), (5, "expected 5 tab-separated columns, found 2")]
    assert read_log(path, bad_rows="skip").n_rows == 2


def test_bad_rows_are_left_out_and_counted_when_asked(tmp_path: Path) -> None:
    path = _file(tmp_path, HEADER + ROW + "bad\n" + ROW + "\tx\t\t\t\n")
    log = read_log(path, bad_rows="skip")
    assert log.n_rows == 2
    assert log.reading.n_bad_rows_skipped == 2


def test_all_bad_rows_are_counted_and_the_first_ten_are_named(tmp_path: Path) -> None:
    with pytest.raises(BadRows) as caught:
        read_log(_file(tmp_path, HEADER + "bad\n" * 25))
    assert [row.line for row in caught.value.rows] == list(range(2, 12))
    assert caught.value.n_total == 25
    assert "and 15 more" in str(caught.value)


def test_rows_are_whole_and_lines_right_across_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [f"{i}\tquery {i}\t2006-03-01 07:17:12\t{i}\thttp://{i}.example" for i in range(5000)]
    rows[3333] = "bad"
    path = _file(tmp_path, HEADER + "\n".join(rows))
    monkeypatch.setattr("queryveil.formats.streams.BLOCK_BYTES", 70_000)
    log = read_log(path, bad_rows="skip")
    assert log.frame["rank"].to_list() == [i for i in range(5000) if i != 3333]
    assert _reasons(path) == [(3335, "expected 5 tab-separated columns, found 1")]
