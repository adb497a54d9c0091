"""A file that is named twice is refused: everybody in it would count twice."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from queryveil.errors import NamedTwice
from queryveil.formats import read_log, read_profiles, read_transactions
from queryveil.service.connectors.file_sources import FilesSource


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "log.csv"
    path.write_text("user,query\npersona1,kestrel\n")
    (tmp_path / "hard.csv").hardlink_to(path)
    (tmp_path / "soft.csv").symlink_to(path)
    (tmp_path / "copy.csv").write_bytes(path.read_bytes())
    return path


@pytest.mark.parametrize(
    "names",
    [
        ["log.csv", "log.csv"],
        ["log.csv", "./log.csv"],
        ["log.csv", "hard.csv"],
        ["soft.csv", "log.csv"],
        ["copy.csv", "log.csv", "l*.csv"],
        ["*.csv"],
    ],
    ids=" ".join,
)
def test_by_whatever_name_a_file_is_read_once(log: Path, names: list[str]) -> None:
    with pytest.raises(NamedTwice, match="and everybody in it would count twice; name each file once") as caught:
        read_log(names)
    assert "\n" not in str(caught.value)
    assert "persona" not in str(caught.value)


def test_a_copy_is_another_file(log: Path) -> None:
    assert read_log(["log.csv", "copy.csv"]).n_rows == 2
    assert read_log("c*.csv").n_rows == 1


def test_transactions_profiles_and_streams_are_read_by_the_same_rule(log: Path) -> None:
    Path("items.txt").write_text("milk tea\n")
    with pytest.raises(NamedTwice):
        read_transactions(["items.txt", "./items.txt"])
    with pytest.raises(NamedTwice):
        read_log(["items.txt", "items.txt"], format="transactions")
    Path("people.jsonl").write_text('{"user": "u1", "terms": ["kitten"]}\n')
    with pytest.raises(NamedTwice):
        read_profiles(["people.jsonl", "people.jsonl"])
    with pytest.raises(NamedTwice):
        FilesSource("*.csv").open(position=None, keys=())


def test_stdin_is_a_file_too(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NamedTwice):
        read_log(["-", "-"])
    with log.open() as file:
        monkeypatch.setattr("sys.stdin", file)
        with pytest.raises(NamedTwice, match=r"^log\.csv: this is the same file as -"):
            read_log(["-", "log.csv"])


def test_what_is_not_there_is_said_to_be_missing_and_not_to_be_named_twice(log: Path) -> None:
    with pytest.raises(Exception, match="there is no such file"):
        read_log(["nowhere.csv", "nowhere.csv"])
    assert not os.path.lexists("nowhere.csv")
