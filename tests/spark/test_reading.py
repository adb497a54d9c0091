from __future__ import annotations

from collections.abc import Iterator
from datetime import time
from pathlib import Path

import polars as pl
import pytest

from queryveil import read_log
from queryveil.errors import BadFile, BadInput, BadParameter, BadRows, EngineFailed, MissingColumn, NotYet
from queryveil.spark import Spark
from queryveil.spark._executors import to_polars

AOL_HEADER = "AnonID\tQuery\tQueryTime\tItemRank\tClickURL\n"


def rows(engine: Spark, source: str | list[str], **how: object) -> pl.DataFrame:
    log = engine.read_log(source, **how)  # type: ignore[arg-type]
    frame = to_polars(log.frame.toArrow())
    assert log.n_rows == frame.height
    return frame.sort(frame.columns)


@pytest.fixture
def small_blocks(engine: Spark) -> Iterator[None]:
    """Let Spark cut files into pieces of a few lines."""
    before = engine.session.conf.get("spark.sql.files.maxPartitionBytes")
    engine.session.conf.set("spark.sql.files.maxPartitionBytes", "500")
    yield
    engine.session.conf.set("spark.sql.files.maxPartitionBytes", str(before))


def aol(n: int, *, begin: int = 0) -> str:
    return "".join(f"{i}\tgranny's kettle {i}\t2006-03-{1 + i % 28:02d} 10:00:00\t\t\n" for i in range(begin, n))


FILES = {
    "log.tsv": AOL_HEADER + aol(40) + '7\t"open quote\t2006-03-01 00:00:01\t3\thttp://a.example\n',
    "bare.txt": aol(40),
    "log.csv": 'uid,q,when\n1,"red, ""big"" kettle",2024-01-01 10:00:00\n2,"two\nlines",2024-01-02 10:00:00\n',
    "log.jsonl": "".join(f'{{"user": "u{i}", "query": "tea {i}", "shop": {i}}}\n' for i in range(40)),
    "blank first.tsv": "\n" + AOL_HEADER + aol(40),
    "sparse.jsonl": "".join(
        f'{{"user": "u{i}", "query": "tea", "shop": {i if i % 9 == 4 else "null"}}}\n' for i in range(60)
    ),
    "mixed.jsonl": "".join(
        f'{{"user": "u{i}", "query": "tea", "shop": {i if i < 30 else "1.0"}, "code": {i if i < 30 else "true"}}}\n'
        for i in range(60)
    ),
    "log.log": "A1\t970916105432\tnew kettle\nA2\t970916105433\t\n",
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.usefixtures("small_blocks")
def test_a_file_is_read_as_one_machine_reads_it(engine: Spark, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(FILES[name])
    how = {"columns": {"user": "uid", "query": "q", "time": "when"}} if name == "log.csv" else {}
    here = read_log(path, **how)  # type: ignore[arg-type]
    log = engine.read_log(str(path), **how)  # type: ignore[arg-type]
    there = to_polars(log.frame.toArrow())
    assert there.sort(there.columns).equals(here.frame.select(there.columns).sort(there.columns))
    assert (log.layout, log.reading, log.n_rows, log.n_users) == (here.layout, here.reading, here.n_rows, here.n_users)


def test_parquet_with_other_types_is_read_as_one_machine_reads_it(engine: Spark, tmp_path: Path) -> None:
    frame = pl.DataFrame({"client_id": [1, 2, 2], "q": ["Red", None, "blue"], "shop": [1.5, 2.5, None]})
    frame = frame.with_columns(ts=pl.Series(["2024-01-01 10:00:00", None, "2024-01-03 00:00:00"]))
    frame.write_parquet(tmp_path / "log.parquet")
    here, there = read_log(tmp_path / "log.parquet"), rows(engine, str(tmp_path / "log.parquet"))
    assert there.equals(here.frame.select(there.columns).sort(there.columns))


@pytest.mark.usefixtures("small_blocks")
def test_of_aol_files_some_may_have_a_header(engine: Spark, tmp_path: Path) -> None:
    (tmp_path / "part-0.tsv").write_text(AOL_HEADER + aol(20))
    (tmp_path / "part-1.tsv").write_text(aol(40, begin=20))
    paths = [str(tmp_path / f"part-{number}.tsv") for number in (0, 1)]
    for given in (paths, paths[::-1]):
        here, there = read_log(given), rows(engine, given)
        assert there.equals(here.frame.select(there.columns).sort(there.columns))


def test_a_file_of_blank_transactions_has_no_rows(engine: Spark, tmp_path: Path) -> None:
    (tmp_path / "none.dat").write_text("\n")
    assert engine.read_log(str(tmp_path / "none.dat"), format="transactions").n_rows == 0


def test_columns_that_differ_only_in_capitals_are_refused(engine: Spark, tmp_path: Path) -> None:
    columns = {"user": "id", "query": "Cleaned"}
    (tmp_path / "log.jsonl").write_text('{"id": "1", "Query": "Tea!", "Cleaned": "tea"}\n')
    with pytest.raises(BadInput, match="differ only in capitals"):
        engine.read_log(str(tmp_path / "log.jsonl"), columns=columns)
    pl.DataFrame({"id": ["1"], "Query": ["Tea!"], "Cleaned": ["tea"]}).write_parquet(tmp_path / "log.parquet")
    with pytest.raises(BadFile, match=r"log\.parquet: .*differ only in capitals"):
        engine.read_log(str(tmp_path / "log.parquet"), columns=columns)
    pl.DataFrame({"user": ["1"], "Query": ["Tea!"], "query": ["tea"]}).write_parquet(tmp_path / "two.parquet")
    with pytest.raises(BadFile, match="differ only in capitals"):
        engine.read_log(str(tmp_path / "two.parquet"))


def test_a_folder_and_a_glob_and_a_list_are_the_same_files(engine: Spark, tmp_path: Path) -> None:
    for part in range(3):
        (tmp_path / f"part-{part}.tsv").write_text(AOL_HEADER + aol(10 * part + 10, begin=10 * part))
    folder = rows(engine, str(tmp_path))
    assert folder.height == 30
    assert rows(engine, str(tmp_path / "part-*.tsv")).equals(folder)
    assert rows(engine, [str(path) for path in sorted(tmp_path.iterdir())]).equals(folder)


@pytest.mark.usefixtures("small_blocks")
def test_bad_rows_are_told_by_file_and_line_also_behind_the_first_block(engine: Spark, tmp_path: Path) -> None:
    lines = (AOL_HEADER + aol(30)).splitlines()
    lines[17], lines[25] = "no tabs here", "8\tkettle\tyesterday\t\t"
    (tmp_path / "log.tsv").write_text("\n".join(lines))
    with pytest.raises(BadRows) as there:
        engine.read_log(str(tmp_path / "log.tsv"))
    with pytest.raises(BadRows) as here:
        read_log(tmp_path / "log.tsv")
    assert str(there.value) == str(here.value)
    log = engine.read_log(str(tmp_path / "log.tsv"), bad_rows="skip")
    assert (log.n_rows, log.reading.n_bad_rows_skipped) == (28, 2)


@pytest.mark.usefixtures("small_blocks")
def test_bytes_that_are_not_utf8_are_read_as_latin1_and_counted(engine: Spark, tmp_path: Path) -> None:
    lines = [line.encode() for line in (AOL_HEADER + aol(20)).splitlines(keepends=True)]
    lines[9] = "9\tcafé crème\t2006-03-01 10:00:00\t\t\n".encode("latin-1")
    (tmp_path / "log.tsv").write_bytes(b"\xef\xbb\xbf" + b"".join(lines))
    log = engine.read_log(str(tmp_path / "log.tsv"))
    assert log.reading.n_latin1_rows == 1
    assert "café crème" in to_polars(log.frame.toArrow())["query"].to_list()


@pytest.mark.parametrize("ending", ["gz", "bz2", "zst"])
def test_compressed_files_are_read(engine: Spark, tmp_path: Path, ending: str) -> None:
    from queryveil import write_log
    from queryveil.formats.layouts import layout_for

    (tmp_path / "log.tsv").write_text(AOL_HEADER + aol(30))
    packed = tmp_path / f"log.tsv.{ending}"
    write_log(read_log(tmp_path / "log.tsv"), packed, layout=layout_for(packed))
    assert rows(engine, str(packed)).equals(rows(engine, str(tmp_path / "log.tsv")))


@pytest.mark.parametrize(
    ("source", "error"),
    [("nothing-there.tsv", BadFile), ("-", BadParameter), ("no-user.csv", MissingColumn), ("broken.parquet", BadFile)],
)
def test_what_cannot_be_read_is_told_in_one_line(
    engine: Spark, tmp_path: Path, source: str, error: type[Exception]
) -> None:
    (tmp_path / "no-user.csv").write_text("a,b\n1,2\n")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and nothing else")
    with pytest.raises(error) as told:
        engine.read_log(source if source == "-" else str(tmp_path / source))
    assert "\n" not in str(told.value)


def test_rows_of_parquet_without_a_user_are_counted(engine: Spark, tmp_path: Path) -> None:
    pl.DataFrame({"user": ["a", None, " "], "query": ["x", "y", "z"]}).write_parquet(tmp_path / "log.parquet")
    with pytest.raises(BadFile, match="2 rows without a user"):
        engine.read_log(str(tmp_path / "log.parquet"))
    log = engine.read_log(str(tmp_path / "log.parquet"), bad_rows="skip")
    assert (log.n_rows, log.reading.n_bad_rows_skipped) == (1, 2)


def test_a_column_with_a_dot_in_its_name_is_refused_in_one_line(engine: Spark, tmp_path: Path) -> None:
    frame = pl.DataFrame({"user": ["a"], "query": ["x"], "geo.city": ["y"]})
    frame.write_parquet(tmp_path / "log.parquet")
    frame.write_csv(tmp_path / "log.csv")
    for name in ("log.parquet", "log.csv"):
        with pytest.raises(BadInput, match="dot in its name"):
            engine.read_log(str(tmp_path / name))


def test_files_with_other_columns_are_refused(engine: Spark, tmp_path: Path) -> None:
    pl.DataFrame({"user": ["a"], "query": ["x"]}).write_parquet(tmp_path / "1.parquet")
    pl.DataFrame({"user": ["a"], "q": ["x"]}).write_parquet(tmp_path / "2.parquet")
    with pytest.raises(BadFile, match=r"2\.parquet: its columns differ"):
        engine.read_log(str(tmp_path / "*.parquet"))


def test_of_several_parquet_files_the_broken_one_is_named(engine: Spark, tmp_path: Path) -> None:
    pl.DataFrame({"user": ["a"], "query": ["x"]}).write_parquet(tmp_path / "1.parquet")
    (tmp_path / "2.parquet").write_bytes((tmp_path / "1.parquet").read_bytes()[:-9])
    with pytest.raises(BadFile, match=r"2\.parquet: this is not a whole Parquet file"):
        engine.read_log(str(tmp_path / "*.parquet"))


def test_a_parquet_type_that_spark_does_not_know_is_told_in_one_line(engine: Spark, tmp_path: Path) -> None:
    pl.DataFrame({"user": ["a"], "query": ["x"], "clock": [time(7, 30)]}).write_parquet(tmp_path / "log.parquet")
    with pytest.raises(BadFile, match="this is not a whole Parquet file of flat columns"):
        engine.read_log(str(tmp_path / "log.parquet"))


def test_opensearch_logs_are_not_yet_read(engine: Spark, tmp_path: Path) -> None:
    (tmp_path / "ubi.ndjson").write_text("{}\n")
    with pytest.raises(NotYet, match="leave out --engine"):
        engine.read_log(str(tmp_path / "ubi.ndjson"), format="ubi")


def test_files_of_different_formats_are_not_read_as_one(engine: Spark, tmp_path: Path) -> None:
    (tmp_path / "1.tsv").write_text(AOL_HEADER + aol(3))
    (tmp_path / "2.jsonl").write_text('{"user": "a", "query": "x"}\n')
    with pytest.raises(BadFile, match=r"^2\.jsonl: this file is jsonl, the first was aol; read them one by one"):
        engine.read_log([str(tmp_path / "1.tsv"), str(tmp_path / "2.jsonl")])


def test_a_file_without_a_byte_and_a_folder_without_a_file_are_told(engine: Spark, tmp_path: Path) -> None:
    (tmp_path / "empty.tsv").write_text("")
    (tmp_path / "nothing").mkdir()
    for name in ("empty.tsv", "nothing"):
        with pytest.raises(BadFile, match="there is nothing in it"):
            engine.read_log(str(tmp_path / name))


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("s3a://logs/x.parquet", "no file system for such a path"),
        ("nobody://logs/x.tsv", "no file system for such a path"),
        ("hdfs://127.0.0.1:1/x.parquet", "nobody answers"),
    ],
)
def test_a_place_that_spark_cannot_reach_is_told_with_a_way_out(engine: Spark, path: str, why: str) -> None:
    engine.session.sparkContext._jsc.hadoopConfiguration().set("ipc.client.connect.max.retries", "0")
    with pytest.raises(EngineFailed, match=why):
        engine.read_log(path)
