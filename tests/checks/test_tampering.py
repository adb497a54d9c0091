"""Folders that were tampered with, manifest and checksums made to fit: each is found, and no text is told."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import socket
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest
from tests.support.forging import AOL, EXCITE, JSONL, UBI, a_log, fault, forge, released, with_column

from queryveil import Km
from queryveil.checks import verify
from queryveil.data import Format, Layout
from queryveil.errors import BadRelease
from queryveil.release import MANIFEST, ColumnPolicy, contents, read_release


def test_a_column_that_was_added_is_named(tmp_path: Path) -> None:
    folder = released(tmp_path)
    forge(folder, data=with_column)
    assert fault(folder) == "log.csv has a column that manifest.json does not list: realname"


def test_a_key_in_one_line_of_json_is_a_column(tmp_path: Path) -> None:
    folder = released(tmp_path, JSONL)
    forge(folder, data=lambda data: data.replace(b"{", b'{"realname": "quince", ', 1))
    assert fault(folder) == "log.jsonl has a column that manifest.json does not list: realname"


def test_a_key_that_stands_twice_in_a_line_is_found(tmp_path: Path) -> None:
    folder = released(tmp_path, JSONL)
    forge(folder, data=lambda data: data.replace(b"{", b'{"user": "persona01", ', 1))
    assert fault(folder) == "log.jsonl holds 1 value that no column has"


def test_a_column_that_is_missing_is_named(tmp_path: Path) -> None:
    folder = released(tmp_path, columns=ColumnPolicy(time="day"))  # type: ignore[arg-type]
    forge(folder, data=lambda data: pl.read_csv(data).drop("time").write_csv().encode())
    assert fault(folder) == "log.csv has no column time, which manifest.json states"


def test_metadata_of_parquet_and_names_in_gzip_are_found(tmp_path: Path) -> None:
    folder = released(tmp_path, Layout(format=Format.PARQUET))

    def with_metadata(data: bytes) -> bytes:
        table, out = pq.read_table(io.BytesIO(data)), io.BytesIO()
        pq.write_table(table.replace_schema_metadata({"note": "quince"}), out)
        return out.getvalue()

    forge(folder, data=with_metadata)
    assert fault(folder) == "log.parquet holds 1 value that no column has"

    def named(data: bytes) -> bytes:
        out = io.BytesIO()
        with gzip.GzipFile(filename="quince", mode="wb", fileobj=out) as file:
            file.write(gzip.decompress(data))
        return out.getvalue()

    (tmp_path / "packed").mkdir()
    folder = released(tmp_path / "packed", Layout(format=Format.CSV, compression="gz"))
    forge(folder, data=named)
    assert fault(folder) == "log.csv.gz holds 1 value that no column has"


def test_bytes_that_no_reader_looks_at_are_found(tmp_path: Path) -> None:
    (tmp_path / "packed").mkdir()
    folder = released(tmp_path / "packed", Layout(format=Format.CSV, compression="zst"))
    forge(folder, data=lambda data: data + b"\x50\x2a\x4d\x18" + len(b"quince").to_bytes(4, "little") + b"quince")
    assert fault(folder) == "log.csv.zst holds 1 value that no column has"
    folder = released(tmp_path, Layout(format=Format.PARQUET))

    def with_gap(data: bytes) -> bytes:
        footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
        return data[:footer] + b"quince" + data[footer:]

    forge(folder, data=with_gap)
    assert fault(folder) == "log.parquet holds 1 value that no column has"


@pytest.mark.parametrize("layout", [AOL, EXCITE, UBI], ids=lambda layout: layout.format)
def test_times_and_clicks_in_columns_that_should_be_empty_are_found(tmp_path: Path, layout: Layout) -> None:
    folder = released(tmp_path, layout, ColumnPolicy(time="drop"))  # type: ignore[arg-type]
    open_release = Km(k=2, m=1, columns=ColumnPolicy(time="keep")).anonymize(a_log(layout))  # type: ignore[arg-type]
    other = open_release.save(tmp_path / "open")
    name = read_release(other).manifest.data.name  # type: ignore[union-attr]
    forge(folder, data=lambda _: (other / name).read_bytes())
    assert fault(folder).startswith(f"{name}: column time should be empty, and is not in 36 rows (the first is row 1)")


def test_documents_of_ubi_with_more_than_a_row_has_are_found(tmp_path: Path) -> None:
    folder = released(tmp_path, UBI)
    forge(folder, data=lambda data: data.replace(b'"query_attributes":{}', b'"query_attributes":{"ip":"quince"}', 2))
    assert fault(folder) == "log.ndjson holds 2 values that no column has"


@pytest.mark.parametrize(("stated", "there"), [("day", "keep"), ("day", "hour"), ("hour", "keep")])
def test_times_finer_than_stated_are_found(tmp_path: Path, stated: str, there: str) -> None:
    folder = released(tmp_path, columns=ColumnPolicy(time=there))  # type: ignore[arg-type]
    forge(folder, manifest=lambda said: said["columns"].update(time=stated))
    assert fault(folder).startswith(f"log.csv: times are finer than manifest.json says ({stated}) in ")


@pytest.mark.parametrize("stated", ["fresh", "keyed"])
def test_ids_that_were_kept_are_not_taken_for_others(tmp_path: Path, stated: str) -> None:
    folder = released(tmp_path, columns=ColumnPolicy(ids="keep"))  # type: ignore[arg-type]
    forge(folder, manifest=lambda said: said["columns"].update(ids=stated))
    expected = f"log.csv: user ids are not as manifest.json says ({stated}) in 36 rows (the first is row 1)"
    assert fault(folder) == expected


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("n_rows_after", "manifest.json says 7 rows, and there are 36 in the files"),
        ("n_users_after", "manifest.json says 7 users, and there are 12 in the files"),
    ],
)
def test_counts_must_be_those_of_the_files(tmp_path: Path, name: str, said: str) -> None:
    folder = released(tmp_path)
    forge(folder, manifest=lambda manifest: manifest["counts"].update({name: 7}))
    assert said in verify(folder).faults


def test_the_promise_must_be_that_of_the_settings(tmp_path: Path) -> None:
    folder = released(tmp_path)
    forge(folder, manifest=lambda said: said["parameters"].update(k=9))
    assert fault(folder) == "manifest.json promises k=2, and its settings say 9"
    forge(folder, manifest=lambda said: said["parameters"].pop("k"))
    assert fault(folder) == "manifest.json promises k=2, and its settings say nothing"


def test_a_key_of_the_manifest_that_nobody_reads_is_found(tmp_path: Path) -> None:
    folder = released(tmp_path)
    forge(folder, manifest=lambda said: said.update(secret="quince"))
    assert fault(folder) == "manifest.json has 1 key twice, or that no release has"


@pytest.mark.parametrize("name", ["raw.tsv", ".hidden", "log.csv.bak", "report.txt"])
def test_a_file_that_the_manifest_does_not_list_is_named(tmp_path: Path, name: str) -> None:
    folder = released(tmp_path)
    (folder / name).write_text("persona00\tquince\n")
    assert fault(folder) == f"{name} is a file that manifest.json does not list"


def test_a_name_never_reaches_a_terminal_as_it_is(tmp_path: Path) -> None:
    folder = released(tmp_path)
    (folder / "a\x1b[2Jb").write_text("")
    assert fault(folder) == "a\\u001b[2Jb is a file that manifest.json does not list"


def test_many_files_are_counted(tmp_path: Path) -> None:
    folder = released(tmp_path)
    for i in range(14):
        (folder / f"raw{i:02}").write_text("")
    assert len(verify(folder).faults) == 11
    assert verify(folder).faults[-1] == "the folder has 4 more that manifest.json does not list"


def test_reports_may_lie_there_and_are_said_to(tmp_path: Path) -> None:
    folder = released(tmp_path)
    for name in ("report.html", "report.md"):
        (folder / name).write_text("x")
    verdict = verify(folder)
    assert verdict.notes == ("not covered by the promise, beside the data: report.html, report.md",)
    assert verdict.in_words() == "(2, 1)-anonymity holds for 12 users."


def test_counts_of_clicks_beside_a_log_are_not_overlooked(tmp_path: Path) -> None:
    folder = released(tmp_path)
    (folder / "clicks.csv").write_text("persona00,quince\n")
    sha256 = hashlib.sha256((folder / "clicks.csv").read_bytes()).hexdigest()
    forge(folder, manifest=lambda said: said.update(clicks=said["data"] | {"name": "clicks.csv", "sha256": sha256}))
    assert fault(folder) == "manifest.json lists clicks.csv, and such a release has no counts of clicks"


def put(folder: Path, kind: str, name: str) -> None:
    """Put something there that is no file."""
    place = folder / name
    if kind == "folder":
        place.mkdir()
    elif kind == "pipe":
        os.mkfifo(place)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as made:
            here = Path.cwd()
            os.chdir(folder)
            try:
                made.bind(name)
            finally:
                os.chdir(here)
    else:
        place.symlink_to({"link": MANIFEST, "link out": "/dev/null", "dangling": "nowhere"}[kind])


KINDS = {"folder": "folder", "pipe": "pipe", "socket": "socket", "link": "link", "link out": "link", "dangling": "link"}


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_is_no_file_is_found_and_never_opened(tmp_path: Path, kind: str) -> None:
    folder = released(tmp_path)
    put(folder, kind, "more")
    assert fault(folder) == f"more is a {KINDS[kind]} that manifest.json does not list"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["log.csv", MANIFEST, "report.html"])
def test_what_stands_in_the_place_of_a_file_is_no_release(tmp_path: Path, kind: str, name: str) -> None:
    folder = released(tmp_path)
    if name == "report.html":
        put(folder, kind, name)
        assert fault(folder) == f"report.html is a {KINDS[kind]} that manifest.json does not list"
        return
    (folder / name).unlink()
    put(folder, kind, name)
    with pytest.raises(BadRelease, match=f"{name} is a {KINDS[kind]}, and a release is made of files"):
        verify(folder)


def test_a_link_to_the_data_itself_is_no_release(tmp_path: Path) -> None:
    folder = released(tmp_path)
    (folder / "log.csv").rename(tmp_path / "elsewhere.csv")
    (folder / "log.csv").symlink_to(tmp_path / "elsewhere.csv")
    with pytest.raises(BadRelease, match=r"log\.csv is a link"):
        verify(folder)


def test_what_is_hashed_is_what_is_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is swapped for another right after it was hashed; today's release is judged, not tomorrow's."""
    folder = released(tmp_path)
    before = read_release(folder)
    bad = (folder / "log.csv").read_bytes() + b"13,quince,2006-03-01 00:00:00\n"
    hashed = contents.OpenFolder.checked

    def swapped(self: contents.OpenFolder, name: str, sha256: str) -> Any:
        found = hashed(self, name, sha256)
        (tmp_path / "other").write_bytes(bad)
        (tmp_path / "other").replace(folder / "log.csv")
        return found

    monkeypatch.setattr(contents.OpenFolder, "checked", swapped)
    read = read_release(folder)
    assert (folder / "log.csv").read_bytes() == bad
    assert read.log.frame.equals(before.log.frame)
    assert verify(read).holds


def test_one_file_cannot_be_two_parts(tmp_path: Path) -> None:
    folder = released(tmp_path)
    said = json.loads((folder / MANIFEST).read_text())
    data = (folder / "log.csv").read_bytes()
    (folder / "log.csv").unlink()
    (folder / "log.csv").mkdir()
    (folder / "log.csv" / "part-0").write_bytes(data)
    (folder / "log.csv" / "part-1").hardlink_to(folder / "log.csv" / "part-0")
    sums = [hashlib.sha256(data).hexdigest()] * 2
    said["data"]["parts"] = [{"name": f"part-{i}", "sha256": each} for i, each in enumerate(sums)]
    said["data"]["sha256"] = hashlib.sha256("".join(f"{each}\n" for each in sums).encode()).hexdigest()
    (folder / MANIFEST).write_text(json.dumps(said))
    with pytest.raises(BadRelease, match="the same file"):
        verify(folder)


def test_a_file_beside_parts_is_named(tmp_path: Path) -> None:
    folder = released(tmp_path)
    (folder / "log.csv").rename(tmp_path / "part-0")
    (folder / "log.csv").mkdir()
    (tmp_path / "part-0").rename(folder / "log.csv" / "part-0")
    (folder / "log.csv" / ".part-0.crc").write_text("quince")

    def in_parts(said: dict[str, Any]) -> None:
        data = said["data"]
        data["parts"] = [{"name": "part-0", "sha256": data["sha256"]}]
        data["sha256"] = hashlib.sha256(f"{data['sha256']}\n".encode()).hexdigest()

    forge(folder, manifest=in_parts)
    assert fault(folder) == "log.csv/.part-0.crc is a file that manifest.json does not list"
