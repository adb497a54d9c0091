"""Release folders: written whole or not at all, read back only if nothing was changed."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
import polars as pl
import pytest

from queryveil.checks import verify
from queryveil.data import QueryLog
from queryveil.errors import BadParameter, BadRelease, OutputBusy, QueryveilError, ReleaseExists
from queryveil.formats import Format, Layout, extension, layout_for, read_log, write_log
from queryveil.formats.atomic_folders import whole
from queryveil.guarantees import KmAnonymity
from queryveil.methods import Km
from queryveil.release import MANIFEST, ColumnPolicy, Release, read_release, reserved
from queryveil.testing import tiny_log

TERMS = ("kestrel", "lantern", "mulberry", "nutmeg", "हिन्दी")
N_USERS = 12


def a_log(layout: Layout | None = None) -> QueryLog:
    rows = [(f"persona{i:03}", TERMS[(i + j) % 5] + " " + TERMS[j]) for i in range(N_USERS) for j in range(4)]
    frame = pl.DataFrame(
        {
            "user": [user for user, _ in rows],
            "query": [query for _, query in rows],
            "time": [datetime(2006, 3, 1) + timedelta(minutes=37 * i) for i in range(len(rows))],
            "rank": pl.Series([i % 9 for i in range(len(rows))], dtype=pl.Int64),
            "url": [f"https://shop{i}.example/x" for i in range(len(rows))],
        }
    )
    return QueryLog(frame=frame, layout=layout or Layout())


def a_release(*, k: int = 2, columns: ColumnPolicy | None = None) -> Release:
    return Km(k=k, m=2, columns=columns or ColumnPolicy()).anonymize(a_log())


LAYOUTS = {
    "aol": layout_for(Path("log.tsv")),
    "aol without header": replace(layout_for(Path("log.tsv")), has_header=False),
    "aol gz": layout_for(Path("log.tsv.gz")),
    "excite": layout_for(Path("log.log")),
    "excite bz2": layout_for(Path("log.log.bz2")),
    "csv": Layout(format=Format.CSV),
    "csv with names": Layout(format=Format.CSV, names={"user": "who", "query": "what, \"'", "time": "when"}),
    "csv zst": Layout(format=Format.CSV, compression="zst"),
    "tsv": Layout(format=Format.TSV, names={"user": "person", "query": "words"}),
    "jsonl": Layout(format=Format.JSONL, names={"user": "person", "query": "words"}),
    "jsonl gz": Layout(format=Format.JSONL, compression="gz"),
    "parquet": Layout(format=Format.PARQUET, names={"user": "person", "query": "words"}),
    "ubi": Layout(format=Format.UBI),
    "ubi gz": Layout(format=Format.UBI, compression="gz"),
}


def from_file(folder: Path, layout: Layout) -> QueryLog:
    """Take the long way: a log as a user would have it, in a file."""
    path = folder / f"input.{extension(layout)}"
    write_log(a_log(), path, layout=layout)
    named = layout.format not in (Format.AOL, Format.EXCITE, Format.UBI)
    return read_log(path, format=layout.format, columns=layout.names if named else None)


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("time", ["day", "keep", "drop"])
def test_a_release_comes_back_the_same_in_the_format_of_the_log(tmp_path: Path, name: str, time: str) -> None:
    log = from_file(tmp_path, LAYOUTS[name])
    release = Km(k=2, m=2, columns=ColumnPolicy(time=time)).anonymize(log)  # type: ignore[arg-type]
    back = read_release(release.save(tmp_path / "out"))
    assert release.data.n_rows > 0
    assert back.data.frame.select(release.data.columns).equals(release.data.frame)
    assert back.log.layout.format is log.layout.format
    assert back.log.layout.compression == log.layout.compression
    assert msgspec.structs.replace(back.manifest, data=None) == release.manifest
    assert verify(back, original=log).holds


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_release_without_any_rows_comes_back_too(tmp_path: Path, name: str) -> None:
    release = Km(k=1000, m=2).anonymize(from_file(tmp_path, LAYOUTS[name]))
    back = read_release(release.save(tmp_path / "out"))
    assert (release.data.n_rows, back.data.n_rows, back.manifest.counts.n_rows_after) == (0, 0, 0)
    assert verify(back).holds


def test_kept_columns_come_back(tmp_path: Path) -> None:
    release = a_release(columns=ColumnPolicy(keep=("url", "rank")))
    assert read_release(release.save(tmp_path / "out")).data.frame.equals(release.data.frame)


def test_the_manifest_holds_no_term_no_url_and_no_user_id(tmp_path: Path) -> None:
    policy = ColumnPolicy(ids="keep", time="keep", keep=("url",))  # type: ignore[arg-type]
    folder = a_release(columns=policy).save(tmp_path / "out")
    written = (folder / MANIFEST).read_text(encoding="utf-8")
    raw = written.encode().lower()
    for text in (*TERMS, "shop0", "persona", "https", "2006-03"):
        assert text.encode() not in raw
        assert json.dumps(text).strip('"').encode() not in raw
    assert len(json.loads(written)["warnings"]) == 4


def test_the_manifest_says_what_was_done(tmp_path: Path) -> None:
    folder = a_release().save(tmp_path / "out")
    manifest = json.loads((folder / MANIFEST).read_text())
    assert manifest["promise"] == {"model": "km", "k": 2, "m": 2, "window": None, "items": False, "time_unit": None}
    assert manifest["method"] == "km"
    assert manifest["counts"]["n_rows_before"] == N_USERS * 4
    assert manifest["columns"]["dropped"] == ["time", "rank", "url"]
    assert {"queryveil", "python", "polars"} <= manifest["versions"].keys()
    assert "seed" not in json.dumps(manifest)


def test_a_seed_is_warned_of_and_not_told(tmp_path: Path) -> None:
    folder = Km(k=2, m=1, seed=987654321).anonymize(a_log()).save(tmp_path / "out")
    text = (folder / MANIFEST).read_text()
    assert "made with a seed" in text
    assert "987654321" not in text


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return a_release().save(tmp_path / "out")


def edit(folder: Path, **changes: object) -> None:
    manifest = json.loads((folder / MANIFEST).read_text())
    for place, value in changes.items():
        outer, _, inner = place.partition("__")
        if inner:
            manifest[outer][inner] = value
        else:
            manifest[outer] = value
    (folder / MANIFEST).write_text(json.dumps(manifest))


def test_a_changed_data_file_is_refused(folder: Path) -> None:
    data = folder / "log.parquet"
    data.write_bytes(data.read_bytes() + b"\0")
    with pytest.raises(BadRelease, match="sha256 differs"):
        read_release(folder)


def test_a_missing_data_file_is_named(folder: Path) -> None:
    (folder / "log.parquet").unlink()
    with pytest.raises(BadRelease, match=r"log\.parquet is missing"):
        read_release(folder)


def test_a_missing_manifest_is_named(folder: Path) -> None:
    (folder / MANIFEST).unlink()
    with pytest.raises(BadRelease, match=r"manifest\.json is missing"):
        read_release(folder)


@pytest.mark.parametrize(
    "damaged",
    [b"", b"{", b"[]", b"null", b'{"method": "km"}', b"\xff\xfe{}", b'{"method": "km\xff"}', b"[" * 200_000],
    ids=["empty", "cut", "list", "null", "incomplete", "utf-16", "not utf-8", "deep"],
)
def test_a_damaged_manifest_is_a_clear_error(folder: Path, damaged: bytes) -> None:
    (folder / MANIFEST).write_bytes(damaged)
    with pytest.raises(BadRelease, match=r"manifest\.json is damaged"):
        read_release(folder)


@pytest.mark.parametrize(
    "changes",
    [
        {"promise__k": 1},
        {"promise__m": 0},
        {"promise__window": "3x"},
        {"promise__model": "magic"},
        {"promise": {"model": "km", "k": "2", "m": 2}},
        {"data__format": "docx"},
        {"columns__time": "week"},
        {"counts": {}},
    ],
)
def test_a_manifest_that_says_what_cannot_be_is_refused(folder: Path, changes: dict[str, object]) -> None:
    edit(folder, **changes)
    with pytest.raises(BadRelease, match=r"manifest\.json is damaged"):
        read_release(folder)


def test_a_manifest_of_a_newer_format_is_refused(folder: Path) -> None:
    edit(folder, format_version=2)
    with pytest.raises(BadRelease, match="newer queryveil"):
        read_release(folder)


@pytest.mark.parametrize("name", ["../secret.parquet", "/etc/hostname", "sub/log.parquet", "", ".", "..", "a\0b"])
def test_a_data_file_elsewhere_is_never_read(folder: Path, name: str) -> None:
    (folder.parent / "secret.parquet").write_bytes((folder / "log.parquet").read_bytes())
    edit(folder, data__name=name)
    with pytest.raises(BadRelease):
        read_release(folder)


def test_a_manifest_without_data_is_refused(folder: Path) -> None:
    edit(folder, data=None)
    with pytest.raises(BadRelease, match="names no data file"):
        read_release(folder)


def test_what_is_no_folder_is_no_release(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for name, said in (("nowhere", "there is no such folder"), ("file", "this is a file, and a release is a folder")):
        with pytest.raises(BadRelease, match=said):
            read_release(tmp_path / name)


def test_an_existing_folder_is_refused_and_left_as_it_is(folder: Path) -> None:
    before = contents(folder.parent)
    with pytest.raises(ReleaseExists, match="--force"):
        a_release(k=3).save(folder)
    assert contents(folder.parent) == before


def test_force_replaces_a_release_and_leaves_nothing_of_it(folder: Path) -> None:
    (folder / "report.html").write_text("made from the old release")
    a_release(k=3).save(folder, force=True)
    assert read_release(folder).promise == KmAnonymity(k=3, m=2)
    assert names(folder.parent) == {"out", "out/log.parquet", f"out/{MANIFEST}"}


def test_a_run_to_a_folder_that_another_is_about_to_write_is_told_so(tmp_path: Path) -> None:
    with reserved(tmp_path / "out"), ThreadPoolExecutor() as others:
        told = others.submit(a_release().save, tmp_path / "out").exception()
        assert isinstance(told, OutputBusy)
        a_release(k=3).save(tmp_path / "out")
    assert read_release(tmp_path / "out").promise == KmAnonymity(k=3, m=2)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_release_that_appears_while_one_is_written_is_left_alone(tmp_path: Path) -> None:
    a_release().save(tmp_path / "other")

    def write_while_another_comes() -> None:
        with whole(tmp_path / "out", force=False) as partial:
            (partial / MANIFEST).write_bytes(b"{}")
            (tmp_path / "other").rename(tmp_path / "out")

    with pytest.raises(ReleaseExists):
        write_while_another_comes()
    assert read_release(tmp_path / "out").promise == KmAnonymity(k=2, m=2)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_force_exchanges_the_two_where_the_disk_can(folder: Path) -> None:
    before = folder.stat().st_ino
    with whole(folder, force=True) as partial:
        (partial / MANIFEST).write_bytes((folder / MANIFEST).read_bytes())
        made = partial.stat().st_ino
    assert folder.stat().st_ino == made != before
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


def test_force_fills_an_empty_folder(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    assert read_release(a_release().save(tmp_path / "out", force=True)).promise == KmAnonymity(k=2, m=2)


def test_force_refuses_whatever_is_no_release_and_leaves_it_untouched(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "one.jpg").write_bytes(b"x")
    (tmp_path / "letter.txt").write_text("x")
    (tmp_path / "link").symlink_to(a_release().save(tmp_path / "out"))
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    before = contents(tmp_path)
    for name in ("photos", "letter.txt", "link", "dangling"):
        with pytest.raises(BadParameter, match="a release folder or an empty one"):
            a_release().save(tmp_path / name, force=True)
    assert contents(tmp_path) == before


def test_the_folder_around_it_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(BadParameter, match="output must be a folder to be made in one that is there"):
        a_release().save(tmp_path / "nowhere" / "out")
    assert not names(tmp_path)


def test_a_release_is_written_relative_to_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert read_release(a_release().save("out")).promise == KmAnonymity(k=2, m=2)
    assert read_release(a_release(k=3).save("out/", force=True)).promise == KmAnonymity(k=3, m=2)
    assert names(tmp_path) == {"out", "out/log.parquet", f"out/{MANIFEST}"}


@pytest.mark.parametrize("name", ["a[b]*?", "a b", "ü", "-x", ".hidden"])
def test_a_folder_may_have_any_name(tmp_path: Path, name: str) -> None:
    leftover = tmp_path / f".{name}.partial-0123"
    leftover.mkdir()
    a_release().save(tmp_path / name)
    a_release(k=3).save(tmp_path / name, force=True)
    assert names(tmp_path) == {name, f"{name}/log.parquet", f"{name}/{MANIFEST}"}


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


@pytest.mark.parametrize(("mask", "of_folder", "of_file"), [(0o022, 0o755, 0o644), (0o077, 0o700, 0o600)])
def test_the_modes_of_the_files_are_those_the_user_has_set(
    tmp_path: Path, mask: int, of_folder: int, of_file: int
) -> None:
    with umask(mask):
        folder = a_release().save(tmp_path / "out")
    assert folder.stat().st_mode & 0o777 == of_folder
    assert {file.stat().st_mode & 0o777 for file in folder.iterdir()} == {of_file}


def test_the_repr_of_a_release_shows_no_text() -> None:
    shown = repr(a_release(columns=ColumnPolicy(ids="keep")))  # type: ignore[arg-type]
    assert "KmAnonymity(k=2, m=2)" in shown
    assert not any(text in shown for text in (*TERMS, "persona"))


def test_every_error_here_is_one_of_ours() -> None:
    assert issubclass(BadRelease, QueryveilError)
    assert issubclass(ReleaseExists, QueryveilError)


def names(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_folder_whose_name_is_not_utf8_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(BadParameter, match=r"output must be a folder whose name is UTF-8, got 'caf\\udce9'") as caught:
        a_release().save(tmp_path / os.fsdecode(b"caf\xe9"))
    assert str(caught.value).isprintable()
    assert list(tmp_path.iterdir()) == []


def test_a_part_that_is_listed_twice_is_refused(tmp_path: Path) -> None:
    """Else somebody could count twice."""
    folder = Km(k=2, m=1).anonymize(tiny_log()).save(tmp_path / "release")
    manifest = msgspec.json.decode((folder / "manifest.json").read_bytes())
    data = manifest["data"]
    name = data["name"]
    (folder / name).rename(folder / "part-0")
    (folder / name).mkdir()
    (folder / "part-0").rename(folder / name / "part-0")
    whole = data["sha256"]
    for n_times in (1, 2):
        data["parts"] = n_times * [{"name": "part-0", "sha256": whole}]
        sums = "".join(f"{part['sha256']}\n" for part in data["parts"])
        data["sha256"] = hashlib.sha256(sums.encode()).hexdigest()
        (folder / "manifest.json").write_bytes(msgspec.json.encode(manifest))
        if n_times == 1:
            assert verify(folder).holds
    with pytest.raises(BadRelease):
        read_release(folder)


@pytest.mark.parametrize(("kind", "n"), [(Format.CSV, 4), (Format.TSV, 4), (Format.JSONL, 0), (Format.PARQUET, 0)])
def test_cells_that_a_spreadsheet_would_calculate_are_counted_and_left_as_they_are(
    tmp_path: Path, kind: Format, n: int
) -> None:
    notes = ["=1+1", "@home", "-2", "+3", "a=b", None]
    frame = pl.DataFrame({"user": list("abcdef"), "query": ["kettle"] * 6, "note": notes})
    method = Km(k=2, m=1, columns=ColumnPolicy(keep=("note",)))
    folder = method.anonymize(QueryLog(frame=frame, layout=Layout(format=kind))).save(tmp_path / "out")
    read = read_release(folder)
    told = [text for text in read.manifest.warnings if "formulas" in text]
    assert told == [f"cells that a spreadsheet would take for formulas: {n}; import the file as text"] * (n > 0)
    assert set(read.log.frame["note"]) == set(notes)
    assert read.as_written.warnings == read.manifest.warnings
