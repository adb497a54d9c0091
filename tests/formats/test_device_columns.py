"""A device, a country and a language are columns of any file, whatever they hold, and leave only when asked for."""

from pathlib import Path

import polars as pl
import pytest

from queryveil.formats import read_log, write_log
from queryveil.methods import Km
from queryveil.release import ColumnPolicy

ROWS = {"user": ["a", "b", "c"], "query": ["tea"] * 3}


@pytest.mark.parametrize(
    ("told", "text"),
    [
        (pl.Series([1, 2, None]), ["1", "2", None]),
        (pl.Series(["de", "", None]), ["de", None, None]),
        (pl.Series([["a"], ["b", "c"], None]), ['["a"]', '["b","c"]', None]),
        (pl.Series(["de", "fr", None], dtype=pl.Categorical), ["de", "fr", None]),
    ],
    ids=["numbers", "texts", "lists", "categories"],
)
@pytest.mark.parametrize("ending", ["parquet", "jsonl"])
def test_what_tells_a_device_is_text(tmp_path: Path, told: pl.Series, text: list[str | None], ending: str) -> None:
    frame, path = pl.DataFrame({**ROWS, "device": told}), tmp_path / f"log.{ending}"
    if ending == "parquet":
        frame.write_parquet(path)
    else:
        frame.write_ndjson(path)
    log = read_log(path)
    assert log.columns == ["user", "query", "device"]
    assert log.frame["device"].to_list() == text
    write_log(log, tmp_path / f"again.{ending}")
    assert read_log(tmp_path / f"again.{ending}").frame.equals(log.frame)


def test_they_are_named_where_they_are_dropped_and_kept_where_they_are_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    pl.DataFrame({**ROWS, "Device": ["tv"] * 3, "language": ["de"] * 3, "search": ["s"] * 3}).write_csv(path)
    log = read_log(path)
    # Only who asks for it has a column of searches: elsewhere it may be what was searched for.
    assert log.columns == ["user", "query", "device", "language", "search_in_file"]
    release = Km(k=2, m=1, columns=ColumnPolicy(keep=("device",))).anonymize(log)
    columns = release.manifest.columns
    assert (columns.kept, columns.dropped, columns.n_others_dropped) == (("device",), ("language",), 1)
    assert release.log.frame["device"].to_list() == ["tv"] * 3
    assert read_log(path, columns={"search": "search"}).columns[-1] == "search"
