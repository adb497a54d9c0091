"""`queryveil anonymize` for the methods of practice: made, verified, attacked and measured from the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from queryveil.release import read_release

Run = Callable[..., CompletedProcess[str]]
Refused = Callable[..., str]

METHODS = {
    "google-2024": ["--n-users", "2", "--n-row-users", "2"],
    "ec-2026": ["--n-users", "2", "--cell-users", "2"],
    "ddg-2026": [],
    "brave-wdp": [],
    "mozilla": ["--english", "0"],
}
SECRET_TEXTS = ("kestrel", "persona", "shop.example")


@pytest.mark.parametrize("name", METHODS)
def test_a_release_is_made_verified_attacked_and_measured(run: Run, log_file: Path, tmp_path: Path, name: str) -> None:
    out = tmp_path / "out"
    made = run("anonymize", name, log_file, "-o", out, *METHODS[name])
    assert made.returncode == 0, made.stderr
    assert read_release(out).manifest.method == name.replace("-", "_")
    judged = run("verify", out, "--original", log_file)
    assert judged.returncode == (2 if name == "ddg-2026" else 0), judged.stdout
    attacked, measured = (run(verb, log_file, out) for verb in ("attack", "measure"))
    reported = run("report", out, "--original", log_file)
    for done in (attacked, measured, reported):
        assert done.returncode == 0, done.stderr
    said = made.stdout + made.stderr + judged.stdout + attacked.stdout + attacked.stderr + measured.stdout
    assert not any(text in said for text in SECRET_TEXTS)
    needs_log = name in ("google-2024", "ec-2026")
    assert ("--original LOG" in made.stderr) is needs_log


def test_a_promise_about_users_who_are_gone_is_judged_beside_the_original_alone(
    run: Run, refused: Refused, log_file: Path, tmp_path: Path
) -> None:
    for name in ("google-2024", "ec-2026"):
        assert run("anonymize", name, log_file, "-o", tmp_path / name, *METHODS[name]).returncode == 0
        line = refused("verify", tmp_path / name)
        assert line == "who asked what is released can only be counted in the original: add --original LOG"


def test_settings_that_make_no_sense_are_one_line(refused: Refused, log_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    line = refused("anonymize", "google-2024", log_file, "-o", out, "--within", "13m")
    assert line == "within must be a number and a unit: 12h, 1d, 7d, 2w, got 13m"
    line = refused("anonymize", "ec-2026", log_file, "-o", out, "--ids", "keep")
    assert line == "ids must be fresh or keyed: kept ids would join what was taken apart, got keep"
    line = refused("anonymize", "mozilla", log_file, "-o", out, "--engine", "spark")
    assert line.startswith("mozilla on Spark: not yet, because")
