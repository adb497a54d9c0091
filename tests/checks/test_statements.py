"""What a manifest states beside its promise must be what a release of its method can state, and true."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest
from tests.support.forging import AOL, CSV, JSONL, Change, a_log, fault, forge, released

from queryveil import Clump, Kdelta, Km, Plink
from queryveil.checks import verify
from queryveil.data import Format, Layout
from queryveil.release import ColumnPolicy, read_release

METHODS: dict[str, Callable[[], Any]] = {
    "km": lambda: Km(k=2, m=1),
    "kdelta": lambda: Kdelta(k=2),
    "clump": lambda: Clump(k=2),
    "plink": lambda: Plink(p=0.6),
}


_NOISE: dict[str, Any] = {
    "what": "queries",
    "mechanism": "laplace",
    "max_items": 1,
    "scale": 1.0,
    "threshold": 9,
    "epsilon": 1.0,
    "delta": 0.1,
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda said: said.update(method="pseudonymise"), "names a method that makes another promise"),
        (lambda said: said["parameters"].update(name="quince"), "has 1 setting that"),
        (lambda said: said["removed"].update(bad_rows_skipped=-1), "is negative or too large"),
        (lambda said: said["removed"].update(quince=1), "counts or measures what no release of"),
        (lambda said: said["measures"].update(quince=1.0), "counts or measures what no release of"),
        (lambda said: said.update(noise=[_NOISE]), "has clusters of queries or noise"),
        (lambda said: said["versions"].update(numpy="quince"), "has versions that are none"),
        (lambda said: said["warnings"].append("quince"), "has warnings that no release of"),
        (lambda said: said["columns"].update(dropped=["quince"]), "names columns that were dropped and are none"),
        (lambda said: said["data"].update(has_header=not said["data"]["has_header"]), " header"),
    ],
)
def test_what_no_release_of_a_method_states_is_a_fault(tmp_path: Path, method: str, change: Change, said: str) -> None:
    folder = METHODS[method]().anonymize(a_log(JSONL)).save(tmp_path / "out")
    assert verify(folder).holds
    forge(folder, manifest=change)
    found = verify(folder).faults
    assert any(said in each for each in found), found
    assert not any("quince" in each for each in found)


@pytest.mark.parametrize("name", ["query_in_file", "time_in_log", "user_in_file_in_file"])
@pytest.mark.parametrize("layout", [CSV, JSONL, Layout(format=Format.PARQUET)], ids=lambda layout: layout.format)
def test_no_column_passes_for_one_of_a_role(tmp_path: Path, layout: Layout, name: str) -> None:
    folder = released(tmp_path, layout)

    def with_column(data: bytes) -> bytes:
        kind = {Format.CSV: "csv", Format.JSONL: "ndjson"}.get(layout.format, "parquet")
        frame: pl.DataFrame = getattr(pl, f"read_{kind}")(io.BytesIO(data))
        frame, out = frame.with_columns(pl.lit("persona00").alias(name)), io.BytesIO()
        getattr(frame, f"write_{kind}")(out)
        return out.getvalue()

    forge(folder, data=with_column)
    plain = name.partition("_")[0]
    assert f"log.{layout.format} has a column that manifest.json does not list: {plain}" in verify(folder).faults


def test_times_are_judged_whether_or_not_the_manifest_names_their_column(tmp_path: Path) -> None:
    folder = released(tmp_path, columns=ColumnPolicy(time="keep"))  # type: ignore[arg-type]

    def unnamed(said: dict[str, Any]) -> None:
        del said["data"]["names"]["time"]
        said["columns"]["time"] = "day"

    forge(folder, manifest=unnamed)
    assert "log.csv has no column time, which manifest.json states" in verify(folder).faults


def test_rows_add_up(tmp_path: Path) -> None:
    folder = released(tmp_path)
    forge(folder, manifest=lambda said: said["counts"].update(n_rows_before=40))
    assert fault(folder) == "manifest.json counts rows before, removed, made up and released that do not add up"
    forge(folder, manifest=lambda said: said["removed"].update(rows_without_terms_left=4))
    assert verify(folder).holds
    assert fault(folder, original=a_log()) == "manifest.json says 40 rows before, and the original has 36"


def test_users_and_columns_before_are_those_of_the_original(tmp_path: Path) -> None:
    folder = released(tmp_path)
    forge(folder, manifest=lambda said: said["counts"].update(n_users_before=13))
    assert fault(folder, original=a_log()) == "manifest.json says 13 users before, and the original has 12"
    forge(folder, manifest=lambda said: said["counts"].update(n_users_before=12))
    forge(folder, manifest=lambda said: said["columns"].update(n_others_dropped=2))
    assert "2 other columns were dropped, and the original has 0" in fault(folder, original=a_log())


def test_average_sizes_are_those_of_the_files(tmp_path: Path) -> None:
    bags = Clump(k=2, seed=1).anonymize(a_log()).save(tmp_path / "bags")
    forge(bags, manifest=lambda said: said["measures"].update(average_length=2.0))
    assert "manifest.json measures 2 average length, and there are " in fault(bags)
    groups = Plink(p=0.6, seed=1).anonymize(a_log()).save(tmp_path / "groups")
    forge(groups, manifest=lambda said: said["measures"].update(average_group_size=2.5))
    assert "manifest.json measures 2.5 average group size" in fault(groups)


@pytest.mark.parametrize("has_header", [True, False])
def test_a_header_of_aol_is_there_or_not(tmp_path: Path, has_header: bool) -> None:
    folder = released(tmp_path, AOL if has_header else Layout(format=AOL.format, names=AOL.names, has_header=False))
    forge(folder, manifest=lambda said: said["data"].update(has_header=not has_header))
    assert fault(folder) == f"manifest.json says of log.tsv that it has {'no' if has_header else 'a'} header"


def test_a_signature_has_64_bytes(tmp_path: Path) -> None:
    folder = released(tmp_path)
    (folder / "manifest.sig").write_text("quince")
    assert fault(folder) == "manifest.sig is no signature, which has 64 bytes"


def test_texts_in_the_statistics_of_parquet_are_those_of_the_column(tmp_path: Path) -> None:
    folder = released(tmp_path, Layout(format=Format.PARQUET))
    least = min(read_release(folder).log.frame["query"]).encode()

    def with_other_statistics(data: bytes) -> bytes:
        out = io.BytesIO()
        pq.write_table(pq.read_table(io.BytesIO(data)), out, store_schema=False)
        whole = out.getvalue()
        footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
        assert least in whole[footer:]
        return whole[:footer] + whole[footer:].replace(least, (b"quince" * 9)[: len(least)])

    forge(folder, data=with_other_statistics)
    assert fault(folder).startswith("log.parquet holds ")


def test_a_method_of_ones_own_has_its_own_names(tmp_path: Path) -> None:
    folder = released(tmp_path)

    def own(said: dict[str, Any]) -> None:
        said.update(method="mine", warnings=["a word of mine"])
        said["parameters"]["colour"] = "red"
        said["removed"]["feathers"] = 3

    forge(folder, manifest=own)
    assert verify(folder).holds
    assert json.loads((folder / "manifest.json").read_text())["method"] == "mine"


def test_statistics_of_parquet_that_are_no_text_are_found(tmp_path: Path) -> None:
    folder = Clump(k=2).anonymize(a_log(Layout(format=Format.PARQUET))).save(tmp_path / "out")
    assert verify(folder).holds
    least = min(item for bag in read_release(folder).transactions.frame["items"] for item in bag).encode()

    def not_text(data: bytes) -> bytes:
        out = io.BytesIO()
        pq.write_table(pq.read_table(io.BytesIO(data)), out, store_schema=False)
        whole = out.getvalue()
        footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
        assert least in whole[footer:]
        return whole[:footer] + whole[footer:].replace(least, b"\xff" + least[1:])

    forge(folder, data=not_text)
    assert fault(folder).startswith("transactions.parquet holds ")
