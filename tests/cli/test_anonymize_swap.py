"""`queryveil anonymize swap`."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from queryveil.release import read_release

Run = Callable[..., CompletedProcess[str]]
Refused = Callable[..., str]


def test_a_log_is_swapped_and_verified_with_the_key_beside_it(run: Run, log_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = run("anonymize", "swap", log_file, "-o", out, "--k", 4)
    assert done.returncode == 0
    assert "handed to somebody who never asked it" in done.stdout
    assert f"verify {out} --original LOG" in done.stderr
    assert f"key of the user ids: {out}.key" in done.stderr
    assert not any(text in done.stdout + done.stderr for text in ("kestrel", "rarity", "persona"))
    assert run("verify", out, "--original", log_file).returncode == 0
    release = read_release(out)
    assert 0 < release.log.n_rows < 48
    assert not release.log.frame["user"].str.starts_with("persona").any()


def test_a_fresh_key_is_for_its_owner_only_and_not_in_the_release(run: Run, log_file: Path, tmp_path: Path) -> None:
    run("anonymize", "swap", log_file, "-o", tmp_path / "out", "--k", 4)
    key = tmp_path / "out.key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert len(key.read_bytes()) == 32
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == ["log.tsv", "manifest.json"]
    assert not [file for file in tmp_path.iterdir() if "partial" in file.name]


def test_no_key_is_overwritten_but_with_force(run: Run, refused: Refused, log_file: Path, tmp_path: Path) -> None:
    key = tmp_path / "out.key"
    key.write_bytes(b"an older secret of the house")
    said = refused("anonymize", "swap", log_file, "-o", tmp_path / "out")
    assert "is already there; use it with --key, or replace it with --force" in said
    assert not (tmp_path / "out").exists()
    assert run("anonymize", "swap", log_file, "-o", tmp_path / "out", "--key", key).returncode == 0
    assert key.read_bytes() == b"an older secret of the house"
    assert run("anonymize", "swap", log_file, "-o", tmp_path / "out", "--force").returncode == 0
    assert len(key.read_bytes()) == 32


def test_a_run_that_fails_leaves_no_key(refused: Refused, log_file: Path, tmp_path: Path) -> None:
    assert "l must be between 2 and k" in refused("anonymize", "swap", log_file, "-o", tmp_path / "out", "--l", 11)
    refused("anonymize", "swap", tmp_path / "nothing.tsv", "-o", tmp_path / "out")
    assert [file.name for file in tmp_path.iterdir()] == [log_file.name]


def test_with_other_ids_there_is_no_key(run: Run, log_file: Path, tmp_path: Path) -> None:
    for ids in ("fresh", "keep"):
        done = run("anonymize", "swap", log_file, "-o", tmp_path / ids, "--ids", ids, "--k", 4)
        assert done.returncode == 0
        assert "key of the user ids" not in done.stderr
        assert not (tmp_path / f"{ids}.key").exists()
    assert run("verify", tmp_path / "keep", "--original", log_file).returncode == 0
    assert run("verify", tmp_path / "fresh", "--original", log_file).returncode == 2


def test_all_settings_reach_the_manifest(run: Run, log_file: Path, tmp_path: Path) -> None:
    done = run(
        "anonymize", "swap", log_file, "-o", tmp_path / "out", "--k", 4, "--l", 2, "--growth", 1.5, "--max-pool", 9,
        "--repeats", "all", "--window", "12h", "--drain", "release", "--unclassified", "drop", "--order", "file",
        "--classifier", "paper", "--seed", 3, "--json",
    )  # fmt: skip
    manifest = json.loads(done.stdout)
    assert manifest["parameters"] == {
        "k": 4,
        "l": 2,
        "growth": 1.5,
        "max_pool": 9,
        "shrink": True,
        "repeats": "all",
        "window": "12h",
        "min_query_users": 1,
        "drain": "release",
        "unclassified": "drop",
        "order": "file",
        "classifier": "paper",
    }
    assert any("seed" in warning for warning in manifest["warnings"])


def test_own_tables_are_taken_and_asked_for_again_by_the_checker(
    run: Run, refused: Refused, log_file: Path, tmp_path: Path
) -> None:
    table = tmp_path / "categories.csv"
    table.write_text("unit,category,weight\nkestrel,Science,1\nlantern,Home,1\nmulberry,Home,1\nnutmeg,Home,1\n")
    out = tmp_path / "out"
    assert run("anonymize", "swap", log_file, "-o", out, "--k", 4, "--categories", table).returncode == 0
    assert read_release(out).manifest.parameters["classifier"] == "own tables"
    assert "tables of your own" in refused("verify", out, "--original", log_file)
    assert run("verify", out, "--original", log_file, "--categories", table).returncode == 0


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--drain", "leak", "drain must be suppress or release"),
        ("--unclassified", "keep", "unclassified must be pool or drop"),
        ("--order", "size", "order must be time or file"),
        ("--classifier", "guess", "classifier must be evidence or paper"),
        ("--growth", "1", "growth must be above 1"),
        ("--max-pool", "3", "max_pool must be at least k"),
    ],
)
def test_a_wrong_option_is_one_line(
    refused: Refused, log_file: Path, tmp_path: Path, option: str, value: str, message: str
) -> None:
    assert message in refused("anonymize", "swap", log_file, "-o", tmp_path / "out", option, value)
