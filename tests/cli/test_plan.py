"""`queryveil plan`: what it prints, writes and exits with."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

pytestmark = pytest.mark.slow

Run = Callable[..., CompletedProcess[str]]
Refused = Callable[..., str]

FEW = """
purpose = "advertising"
limit = 0.6
readers = ["acquaintance"]

[[run]]
name = "kdelta k=5 same_texts"
method = "kdelta"
k = 5
same_texts = true
"""


@pytest.fixture
def searches(run: Run, tmp_path: Path) -> Path:
    path = tmp_path / "searches.tsv"
    assert run("synth", path, "--users", 250, "--seed", 4, "--values").returncode == 0
    (tmp_path / "few.toml").write_text(FEW, encoding="utf-8")
    return path


def test_a_release_its_report_and_the_reasons_are_made(run: Run, searches: Path, tmp_path: Path) -> None:
    values, few, out = tmp_path / "searches.tsv.values.csv", tmp_path / "few.toml", tmp_path / "out"
    done = run("plan", searches, "--plan", few, "--values", values, "--jobs", 1, "-o", out)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].endswith("exposing at most 60 % to acquaintance: kdelta k=5 same_texts")
    assert "    queryveil anonymize kdelta LOG -o DIR --k 5 --same-texts" in lines
    assert any(line.startswith("Keeps     revenue kept ") for line in lines)
    assert any(line.startswith("Exposure  ") for line in lines)
    assert run("verify", out / "release").returncode == 0
    assert {path.name for path in out.iterdir()} == {"plan.toml", "search.json", "table.csv", "search", "release"}
    assert (out / "release" / "report.html").is_file()


def test_where_nothing_qualifies_it_exits_with_1_and_writes_no_release(
    run: Run, searches: Path, tmp_path: Path
) -> None:
    values, few, out = tmp_path / "searches.tsv.values.csv", tmp_path / "few.toml", tmp_path / "out"
    given = ("--except", "likely_terms=they are in no phone book, we think", "--limit", "1%", "--json")
    done = run("plan", searches, "--plan", few, "--values", values, "--jobs", 1, "-o", out, *given)
    assert done.returncode == 1, done.stderr
    figures = json.loads(done.stdout)
    assert figures["chosen"] is None
    assert figures["wanted"]["exceptions"] == {"likely_terms": "they are in no phone book, we think"}
    assert figures["n_targets_needed"] == 381
    assert not (out / "release").exists()


def test_wrong_usage_is_one_line(refused: Refused, log_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert "for must be what the release is for" in refused("plan", log_file, "-o", out)
    assert "--values FILE" in refused("plan", log_file, "--for", "advertising", "-o", out)
    assert "limit must be a share" in refused("plan", log_file, "--for", "trends", "--limit", "5", "-o", out)
    assert "except must be an attacker with the reason why" in refused(
        "plan", log_file, "--for", "trends", "--except", "sybil", "-o", out
    )
    assert not out.exists()
