"""Who is in which group: a private file, written whole or not at all."""

from __future__ import annotations

import hashlib
import stat
from pathlib import Path

import polars as pl
import pytest

from queryveil.errors import BadFile, BadParameter
from queryveil.formats.aggregates import check_membership, read_membership, written_membership
from queryveil.formats.atomic_folders import whole

WHO = pl.DataFrame({"user": ["007", 'a "quoted", one', "größe"], "group": [2, 1, 2]})


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_a_membership_is_the_same_when_read_back_and_only_its_owner_can_read_it(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"who.{ending}"
    with written_membership(WHO, path) as beside, whole(tmp_path / "out", force=False, beside=beside) as release:
        (release / "manifest.json").write_bytes(b"{}")
        assert not path.exists()
    assert read_membership(path).equals(WHO)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert sorted(file.name for file in tmp_path.iterdir()) == ["out", path.name]


def test_a_membership_that_a_killed_run_could_not_name_is_found_by_its_release(tmp_path: Path) -> None:
    path, release = tmp_path / "who.csv", tmp_path / "out"
    path.write_text("user,group\nold,1\n")
    release.mkdir()
    (release / "manifest.json").write_bytes(b"{}")
    label = hashlib.sha256(b"{}").hexdigest()[:32]
    for waits, user in ((label, "new"), ("of another release", "other")):
        (tmp_path / f".who.csv.for-{waits}").write_text(f"user,group\n{user},1\n")
    assert read_membership(path, release=release)["user"].to_list() == ["new"]
    assert read_membership(path)["user"].to_list() == ["new"]


def test_nothing_is_left_and_nothing_replaced_if_the_release_fails(tmp_path: Path) -> None:
    path = tmp_path / "who.csv"
    path.write_text("user,group\nold,1\n")
    with pytest.raises(BadParameter), written_membership(WHO, path):
        raise BadParameter("k", 1, allowed="2 or more")
    assert path.read_text() == "user,group\nold,1\n"
    assert [file.name for file in tmp_path.iterdir()] == ["who.csv"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("who.xlsx", "a file that ends in .csv, .jsonl, .parquet"),
        ("release/who.csv", "a file outside the release folder"),
        ("release/deep/who.csv", "a file outside the release folder"),
        ("nowhere/who.csv", "a file in a folder that is there"),
    ],
)
def test_a_place_where_a_membership_must_not_stand_is_refused(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(BadParameter, match=message):
        check_membership(tmp_path / name, release=tmp_path / "release", force=False)


def test_neither_the_release_nor_what_is_read_is_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "profiles.jsonl"
    path.write_text("{}\n")
    with pytest.raises(BadParameter, match="another file than the one that is read"):
        check_membership(path, release=tmp_path / "release", inputs=[str(path)], force=True)
    with pytest.raises(BadParameter, match="outside the release folder"):
        check_membership(tmp_path / "x.csv", release=tmp_path / "x.csv", force=False)


def test_a_membership_that_is_there_is_replaced_only_by_force(tmp_path: Path) -> None:
    path = tmp_path / "who.csv"
    path.write_text("user,group\n")
    with pytest.raises(BadFile, match="already there"):
        check_membership(path, release=tmp_path / "release", force=False)
    check_membership(path, release=tmp_path / "release", force=True)


@pytest.mark.parametrize("content", ["who,what\nsecret,1\n", "user,group\nsecret,many\n", ""])
def test_a_file_that_is_no_membership_is_a_clear_error_without_its_text(tmp_path: Path, content: str) -> None:
    path = tmp_path / "who.csv"
    path.write_text(content)
    with pytest.raises(BadFile, match="not a membership file") as caught:
        read_membership(path)
    assert "secret" not in str(caught.value)
    with pytest.raises(BadFile, match="no such file"):
        read_membership(tmp_path / "gone.csv")
