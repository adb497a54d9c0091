from datetime import datetime
from pathlib import Path

import pytest

from queryveil.errors import BadFile, BadParameter, BadRows, MissingColumn
from queryveil.formats import Format, read_log


def _file(folder: Path, text: str, name: str = "log.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode())
    return path


def _reasons(path: Path) -> list[tuple[int, str]]:
    with pytest.raises(BadRows) as caught:
        read_log(path)
    return [(row.line, row.reason) for row in caught.value.rows]


def test_roles_are_found_by_well_known_names_whatever_the_case(tmp_path: Path) -> None:
    log = read_log(_file(tmp_path, "Timestamp,Search_Term,CLIENT_ID\n2024-05-01,kettle,7\n"))
    assert log.frame.rows() == [("7", "kettle", datetime(2024, 5, 1))]
    assert log.layout.names == {"user": "CLIENT_ID", "query": "Search_Term", "time": "Timestamp"}
    assert log.layout.columns == ("Timestamp", "Search_Term", "CLIENT_ID")


def test_roles_can_be_named(tmp_path: Path) -> None:
    log = read_log(_file(tmp_path, "who,what,when\n7,kettle,2024-05-01\n"), columns={"user": "who", "query": "what"})
    assert log.frame.rows() == [("7", "kettle", "2024-05-01")]
    assert log.columns == ["user", "query", "when"]


def test_other_columns_are_carried_along_as_text(tmp_path: Path) -> None:
    log = read_log(_file(tmp_path, "shop,user,query,n\nnorth,7,kettle,1\n,8,pan,\n"))
    assert log.columns == ["user", "query", "shop", "n"]
    assert log.frame["shop"].to_list() == ["north", None]
    assert log.frame["n"].to_list() == ["1", None]


def test_a_carried_column_with_the_name_of_a_role_is_renamed(tmp_path: Path) -> None:
    log = read_log(_file(tmp_path, "user,query,client\nold,kettle,7\n"), columns={"user": "client"})
    assert log.frame.to_dicts() == [{"user": "7", "query": "kettle", "user_in_file": "old"}]


def test_an_unknown_role_is_refused_with_the_roles_there_are(tmp_path: Path) -> None:
    with pytest.raises(BadParameter, match="one of user, query, time, rank, url"):
        read_log(_file(tmp_path, "user,query\n7,kettle\n"), columns={"person": "user"})


def test_one_column_cannot_play_two_roles(tmp_path: Path) -> None:
    with pytest.raises(BadParameter, match="different column"):
        read_log(_file(tmp_path, "a,b\n7,kettle\n"), columns={"user": "a", "query": "a"})


def test_a_named_column_that_the_file_lacks_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(MissingColumn, match="--columns user=NAME"):
        read_log(_file(tmp_path, "user,query\n7,kettle\n"), columns={"user": "who"})


def test_a_file_without_a_user_column_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(MissingColumn, match="no column for the user among query, time;"):
        read_log(_file(tmp_path, "query,time\nkettle,2024-05-01\n"))


def test_a_first_row_without_header_is_not_quoted_in_the_error(tmp_path: Path) -> None:
    with pytest.raises(MissingColumn) as caught:
        read_log(_file(tmp_path, "u77,embarrassing itch,2024-05-01\n"))
    assert "itch" not in str(caught.value)
    assert "u77" not in str(caught.value)


def test_columns_are_refused_where_the_format_fixes_them(tmp_path: Path) -> None:
    with pytest.raises(BadParameter, match="left out for aol"):
        read_log(_file(tmp_path, "user,query\n"), format="aol", columns={"user": "user"})


def test_two_columns_of_one_name_are_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="the same name"):
        read_log(_file(tmp_path, "user,query,user\n7,kettle,8\n"))


def test_quoted_fields_hold_commas_quotes_and_line_ends(tmp_path: Path) -> None:
    log = read_log(_file(tmp_path, 'user,query\n7,"a, ""b""\nc"\r\n"8",""\n9,d"e"f\n'))
    assert log.frame.rows() == [("7", 'a, "b"\nc'), ("8", ""), ("9", 'd"e"f')]


def test_line_numbers_count_the_lines_inside_quotes(tmp_path: Path) -> None:
    path = _file(tmp_path, 'user,query\n7,"a\nb\nc"\n8\n')
    assert _reasons(path) == [(5, "expected 2 comma-separated columns, found 1")]


def test_a_quote_never_closed_is_one_bad_row_and_the_lines_behind_it_are_read(tmp_path: Path) -> None:
    path = _file(tmp_path, 'user,query\n7,"kettle\n8,pan\n9,pot\n')
    assert _reasons(path) == [(2, "a quote is opened and never closed")]
    assert read_log(path, bad_rows="skip").frame["user"].to_list() == ["8", "9"]


def test_a_quote_never_closed_in_a_long_file_swallows_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("queryveil.formats.streams.BLOCK_BYTES", 100_000)
    path = _file(tmp_path, 'user,query\n7,"kettle\n' + "8,a pan of good size\n" * 100_000)
    assert _reasons(path) == [(2, "a quote is opened and never closed")]
    assert read_log(path, bad_rows="skip").n_rows == 100_000


def test_text_behind_a_closing_quote_is_a_bad_row(tmp_path: Path) -> None:
    path = _file(tmp_path, 'user,query\n7,"green" kettle\n8,pan\n')
    assert [line for line, _ in _reasons(path)] == [2]
    assert read_log(path, bad_rows="skip").n_rows == 1


def test_latin1_and_quotes_go_together(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes('user,query\n7,"caf\u00e9 ""a"", b"\n'.encode("latin-1"))
    log = read_log(path)
    assert log.frame["query"].item() == 'caf\u00e9 "a", b'
    assert log.reading.n_latin1_rows == 1


def test_a_header_alone_is_an_empty_log(tmp_path: Path) -> None:
    log = read_log(_file(tmp_path, "user,query,time,shop\n"))
    assert log.n_rows == 0
    assert log.columns == ["user", "query", "time", "shop"]


def test_a_file_of_blank_lines_has_no_header(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="no header"):
        read_log(_file(tmp_path, "\n\n\n"))


def test_a_header_line_too_long_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="no header"):
        read_log(_file(tmp_path, "x" * 3_000_000))


def test_tsv_with_a_header_is_read_without_quotes(tmp_path: Path) -> None:
    log = read_log(_file(tmp_path, 'user\tquery\n7\t"a, b\n', name="log.tsv"))
    assert log.layout.format is Format.TSV
    assert log.frame.rows() == [("7", '"a, b')]


@pytest.mark.parametrize("rows", ["", "0,u1,red wine\n1,u2,tea\n"])
def test_a_column_without_a_name_such_as_the_index_of_pandas_is_read(tmp_path: Path, rows: str) -> None:
    path = tmp_path / "log.csv"
    path.write_text(",user,query\n" + rows)
    log = read_log(path)
    assert log.columns == ["user", "query", ""]
    assert log.n_rows == rows.count("\n")
