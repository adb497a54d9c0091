import gzip
from datetime import datetime
from pathlib import Path

import msgspec
import polars as pl
import pytest

from queryveil.data import QueryLog
from queryveil.errors import BadFile
from queryveil.formats import Format, Layout, layout_for, read_log, write_log

LOG = QueryLog.from_frame(
    {
        "user": ["7", "7"],
        "query": ["kettle", "tea\tpot"],
        "time": [datetime(2006, 3, 1, 7, 17, 12), None],
        "rank": [3, None],
        "url": ["http://kettles.example", None],
    }
)


def _written(folder: Path, log: QueryLog, layout: Layout) -> str:
    path = folder / "out"
    write_log(log, path, layout=layout)
    return path.read_text(encoding="utf-8")


def test_aol_has_its_five_columns_even_where_the_log_lost_them(tmp_path: Path) -> None:
    log = LOG.with_frame(LOG.frame.select("user", "query"))
    assert _written(tmp_path, log, layout_for(Path("x.tsv"))) == (
        "AnonID\tQuery\tQueryTime\tItemRank\tClickURL\n7\tkettle\t\t\t\n7\ttea pot\t\t\t\n"
    )


def test_excite_has_its_three_columns_even_where_the_log_lost_them(tmp_path: Path) -> None:
    log = LOG.with_frame(LOG.frame.select("user", "query", "url"))
    assert _written(tmp_path, log, layout_for(Path("x.log"))) == "7\t\tkettle\n7\t\ttea pot\n"


def test_csv_has_the_columns_of_the_log_in_the_order_of_the_file(tmp_path: Path) -> None:
    layout = Layout(
        format=Format.CSV, names={"user": "Who", "query": "What"}, columns=("Gone", "What", "Who"), time_format="iso"
    )
    log = LOG.with_frame(LOG.frame.select("user", "query", "time"))
    assert _written(tmp_path, log, layout) == "What,Who,time\nkettle,7,2006-03-01T07:17:12\ntea\tpot,7,\n"


def test_a_column_named_as_one_of_the_file_does_not_take_its_place(tmp_path: Path) -> None:
    log = LOG.with_frame(LOG.frame.select("user", "query", pl.lit("x").alias("Who")))
    layout = Layout(format=Format.CSV, names={"user": "Who", "query": "query"}, columns=("Who", "query"))
    assert _written(tmp_path, log, layout).splitlines()[0] == "Who,query,Who_in_log"


@pytest.mark.parametrize(
    ("time_format", "text"),
    [
        ("iso", "2006-03-01T07:17:12"),
        ("iso_z", "2006-03-01T07:17:12Z"),
        ("epoch_s", "1141197432"),
        ("epoch_ms", "1141197432000"),
        ("%Y-%m-%d", "2006-03-01 07:17:12"),
        (None, "2006-03-01 07:17:12"),
    ],
)
def test_times_are_written_as_they_were_unless_that_loses_something(
    tmp_path: Path, time_format: str, text: str
) -> None:
    log = LOG.with_frame(LOG.frame.head(1).select("user", "query", "time"))
    written = _written(tmp_path, log, Layout(format=Format.CSV, time_format=time_format))
    assert written == f"user,query,time\n7,kettle,{text}\n"


def test_ubi_has_fresh_running_ids_and_clicks_only_where_there_were_some(tmp_path: Path) -> None:
    lines = [msgspec.json.decode(line) for line in _written(tmp_path, LOG, Layout(format=Format.UBI)).splitlines()]
    assert [line["index"]["_index"] for line in lines[::2]] == ["ubi_queries", "ubi_events", "ubi_queries"]
    assert [line["query_id"] for line in lines[1::2]] == ["1", "1", "2"]


def test_ubi_without_urls_has_no_events(tmp_path: Path) -> None:
    log = LOG.with_frame(LOG.frame.select("user", "query"))
    assert "ubi_events" not in _written(tmp_path, log, Layout(format=Format.UBI))


def test_gzip_files_carry_neither_time_nor_name(tmp_path: Path) -> None:
    path = tmp_path / "log.tsv.gz"
    write_log(LOG, path, layout=layout_for(path))
    packed = path.read_bytes()
    assert packed[3] == 0
    assert packed[4:8] == bytes(4)
    assert gzip.decompress(packed).startswith(b"AnonID\t")


@pytest.mark.parametrize("name", ["log.tsv", "log.csv", "log.jsonl", "log.parquet", "log.log", "log.jsonl.gz"])
def test_a_log_without_rows_can_be_read_back(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    write_log(LOG.with_frame(LOG.frame.clear()), path, layout=layout_for(path))
    assert read_log(path).n_rows == 0


def test_an_aol_log_without_rows_gets_a_header_to_be_known_by(tmp_path: Path) -> None:
    path = tmp_path / "log.tsv"
    write_log(LOG.with_frame(LOG.frame.clear()), path, layout=Layout(format=Format.AOL, has_header=False))
    assert read_log(path).layout.format is Format.AOL


def test_nested_columns_become_json_in_csv(tmp_path: Path) -> None:
    log = LOG.with_frame(pl.DataFrame({"user": ["7"], "query": ["a"], "tags": [["x", "y"]]}))
    assert _written(tmp_path, log, Layout(format=Format.CSV)) == 'user,query,tags\n7,a,"[""x"",""y""]"\n'


def test_a_log_of_many_slices_has_one_header(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("queryveil.formats.write._SLICE_ROWS", 1)
    path = tmp_path / "log.csv"
    write_log(LOG, path, layout=layout_for(path))
    assert read_log(path).frame.equals(LOG.frame)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("layout_format", list(Format))
def test_a_full_disk_is_a_clear_error(layout_format: Format) -> None:
    with pytest.raises(BadFile, match="could not be written: no space left on device; free space"):
        write_log(LOG, Path("/dev/full"), layout=Layout(format=layout_format))


def test_a_folder_that_is_not_there_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="could not be written: no such file or directory"):
        write_log(LOG, tmp_path / "nowhere" / "log.tsv")


def test_text_in_categories_is_cleaned_as_any_other(tmp_path: Path) -> None:
    log = LOG.with_frame(LOG.frame.select("user", "query", shop=pl.lit("a\tb", dtype=pl.Categorical)))
    written = _written(tmp_path, log, Layout(format=Format.TSV))
    assert written == "user\tquery\tshop\n7\tkettle\ta b\n7\ttea pot\ta b\n"
