"""`queryveil verify`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

Run = Callable[..., CompletedProcess[str]]
Refused = Callable[..., str]


def put_in(release: Path, line: str) -> None:
    """Add a row to the data and make the manifest fit, as a careful forger would."""
    data, manifest = release / "log.tsv", release / "manifest.json"
    data.write_text(data.read_text() + line)
    said = json.loads(manifest.read_text())
    said["data"]["sha256"] = hashlib.sha256(data.read_bytes()).hexdigest()
    manifest.write_text(json.dumps(said))


@pytest.fixture
def broken(release: Path) -> Path:
    put_in(release, "99\tquincebread\t2006-03-01 00:00:00\t\t\n")
    return release


def test_a_promise_that_holds_is_exit_0(run: Run, release: Path) -> None:
    done = run("verify", release)
    assert (done.returncode, done.stdout, done.stderr) == (0, "The promise holds for 12 users.\n", "")


def test_a_promise_that_is_broken_is_exit_1_and_no_text_is_shown(run: Run, broken: Path) -> None:
    done = run("verify", broken)
    assert done.returncode == 1
    assert done.stdout.startswith("The promise is broken: 1 violation, for example a combination of 1 term")
    assert "row 37" in done.stdout
    assert "quincebread" not in done.stdout + done.stderr


def test_text_is_shown_only_when_asked_for(run: Run, broken: Path) -> None:
    done = run("verify", broken, "--show")
    assert done.returncode == 1
    assert "quincebread: a combination of 1 term is shared by 1 user, 3 are needed (row 37)" in done.stdout


def test_json_says_the_verdict_and_holds_text_only_with_show(run: Run, broken: Path) -> None:
    plain, shown = run("verify", broken, "--json"), run("verify", broken, "--json", "--show")
    verdict = json.loads(plain.stdout)
    assert (plain.returncode, verdict["holds"], verdict["n_violations"]) == (1, False, 1)
    assert "quincebread" not in plain.stdout
    assert json.loads(shown.stdout)["texts"][0].startswith("quincebread: ")


def test_data_that_was_changed_alone_is_wrong_input_and_not_a_broken_promise(refused: Refused, release: Path) -> None:
    with (release / "log.tsv").open("a") as file:
        file.write("99\tkestrel\t\t\t\n")
    assert "sha256 differs" in refused("verify", release)


def test_with_the_original_what_was_invented_is_found(run: Run, release: Path, log_file: Path) -> None:
    assert run("verify", release, "--original", log_file).returncode == 0
    for user in range(100, 103):
        put_in(release, f"{user}\tquincebread\t2006-03-01 00:00:00\t\t\n")
    assert run("verify", release).returncode == 0
    done = run("verify", release, "--original", log_file)
    assert done.returncode == 1
    assert "quincebread" not in done.stdout + done.stderr


def test_what_windows_cannot_tell_is_noted_on_stderr(run: Run, log_file: Path, tmp_path: Path) -> None:
    options = ["--k", 3, "--m", 1, "--window", "6h", "--time", "drop"]
    assert run("anonymize", "km", log_file, "-o", tmp_path / "out", *options).returncode == 0
    done = run("verify", tmp_path / "out")
    assert "note: " in done.stderr
    assert "note: " not in done.stdout


def test_what_is_no_release_is_exit_2(refused: Refused, tmp_path: Path, log_file: Path) -> None:
    assert "there is no such folder" in refused("verify", tmp_path / "nowhere")
    assert "there is no such folder" in refused("verify", log_file)
    assert "manifest.json is missing" in refused("verify", tmp_path)
    assert refused("verify") == "Missing argument 'DIR'."


def test_an_original_that_is_not_there_is_exit_2(refused: Refused, release: Path) -> None:
    assert "there is no such file" in refused("verify", release, "--original", "nowhere.tsv")


def test_the_exit_codes_are_those_of_a_real_process(run_apart: Run, release: Path, tmp_path: Path) -> None:
    assert run_apart("verify", release).returncode == 0
    put_in(release, "99\tquincechłeb\t2006-03-01 00:00:00\t\t\n")
    # A terminal without the letter shows its number, and the exit code is still that of the verdict.
    shown = run_apart("verify", release, "--show", PYTHONIOENCODING="latin-1")
    assert shown.returncode == 1
    assert "quincech\\u0142eb" in shown.stdout
    assert run_apart("verify", tmp_path / "nowhere").returncode == 2
