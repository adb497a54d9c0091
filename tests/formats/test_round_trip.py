"""What is written is read back the same, in every format, whatever the text."""

import tempfile
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples

from queryveil.data import ROLES, QueryLog
from queryveil.errors import BadInput
from queryveil.formats import Format, Layout, extension, layout_for, read_log, write_log

HOSTILE = [
    '"',
    '""',
    '"a',
    'a"b,c"',
    ",",
    "\t",
    "\n",
    "\r",
    "a\r\n",
    " a ",
    "\ufeff",
    "\0",
    "\\N",
    "NULL",
    "é\u2028x",
    "'",
    "{}",
    "\x85",
]
texts = (
    st.text(max_size=8)
    | st.sampled_from(HOSTILE)
    | st.tuples(st.sampled_from(HOSTILE), st.text(max_size=3)).map("".join)
)
# Ids that a text format would change are refused, so that two users never become one.
ids = texts.map(lambda text: text.translate(dict.fromkeys(map(ord, "\0\t\n\r"))))
users = ids.map(lambda text: "u" + text) | ids.map(lambda text: text + "u")
some_text = texts.filter(bool)
times = st.datetimes(min_value=datetime(1, 1, 1), max_value=datetime(9999, 12, 31))
TIME_FORMATS = [None, "iso", "iso_z", "epoch_s", "epoch_ms", "epoch_us", "%Y-%m-%d", "%Y-%m-%d %H:%M:%S"]


@st.composite
def frames(draw: st.DrawFn, *, times: st.SearchStrategy[datetime] = times, min_size: int = 0) -> pl.DataFrame:
    n = draw(st.integers(min_size, 5))
    values: dict[str, st.SearchStrategy[list[Any]]] = {
        "user": st.lists(users, min_size=n, max_size=n),
        "query": st.lists(texts, min_size=n, max_size=n),
        "time": st.lists(st.none() | times, min_size=n, max_size=n),
        "rank": st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), min_size=n, max_size=n),
        "url": st.lists(st.none() | some_text, min_size=n, max_size=n),
        "shop, \"'": st.lists(st.none() | some_text, min_size=n, max_size=n),
    }
    return pl.DataFrame(
        [pl.Series(name, draw(each), dtype=ROLES.get(name, pl.String())) for name, each in values.items()]
    )


def _back(frame: pl.DataFrame, layout: Layout) -> QueryLog:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"log.{extension(layout)}"
        write_log(QueryLog(frame=frame), path, layout=layout)
        return read_log(path)


@pytest.mark.parametrize(("name", "user"), [("l.csv", "a\0b"), ("l.tsv", "a\tb"), ("l.log", "a\nb")])
def test_ids_that_a_format_would_change_are_refused(tmp_path: Path, name: str, user: str) -> None:
    log = QueryLog.from_frame({"user": [user, user.translate({0: " ", 9: " ", 10: " "})], "query": ["red", "red"]})
    with pytest.raises(BadInput, match="give users fresh ids"):
        write_log(log, tmp_path / name, layout=layout_for(tmp_path / name))


def _blanked(frame: pl.DataFrame, unwanted: str) -> pl.DataFrame:
    return frame.with_columns(pl.col(pl.String).str.replace_all(f"[{unwanted}]", " "))


@examples(40)
@given(frames(), st.sampled_from(TIME_FORMATS))
def test_csv_comes_back_the_same(frame: pl.DataFrame, time_format: str | None) -> None:
    log = _back(frame, Layout(format=Format.CSV, time_format=time_format))
    assert log.frame.equals(_blanked(frame, "\0"))


@examples(40)
@given(frames(), st.sampled_from(TIME_FORMATS))
def test_tsv_comes_back_with_blanks_for_what_it_cannot_hold(frame: pl.DataFrame, time_format: str | None) -> None:
    log = _back(frame, Layout(format=Format.TSV, time_format=time_format))
    assert log.frame.equals(_blanked(frame, "\0\t\n\r"))


@examples(40)
@given(frames(), st.booleans())
def test_aol_comes_back_with_blanks_for_what_it_cannot_hold(frame: pl.DataFrame, has_header: bool) -> None:
    frame = frame.select("user", "query", "time", "rank", "url")
    layout = replace(layout_for(Path("log.tsv")), has_header=has_header)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.tsv"
        write_log(QueryLog(frame=frame), path, layout=layout)
        assert read_log(path, format=Format.AOL).frame.equals(_blanked(frame, "\0\t\n\r"))


@examples(40)
@given(frames(times=times.map(lambda time: time.replace(microsecond=0))))
def test_excite_comes_back_with_blanks_for_what_it_cannot_hold(frame: pl.DataFrame) -> None:
    frame = frame.select("user", "query", "time")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.log"
        write_log(QueryLog(frame=frame), path, layout=layout_for(path))
        assert read_log(path, format=Format.EXCITE).frame.equals(_blanked(frame, "\0\t\n\r"))


@examples(40)
@given(frames(min_size=1), st.sampled_from(TIME_FORMATS))
def test_jsonl_comes_back_the_same(frame: pl.DataFrame, time_format: str | None) -> None:
    log = _back(frame, Layout(format=Format.JSONL, time_format=time_format))
    nothing = [name for name in frame.columns if name not in ROLES and frame[name].null_count() == frame.height]
    assert log.frame.drop(nothing).equals(frame.drop(nothing))


@examples(40)
@given(frames())
def test_parquet_comes_back_the_same(frame: pl.DataFrame) -> None:
    assert _back(frame, Layout(format=Format.PARQUET)).frame.equals(frame)


@examples(40)
@given(frames(min_size=1), st.sampled_from(TIME_FORMATS))
def test_ubi_comes_back_the_same(frame: pl.DataFrame, time_format: str | None) -> None:
    frame = frame.select("user", "query", "time", "rank", "url")
    log = _back(frame, Layout(format=Format.UBI, time_format=time_format))
    assert log.layout.format is Format.UBI
    # A row is a query and its click.
    assert log.n_rows == frame.height
    assert log.with_clicks_as_rows().frame.drop("search").equals(frame)


@pytest.mark.parametrize(
    "name", ["l.tsv.gz", "l.tsv.bz2", "l.tsv.zst", "l.csv.gz", "l.jsonl.zst", "l.tsv", "l.parquet"]
)
@examples(20)
@given(frame=frames(min_size=1))
def test_the_same_log_gives_the_same_bytes(name: str, frame: pl.DataFrame) -> None:
    with tempfile.TemporaryDirectory() as folder:
        one, two = Path(folder) / name, Path(folder) / f"another-{name}"
        for path in (one, two):
            write_log(QueryLog(frame=frame), path, layout=layout_for(path))
        assert one.read_bytes() == two.read_bytes()
        assert read_log(one).n_rows == frame.height


@examples(40)
@given(frames(min_size=1))
def test_a_log_that_was_read_is_written_as_it_was(frame: pl.DataFrame) -> None:
    with tempfile.TemporaryDirectory() as folder:
        one, two = Path(folder) / "one.csv", Path(folder) / "two.csv"
        names = {"user": "Who", "query": "What", "time": "When", "rank": "rank", "url": "url"}
        order = ("url", "When", "user", "What", "Who", "rank")
        wide = frame.drop("shop, \"'").with_columns(user_in_file=pl.lit("old"))
        layout = Layout(format=Format.CSV, names=names, columns=order, time_format="iso")
        write_log(QueryLog(frame=wide), one, layout=layout)
        asked = {"user": "Who", "query": "What", "time": "When"}
        log = read_log(one, columns=asked)
        assert log.layout.columns == order
        assert log.columns == wide.columns
        write_log(log, two)
        assert one.read_bytes() == two.read_bytes()
