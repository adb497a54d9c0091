"""Files and release folders as sinks: every line once, for their owner's eyes only."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from tests.support.streams import KEY, event_lines, keyed_settings, small_tables, write_lines

from queryveil.checks import verify
from queryveil.errors import BadFile, BadRelease
from queryveil.formats import delimited, read_log
from queryveil.release import read_release
from queryveil.service.connectors.file_sinks import FileSink, ReleaseSink, StdoutSink
from queryveil.service.connectors.file_sources import FilesSource
from queryveil.service.pipeline.service import Service
from queryveil.service.ports import Outgoing
from queryveil.service.stores.sqlite import SqliteStore


def out(number: int, offset: int, data: bytes) -> Outgoing:
    return Outgoing(number=number, offset=offset, data=data, n_rows=data.count(b"\n"))


def opened(path: Path, *, n_bytes: int = 0) -> FileSink:
    sink = FileSink(path)
    sink.open(delivered=0, n_bytes=n_bytes)
    return sink


def test_lines_handed_over_again_stand_there_once(tmp_path: Path) -> None:
    path = tmp_path / "out.tsv"
    first, second = out(1, 0, b"one\n"), out(2, 4, b"two\nthree\n")
    sink = opened(path)
    for outgoing in (first, second, first, second):
        sink.deliver(outgoing)
    sink.close()
    again = opened(path)
    again.deliver(second)
    again.close()
    assert path.read_bytes() == b"one\ntwo\nthree\n"
    assert path.stat().st_mode & 0o777 == 0o600


def test_lines_that_were_written_by_half_are_written_whole(tmp_path: Path) -> None:
    path = tmp_path / "out.tsv"
    path.write_bytes(b"one\ntw")
    sink = opened(path)
    sink.deliver(out(2, 4, b"two\n"))
    assert path.read_bytes() == b"one\ntwo\n"
    path.write_bytes(b"one\ntwo\nthr\0\0\0\0")
    sink.deliver(out(3, 8, b"three\n"))
    sink.close()
    assert path.read_bytes() == b"one\ntwo\nthree\n"


def test_lines_that_are_there_already_are_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "out.tsv"
    path.write_bytes(b"one\ntwo\n")
    before = path.stat().st_mtime_ns
    sink = opened(path)
    sink.deliver(out(1, 0, b"one\n"))
    sink.close()
    assert path.stat().st_mtime_ns == before
    assert path.read_bytes() == b"one\ntwo\n"


def test_a_file_that_lost_what_was_written_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "out.tsv"
    path.write_bytes(b"one\n")
    with pytest.raises(BadFile, match="6 bytes that were written are gone"):
        opened(path, n_bytes=10)
    with pytest.raises(BadFile, match="bytes that were written are gone"):
        opened(path).deliver(out(2, 8, b"two\n"))


@pytest.mark.parametrize("fate", ["deleted", "renamed", "replaced"])
def test_lines_for_a_file_that_is_no_longer_there_are_not_taken_for_delivered(tmp_path: Path, fate: str) -> None:
    path = tmp_path / "out.tsv"
    sink = opened(path)
    sink.deliver(out(1, 0, b"one\n"))
    path.rename(tmp_path / "out.tsv.1")
    if fate == "deleted":
        (tmp_path / "out.tsv.1").unlink()
    if fate == "replaced":
        path.write_bytes(b"one\n")
    with pytest.raises(BadFile, match="was moved, deleted or replaced"):
        sink.deliver(out(2, 4, b"two\n"))
    sink.close()


def test_a_first_start_does_not_touch_what_is_there(tmp_path: Path) -> None:
    path = tmp_path / "out.tsv"
    FileSink(path).check_new()
    path.touch()
    FileSink(path).check_new()
    path.write_bytes(b"kestrel\n")
    for sink, reason in (
        (FileSink(path), "already there and not empty"),
        (FileSink(tmp_path), "this is a folder"),
        (FileSink(tmp_path / "nosuch" / "out.tsv"), "its folder is not there"),
        (ReleaseSink(tmp_path), "already there and not empty"),
        (ReleaseSink(path), "already there and not empty"),
        (ReleaseSink(tmp_path / "nosuch" / "out"), "the folder to make it in is not there"),
    ):
        with pytest.raises(BadFile, match=reason) as refused:
            sink.check_new()
        assert "kestrel" not in str(refused.value)


def test_a_pipe_gets_each_number_once_in_a_run(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    sink = StdoutSink(descriptor=os.open(path, os.O_WRONLY | os.O_CREAT))
    sink.open(delivered=3, n_bytes=99)
    for number in (3, 4, 4, 5):
        sink.deliver(out(number, 0, b"%d\n" % number))
    assert path.read_bytes() == b"4\n5\n"


def run(tmp_path: Path, log: Path, **changed: object) -> None:
    settings = keyed_settings(tables=small_tables(tmp_path), **changed)
    sink, store = ReleaseSink(tmp_path / "release"), SqliteStore(tmp_path / "state.db")
    Service(settings, source=FilesSource(log), sink=sink, store=store).run()


def test_a_release_folder_can_be_verified_and_adds_up(tmp_path: Path) -> None:
    lines = event_lines(200, seed=1)
    lines[7] = "kestrel"
    log = write_lines(tmp_path / "log.tsv", ["\t".join(delimited.AOL_NAMES.values()), *lines])
    run(tmp_path, log)
    release = read_release(tmp_path / "release")
    counts, removed = release.manifest.counts, release.manifest.removed
    assert (counts.n_rows_before, counts.n_rows_after) == (199, release.log.n_rows)
    assert removed["bad_rows_skipped"] == 1
    n_gone = sum(n for name, n in removed.items() if name.startswith("rows_"))
    assert counts.n_rows_before - n_gone == counts.n_rows_after
    assert abs(counts.n_users_before - 40) <= 2
    assert "kestrel" not in (tmp_path / "release" / "manifest.json").read_text(encoding="utf-8")
    texts = release.manifest.texts
    assert texts is not None
    # Who asked what a stream does not remember, and it says so.
    assert texts.n_texts == release.log.frame["query"].str.to_lowercase().n_unique()
    assert texts.n_of_one_person is None
    assert texts.n_rows_of_one_person is None
    original = read_log(log, bad_rows="skip")
    classifier = keyed_settings(tables=small_tables(tmp_path)).make_classifier()
    assert verify(release, original=original, key=KEY, classifier=classifier).holds


def test_a_release_that_is_gone_on_with_has_a_manifest_for_all_of_it(tmp_path: Path) -> None:
    lines = event_lines(200, seed=2)
    log = write_lines(tmp_path / "log.tsv", lines[:120])
    run(tmp_path, log)
    first = read_release(tmp_path / "release")
    write_lines(log, lines)
    run(tmp_path, log)
    second = read_release(tmp_path / "release")
    assert second.manifest.counts.n_rows_before == 200
    assert second.log.n_rows > first.log.n_rows
    assert second.log.frame.head(first.log.n_rows).equals(first.log.frame)


def test_a_changed_release_is_noticed(tmp_path: Path) -> None:
    run(tmp_path, write_lines(tmp_path / "log.tsv", event_lines(100, seed=3)))
    manifest = json.loads((tmp_path / "release" / "manifest.json").read_bytes())
    assert manifest["parameters"]["order"] == "file"
    assert manifest["promise"] == {
        "model": "swap",
        "k": 3,
        "l": 2,
        "remembered": 10_000,
        "once": True,
        "window": None,
        "min_query_users": 1,
        "noise_bound": 0,
    }
    with (tmp_path / "release" / "log.tsv").open("ab") as file:
        file.write(b"one more\n")
    with pytest.raises(BadRelease, match="sha256 differs"):
        read_release(tmp_path / "release")


def test_events_whose_clock_is_ahead_of_ours_can_be_verified(tmp_path: Path) -> None:
    log = write_lines(tmp_path / "log.tsv", [line.replace("2006-", "2096-") for line in event_lines(100, seed=4)])
    run(tmp_path, log)
    classifier = keyed_settings(tables=small_tables(tmp_path)).make_classifier()
    assert verify(tmp_path / "release", original=log, key=KEY, classifier=classifier).holds
