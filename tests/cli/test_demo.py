"""`queryveil demo`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from queryveil.checks import verify
from queryveil.release import read_release

pytestmark = pytest.mark.slow

Run = Callable[..., CompletedProcess[str]]
Refused = Callable[..., str]


def test_it_ends_well_and_says_and_keeps_what_happened(run: Run, tmp_path: Path) -> None:
    home = tmp_path / "a" / "b"
    done = run("demo", "--users", 300, "-o", home)
    assert (done.returncode, done.stderr) == (0, "")
    for beginning in (
        "A made-up search log",
        "Before",
        "After",
        "Promise",
        "Verdict (5, 2)-anonymity holds",
        "Cost",
        "Next",
    ):
        assert any(line.startswith(beginning) for line in done.stdout.splitlines()), beginning
    assert "3 of 3 people whose name and town we know were found" in done.stdout
    assert "0 of 3 people whose name and town we know were found" in done.stdout
    for method in ("km", "kdelta", "plink", "clump", "partition", "swap", "pseudonymise", "token_hash"):
        assert any(line.startswith(method) for line in done.stdout.splitlines()), method
    assert "BROKEN" not in done.stdout
    assert "failed" not in done.stdout

    assert {path.name for path in home.iterdir()} == {"log.tsv", "log.tsv.secrets.jsonl", "release", "comparison"}
    assert verify(read_release(home / "release")).holds
    assert "The promise holds" in (home / "release" / "report.html").read_text(encoding="utf-8")
    assert "<svg" in (home / "comparison" / "compare.html").read_text(encoding="utf-8")


def test_without_opendp_its_method_is_left_out_in_one_line(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As Python treats a package that cannot be imported.
    monkeypatch.setitem(sys.modules, "opendp", None)
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    monkeypatch.setattr("queryveil.comparison.plan._DEFAULT", {"dp": ({},), "km": ({"k": 5, "m": 2},)})
    done = run("demo", "--users", 200, "-o", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "dp is left out: pip install 'queryveil[dp]'\n" in done.stdout
    assert "failed" not in done.stdout


def test_json_says_the_same_and_an_earlier_demo_is_replaced_if_forced(
    run: Run, refused: Refused, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # All methods side by side are shown by the demo above.
    few: dict[str, object] = {"km": ({"k": 5, "m": 2},), "pseudonymise": ({},)}
    monkeypatch.setattr("queryveil.comparison.plan._DEFAULT", few)
    (tmp_path / "log.tsv").write_text("mine")
    assert "is already there" in refused("demo", "--users", 300, "-o", tmp_path)
    assert (tmp_path / "log.tsv").read_text() == "mine"
    assert not (tmp_path / "release").exists()

    done = run("demo", "--users", 300, "-o", tmp_path, "--force", "--json")
    told = json.loads(done.stdout)
    assert done.returncode == 0
    found = (told["verdict"]["holds"], told["n_planted"], told["n_found_before"], told["n_found_after"])
    assert found == (True, 3, 3, 0)
    assert told["report"]["state"] == "holds"
    assert {run["standing"] for run in told["comparison"]["runs"]} == {"holds", "promises nothing"}
    assert "is already there" in refused("demo", "--users", 300, "-o", tmp_path)


def test_wrong_usage_is_one_line(refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    assert "users must be 1 or more" in refused("demo", "--users", 0, "-o", tmp_path / "new")
    assert "File exists" in refused("demo", "-o", tmp_path / "file")
