from pathlib import Path

import pytest

from queryveil.errors import BadFile, BadParameter
from queryveil.formats import Format, Layout, extension, layout_for, read_log


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("AnonID\tQuery\tQueryTime\tItemRank\tClickURL\n", Format.AOL),
        ("7\tkettle\t2006-03-01 07:17:12\t\t\n", Format.AOL),
        ("broken line\n7\tkettle\t2006-03-01 07:17:12\t\t\n", Format.AOL),
        ("A\t970916105432\tkettle\n", Format.EXCITE),
        ("user\tquery\n7\tkettle\n", Format.TSV),
        ("user\tquery\ttime\trank\turl\n7\tkettle\t2006-03-01 07:17:12\t\t\n", Format.TSV),
        ("user\tq\t2006-03-01 07:17:12\t\t\n7\tkettle\t2006-03-01 07:17:12\t\t\n", Format.AOL),
        ('"user","query"\n7,kettle\n', Format.CSV),
        ('{"user": "7", "query": "kettle"}\n', Format.JSONL),
        ('{"index": {"_index": "ubi_queries"}}\n{"client_id": "7", "user_query": "kettle"}\n', Format.UBI),
        ('{"query_id": "1", "client_id": "7", "user_query": "kettle"}\n', Format.UBI),
    ],
)
@pytest.mark.parametrize("name", ["log", "log.txt", "log.log", "log.dat"])
def test_a_format_is_known_by_its_content(tmp_path: Path, text: str, found: Format, name: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    assert read_log(path, bad_rows="skip").layout.format is found


def test_an_unclear_format_is_an_error_that_lists_the_formats(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("some plain words\nand more of them\n")
    with pytest.raises(BadFile, match="give --format: aol, excite, csv, tsv, jsonl, parquet, ubi") as caught:
        read_log(path)
    assert "plain" not in str(caught.value)


def test_a_given_format_is_obeyed(tmp_path: Path) -> None:
    path = tmp_path / "log.tsv"
    path.write_text("user,query\n7,kettle\n")
    assert read_log(path, format="csv").n_rows == 1


def test_named_columns_mean_a_file_with_names(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_text("AnonID\tQuery\tQueryTime\tItemRank\tClickURL\n7\tkettle\t\t\t9\n")
    log = read_log(path, columns={"user": "ClickURL"})
    assert log.layout.format is Format.TSV
    assert log.frame["user"].item() == "9"


def test_unknown_choices_list_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(BadParameter, match="format must be one of aol, excite"):
        read_log(tmp_path / "log", format="excel")
    with pytest.raises(BadParameter, match="bad_rows must be one of fail, skip"):
        read_log(tmp_path / "log", bad_rows="ignore")


@pytest.mark.parametrize(
    ("name", "layout_format", "compression", "ending"),
    [
        ("log", Format.AOL, "", "tsv"),
        ("log.tsv", Format.AOL, "", "tsv"),
        ("log.TSV.GZ", Format.AOL, "gz", "tsv.gz"),
        ("log.csv.bz2", Format.CSV, "bz2", "csv.bz2"),
        ("log.jsonl.zst", Format.JSONL, "zst", "jsonl.zst"),
        ("log.ndjson", Format.JSONL, "", "jsonl"),
        ("log.parquet", Format.PARQUET, "", "parquet"),
        ("2006.05.log", Format.EXCITE, "", "log"),
    ],
)
def test_the_ending_of_a_new_file_names_its_layout(
    name: str, layout_format: Format, compression: str, ending: str
) -> None:
    layout = layout_for(Path("folder") / name)
    assert (layout.format, layout.compression) == (layout_format, compression)
    assert extension(layout) == ending


@pytest.mark.parametrize("name", ["log.xlsx", "log.parquet.gz", "log.xlsx.gz"])
def test_an_unknown_ending_is_an_error_that_lists_the_known_ones(name: str) -> None:
    with pytest.raises(BadParameter, match=r"one of .tsv, .csv, .jsonl, .ndjson, .parquet, .log .*.gz, .bz2, .zst"):
        layout_for(Path(name))


def test_a_ubi_release_is_ndjson() -> None:
    assert extension(Layout(format=Format.UBI, compression="gz")) == "ndjson.gz"


def test_columns_with_names_go_by_them_and_not_by_the_places_that_aol_gives_them(tmp_path: Path) -> None:
    path = tmp_path / "log.tsv"
    path.write_text("query\tuser\ttime\trank\turl\nkettle\t7\t2006-03-01 07:17:12\t2\t/a\n")
    log = read_log(path)
    assert log.frame.select("user", "query", "rank").rows() == [("7", "kettle", 2)]
    assert log.layout.columns == ("query", "user", "time", "rank", "url")
