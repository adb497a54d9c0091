"""`queryveil demo`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

from queryveil.release import read_release
from queryveil.verify import verify

Run = Callable[..., CompletedProcess[str]]
Refused = Callable[..., str]


def test_it_ends_well_and_says_what_happened(run: Run) -> None:
    done = run("demo", "--users", 600)
    assert (done.returncode, done.stderr) == (0, "")
    for beginning in (
        "A made-up search log",
        "Before",
        "After",
        "Promise",
        "Verdict The promise holds",
        "Cost",
        "Next",
    ):
        assert any(line.startswith(beginning) for line in done.stdout.splitlines()), beginning
    assert "3 of 3 people whose name and town we know were found" in done.stdout
    assert "0 of 3 people whose name and town we know were found" in done.stdout


def test_json_says_the_same(run: Run) -> None:
    done = run("demo", "--users", 300, "--json")
    told = json.loads(done.stdout)
    assert done.returncode == 0
    assert (told["verdict"]["holds"], told["n_planted"], told["n_found_before"], told["n_found_after"]) == (
        True,
        3,
        3,
        0,
    )


def test_the_files_are_kept_where_asked(run: Run, tmp_path: Path) -> None:
    assert run("demo", "--users", 300, "-o", tmp_path / "a" / "b").returncode == 0
    assert {path.name for path in (tmp_path / "a" / "b").iterdir()} == {"log.tsv", "log.tsv.secrets.jsonl", "release"}
    assert verify(read_release(tmp_path / "a" / "b" / "release")).holds


def test_files_that_are_there_are_left_alone_unless_forced(run: Run, refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "log.tsv").write_text("mine")
    assert "is already there" in refused("demo", "--users", 300, "-o", tmp_path)
    assert (tmp_path / "log.tsv").read_text() == "mine"
    assert not (tmp_path / "release").exists()
    assert run("demo", "--users", 300, "-o", tmp_path, "--force").returncode == 0
    assert run("demo", "--users", 300, "-o", tmp_path, "--force").returncode == 0


def test_wrong_usage_is_one_line(refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    assert "users must be 1 or more" in refused("demo", "--users", 0)
    assert "File exists" in refused("demo", "-o", tmp_path / "file")
