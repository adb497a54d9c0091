import bz2
import gzip
import io
import os
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from queryveil.errors import BadFile
from queryveil.formats import read_log
from queryveil.formats.records import MAX_RECORD_BYTES

HEADER = b"AnonID\tQuery\tQueryTime\tItemRank\tClickURL\n"
# Numbers that compress badly, so that a cut in the middle loses rows.
ROWS = b"".join(b"%d\tkettle %d\t2006-03-01 07:17:12\t\t\n" % (i, (i * 2654435761) % 2**32) for i in range(20_000))
TEXT = HEADER + ROWS


def _zstd(data: bytes) -> bytes:
    return bytes(pa.compress(data, codec="zstd", asbytes=True))


PACKERS: dict[str, Callable[[bytes], bytes]] = {"gz": gzip.compress, "bz2": bz2.compress, "zst": _zstd}
each_codec = pytest.mark.parametrize("ending", list(PACKERS))


def _file(folder: Path, data: bytes, name: str) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


@each_codec
def test_a_compressed_file_is_read_and_its_compression_remembered(tmp_path: Path, ending: str) -> None:
    log = read_log(_file(tmp_path, PACKERS[ending](TEXT), f"log.tsv.{ending}"))
    assert log.n_rows == 20_000
    assert log.layout.compression == ending


@each_codec
def test_a_file_of_several_compressed_members_is_read_whole(tmp_path: Path, ending: str) -> None:
    packed = b"".join(PACKERS[ending](part) for part in (HEADER, ROWS[:1001], ROWS[1001:]))
    assert read_log(_file(tmp_path, packed, f"log.tsv.{ending}")).n_rows == 20_000


@each_codec
@pytest.mark.parametrize("bad_rows", ["fail", "skip"])
@pytest.mark.parametrize("share", [0.00005, 0.3, 0.9, 0.99999])
def test_a_truncated_compressed_file_is_a_clear_error(tmp_path: Path, ending: str, bad_rows: str, share: float) -> None:
    packed = PACKERS[ending](TEXT)
    path = _file(tmp_path, packed[: max(4, int(len(packed) * share))], f"log.tsv.{ending}")
    with pytest.raises(BadFile, match="ends in the middle; copy the file again"):
        read_log(path, bad_rows=bad_rows)


@each_codec
def test_a_file_truncated_in_its_second_member_is_a_clear_error(tmp_path: Path, ending: str) -> None:
    packed = PACKERS[ending](TEXT) + PACKERS[ending](ROWS)[:-7]
    with pytest.raises(BadFile, match="ends in the middle"):
        read_log(_file(tmp_path, packed, f"log.tsv.{ending}"), bad_rows="skip")


@each_codec
def test_garbage_behind_compressed_data_is_a_clear_error(tmp_path: Path, ending: str) -> None:
    path = _file(tmp_path, PACKERS[ending](TEXT) + b"left over from something else", f"log.tsv.{ending}")
    with pytest.raises(BadFile, match="damaged"):
        read_log(path, bad_rows="skip")


@each_codec
def test_an_ending_that_lies_about_the_compression_is_a_clear_error(tmp_path: Path, ending: str) -> None:
    with pytest.raises(BadFile, match="but the content is not"):
        read_log(_file(tmp_path, TEXT, f"log.tsv.{ending}"))


def test_compressed_data_is_known_without_its_ending(tmp_path: Path) -> None:
    assert read_log(_file(tmp_path, gzip.compress(TEXT), "log.tsv")).layout.compression == "gz"


@pytest.mark.slow
def test_a_line_that_unpacks_to_far_more_than_it_takes_is_one_bad_row(tmp_path: Path) -> None:
    text = TEXT + b"x" * (400 * MAX_RECORD_BYTES) + b"\n" + ROWS
    path = _file(tmp_path, gzip.compress(text, 1), "log.tsv.gz")
    del text
    tracemalloc.start()
    log = read_log(path, bad_rows="skip")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (log.n_rows, log.reading.n_bad_rows_skipped) == (40_000, 1)
    assert peak < 200 * MAX_RECORD_BYTES


@pytest.mark.parametrize(("encoding", "named"), [("utf-16", "UTF-16"), ("utf-32", "UTF-32")])
def test_wide_text_is_a_clear_error(tmp_path: Path, encoding: str, named: str) -> None:
    with pytest.raises(BadFile, match=f"the text is {named}; convert it to UTF-8"):
        read_log(_file(tmp_path, TEXT.decode().encode(encoding), "log.tsv"))


def test_an_empty_file_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="the file is empty"):
        read_log(_file(tmp_path, b"", "log.tsv"))
    with pytest.raises(BadFile, match="the file is empty"):
        read_log(_file(tmp_path, gzip.compress(b""), "log.tsv.gz"))
    with pytest.raises(BadFile, match="the file is empty"):
        read_log(_file(tmp_path, b"\xef\xbb\xbf", "log.csv"))


def test_a_folder_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="this is a folder; give its files"):
        read_log(tmp_path)


def test_a_missing_file_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="there is no such file"):
        read_log(tmp_path / "nothing.tsv")


@pytest.fixture
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Be an ordinary user in a folder of one's own for a while: root may read everything."""
    monkeypatch.chdir(tmp_path)
    if os.geteuid() != 0:
        yield
        return
    os.chown(tmp_path, 65534, -1)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.usefixtures("own_folder")
@pytest.mark.parametrize("name", ["log.tsv", "log[1].tsv"])
def test_a_file_without_permission_is_a_clear_error(name: str) -> None:
    path = _file(Path(), TEXT, name)
    assert read_log(path).n_rows
    path.chmod(0)
    with pytest.raises(BadFile, match="no permission"):
        read_log(path)


@pytest.mark.usefixtures("own_folder")
def test_a_file_in_a_folder_without_permission_is_a_clear_error() -> None:
    folder = Path("closed")
    folder.mkdir()
    path = _file(folder, TEXT, "log.tsv")
    assert read_log(path).n_rows
    folder.chmod(0)
    try:
        with pytest.raises(BadFile, match="no permission"):
            read_log(path)
    finally:
        folder.chmod(0o700)


@pytest.mark.parametrize("name", ["x" * 5000, "log\0.tsv"])
def test_a_name_that_no_file_can_have_is_a_clear_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadFile, match="cannot be opened"):
        read_log(tmp_path / name)


def test_a_glob_reads_its_files_in_order(tmp_path: Path) -> None:
    for name in ("b", "a", "c"):
        _file(tmp_path, gzip.compress(HEADER + f"{name}\tkettle\t\t\t\n".encode()), f"{name}.tsv.gz")
    assert read_log(str(tmp_path / "*.tsv.gz")).frame["user"].to_list() == ["a", "b", "c"]


def test_a_glob_that_matches_nothing_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="no file matches"):
        read_log(str(tmp_path / "*.tsv"))


def test_a_file_whose_name_looks_like_a_glob_is_read(tmp_path: Path) -> None:
    assert read_log(_file(tmp_path, TEXT, "log[1].tsv")).n_rows == 20_000


def test_a_list_of_files_is_read_in_its_order_and_bad_rows_name_their_file(tmp_path: Path) -> None:
    one = _file(tmp_path, HEADER + b"1\tx\t\t\t\nbad\n", "one.tsv")
    two = _file(tmp_path, HEADER + b"bad\n2\tx\t\t\t\n", "two.tsv")
    log = read_log([two, one], bad_rows="skip")
    assert log.frame["user"].to_list() == ["2", "1"]
    assert log.reading.n_bad_rows_skipped == 2


def test_an_empty_list_is_a_clear_error() -> None:
    with pytest.raises(BadFile, match="at least one file"):
        read_log([])


def test_files_of_different_formats_are_not_mixed(tmp_path: Path) -> None:
    one = _file(tmp_path, TEXT, "one.tsv")
    two = _file(tmp_path, b"user,query\n1,x\n", "two.csv")
    with pytest.raises(BadFile, match=r"two.csv: this file is csv, the first was aol"):
        read_log([one, two])


def test_files_of_different_columns_are_not_mixed(tmp_path: Path) -> None:
    one = _file(tmp_path, b"user,query\n1,x\n", "one.csv")
    two = _file(tmp_path, b"query,user\n1,x\n", "two.csv")
    with pytest.raises(BadFile, match=r"two.csv: its columns differ"):
        read_log([one, two])


@pytest.mark.parametrize("data", [TEXT, gzip.compress(TEXT)], ids=["plain", "gzip"])
def test_stdin_is_read_as_bytes(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert read_log("-").n_rows == 20_000
