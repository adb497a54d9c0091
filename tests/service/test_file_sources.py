"""Files as sources: read in whole lines, gone on with where they stood, followed through rotation."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.waiting import patience

from queryveil.errors import BadFile, BadParameter
from queryveil.service.connectors.file_sources import FilesSource, FollowedFile, StdinSource
from queryveil.service.pipeline.urls import open_source
from queryveil.service.ports import Batch, Source

LONG = b"x" * ((1 << 20) + 5)


def opened(source: Source, position: str | None = None) -> Source:
    source.open(position=position, keys=())
    return source


def batches(source: Source) -> list[Batch]:
    found = []
    while (batch := source.take(timeout=0.2)) is not None:
        found.append(batch)
    return found


def lines(source: Source) -> bytes:
    return b"".join(batch.data for batch in batches(source))


@given(
    texts=st.lists(st.lists(st.sampled_from([b"", b"a", b"bb", b"c" * 40]), max_size=8), min_size=1, max_size=3),
    size=st.sampled_from([1, 7, 50, 1000]),
    is_packed=st.booleans(),
    has_end=st.booleans(),
)
def test_from_any_position_the_rest_of_the_lines_comes(
    texts: list[list[bytes]],
    size: int,
    is_packed: bool,
    has_end: bool,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("logs")
    contents = [b"".join(line + b"\n" for line in each) for each in texts]
    for i, content in enumerate(contents):
        shown = content if has_end else content.removesuffix(b"\n")
        if is_packed and shown:
            (folder / f"{i}.log.gz").write_bytes(gzip.compress(shown))
        else:
            (folder / f"{i}.log.gz").with_suffix("").write_bytes(shown)
    pattern = str(folder / "*")
    found = batches(opened(FilesSource(pattern, batch_bytes=size)))
    everything = b"".join(batch.data for batch in found)
    assert [line for line in everything.split(b"\n") if line] == [line for each in texts for line in each if line]
    for i, batch in enumerate(found):
        rest = opened(FilesSource(pattern, batch_bytes=size), batch.position)
        assert lines(rest) == b"".join(later.data for later in found[i + 1 :])
        assert rest.is_finished


def test_a_file_that_grew_is_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"one\ntwo\n")
    source = opened(FilesSource(path))
    (batch,) = batches(source)
    assert source.is_finished
    with path.open("ab") as file:
        file.write(b"three")
    assert lines(opened(FilesSource(path), batch.position)) == b"three\n"


def test_a_file_that_is_gone_or_another_one_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"one\ntwo\n")
    (batch,) = batches(opened(FilesSource(path)))
    path.write_bytes(b"six\nten\nmore\n")
    with pytest.raises(BadFile, match="not the file that was read before"):
        opened(FilesSource(path), batch.position)
    path.unlink()
    with pytest.raises(BadFile, match="there is no such file"):
        opened(FilesSource(path), batch.position)
    (tmp_path / "b.log").write_bytes(b"one\ntwo\n")
    with pytest.raises(BadFile, match="the file that was being read is gone"):
        opened(FilesSource(str(tmp_path / "*.log")), batch.position)
    with pytest.raises(BadFile, match="this is a folder"):
        opened(FilesSource(tmp_path))
    with pytest.raises(BadFile, match="no file matches"):
        opened(FilesSource(str(tmp_path / "*.tsv")))


def test_a_packed_file_that_ends_in_the_middle_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "a.log.gz"
    path.write_bytes(gzip.compress(os.urandom(40_000))[:-10_000])
    with pytest.raises(BadFile, match="ends in the middle"):
        lines(opened(FilesSource(path)))


@pytest.mark.parametrize("kind", ["file", "packed", "pipe"])
def test_a_line_too_long_is_cut_short_and_the_lines_after_it_are_whole(tmp_path: Path, kind: str) -> None:
    content = b"one\n" + LONG * 3 + b"\ntwo\n" + LONG * 2
    path = tmp_path / ("a.log.gz" if kind == "packed" else "a.log")
    path.write_bytes(gzip.compress(content, 1) if kind == "packed" else content)
    if kind == "pipe":
        source: Source = StdinSource(batch_bytes=1000, descriptor=os.open(path, os.O_RDONLY))
    else:
        source = FilesSource(path, batch_bytes=1000)
    found = lines(opened(source)).split(b"\n")
    assert [len(line) for line in found] == [3, (1 << 20) + 1, 3, (1 << 20) + 1, 0]


def test_a_file_is_followed_as_it_grows_and_only_whole_lines_are_taken(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    source = opened(FollowedFile(path))
    assert lines(source) == b""
    with path.open("ab", buffering=0) as file:
        file.write(b"one\ntw")
        assert lines(source) == b"one\n"
        file.write(b"o\n")
        assert lines(source) == b"two\n"
    assert not source.is_finished
    source.close()
    assert source.take(timeout=patience()) is None


def test_a_renamed_file_is_read_to_its_end_before_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"one\n")
    source = opened(FollowedFile(path))
    assert lines(source) == b"one\n"
    path.rename(tmp_path / "a.log.1")
    with (tmp_path / "a.log.1").open("ab") as file:
        file.write(b"two\nlast without end")
    assert lines(source) == b"two\n"
    path.write_bytes(b"three\n")
    assert lines(source) == b"last without end\nthree\n"


@pytest.mark.parametrize("after", [b"six\n", b"six\nseven\neight\nnine\n"])
def test_a_file_that_was_emptied_is_read_from_its_start(tmp_path: Path, after: bytes) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"one\ntwo\n")
    source = opened(FollowedFile(path))
    assert lines(source) == b"one\ntwo\n"
    os.truncate(path, 0)
    with path.open("ab") as file:
        file.write(after)
    assert lines(source) == after


def test_files_that_were_rotated_while_nobody_looked_are_found_again(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    told: list[str] = []
    path.write_bytes(b"one\n")
    (batch,) = batches(opened(FollowedFile(path)))
    with path.open("ab") as file:
        file.write(b"two\n")
    for i, content in enumerate([b"three\n", b"four\n"]):
        for older in range(i, -1, -1):
            name = tmp_path / (f"a.log.{older}" if older else "a.log")
            name.rename(tmp_path / f"a.log.{older + 1}")
        path.write_bytes(content)
        os.utime(path, ns=(i * 10**9 + 2 * 10**18, i * 10**9 + 2 * 10**18))
    source = opened(FollowedFile(path, tell=told.append), batch.position)
    found = batches(source)
    assert [each.data for each in found] == [b"two\n", b"three\n", b"four\n"]
    assert told == []
    assert lines(opened(FollowedFile(path), found[0].position)) == b"three\nfour\n"


@pytest.mark.slow
def test_a_renamed_file_is_read_on_while_the_new_one_is_empty(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"one\n")
    source = opened(FollowedFile(path))
    (batch,) = batches(source)
    path.rename(tmp_path / "a.log.1")
    restarted = opened(FollowedFile(path), batch.position)
    for each in (source, restarted):
        assert lines(each) == b""
    path.touch()
    with (tmp_path / "a.log.1").open("ab") as file:
        file.write(b"two\nthr")
    for each in (source, restarted):
        assert lines(each) == b"two\n"
    with (tmp_path / "a.log.1").open("ab") as file:
        file.write(b"ee\n")
    path.write_bytes(b"four\n")
    for each in (source, restarted):
        assert lines(each) == b"three\nfour\n"


def test_what_was_not_read_before_a_file_was_emptied_is_read_from_its_copy(tmp_path: Path) -> None:
    path, copy = tmp_path / "a.log", tmp_path / "a.log.1"
    first = b"".join(b"line %d\n" % i for i in range(300))
    path.write_bytes(first)
    source = opened(FollowedFile(path))
    assert lines(source) == first
    copy.write_bytes(first + b"two\n")
    path.write_bytes(b"three\n")
    assert lines(source) == b"two\nthree\n"


def test_names_that_move_on_while_rotated_files_are_read_mix_nothing_up(tmp_path: Path) -> None:
    path = tmp_path / "a.log"

    def rotate(content: bytes) -> None:
        for older in range(9, -1, -1):
            name = tmp_path / (f"a.log.{older}" if older else "a.log")
            if name.exists():
                name.rename(tmp_path / f"a.log.{older + 1}")
        path.write_bytes(content)
        moment = 2 * 10**18 + int(content) * 10**9
        os.utime(path, ns=(moment, moment))

    rotate(b"1\n")
    source = opened(FollowedFile(path))
    assert lines(source) == b"1\n"
    rotate(b"2\n")
    rotate(b"3\n")
    batch = source.take(timeout=patience())
    assert batch is not None
    assert batch.data == b"2\n"
    rotate(b"4\n")
    rotate(b"5\n")
    assert lines(source) == b"3\n4\n5\n"
    assert lines(opened(FollowedFile(path), batch.position)) == b"3\n4\n5\n"


def test_only_rotated_files_are_read_among_those_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"one\n")
    (batch,) = batches(opened(FollowedFile(path)))
    path.rename(tmp_path / "a.log.2")
    for i, name in enumerate(["a.log.1", "a.log.released", "a.log.db", "a.log.key", "a.log"]):
        (tmp_path / name).write_bytes(f"{name}\n".encode())
        os.utime(tmp_path / name, ns=(2 * 10**18 + i, 2 * 10**18 + i))
    assert lines(opened(FollowedFile(path), batch.position)) == b"a.log.1\na.log\n"


def test_a_followed_file_that_is_gone_is_told_and_the_new_one_read(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    told: list[str] = []
    path.write_bytes(b"one\n")
    (batch,) = batches(opened(FollowedFile(path)))
    path.write_bytes(b"six\nseven\n")
    assert lines(opened(FollowedFile(path, tell=told.append), batch.position)) == b"six\nseven\n"
    assert told == ["the file that was being followed is gone or was emptied; reading the one that is there now"]


def test_only_one_plain_file_can_be_followed(tmp_path: Path) -> None:
    path = tmp_path / "a.log.gz"
    path.write_bytes(gzip.compress(b"one\n"))
    with pytest.raises(BadParameter, match="not compressed"):
        opened(FollowedFile(path))
    for url in ("-", str(tmp_path / "*.log"), "redis://cache.example/0"):
        with pytest.raises(BadParameter, match="one file with --follow"):
            open_source(url, follow=True)


def test_a_pipe_is_read_as_lines_come() -> None:
    readable, writable = os.pipe()
    source = opened(StdinSource(descriptor=readable))
    assert source.take(timeout=0.05) is None
    os.write(writable, b"one\ntw")
    assert lines(source) == b"one\n"
    os.write(writable, b"o\nthree")
    assert lines(source) == b"two\n"
    assert not source.is_finished
    os.close(writable)
    assert lines(source) == b"three\n"
    assert source.is_finished
    os.close(readable)


def test_positions_hold_no_text(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"kestrel\tlantern\n")
    for source in (FilesSource(path), FollowedFile(path)):
        (batch,) = batches(opened(source))
        assert "kestrel" not in batch.position + repr(batch) + repr(source)
