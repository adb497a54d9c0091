"""The program run in this process and in one of its own, and a small log to run it on."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from queryveil.cli import main

Run = Callable[..., CompletedProcess[str]]

WORDS = ("kestrel", "lantern", "mulberry", "nutmeg")


@pytest.fixture
def log_file(tmp_path: Path) -> Path:
    """An AOL file: 12 users who share most terms, and one term each that nobody else has."""
    rows = ["AnonID\tQuery\tQueryTime\tItemRank\tClickURL"]
    for i in range(12):
        user = f"persona{i:02}"
        rows += [
            f"{user}\t{WORDS[j % 4]} {WORDS[(j + 1) % 4]}\t2006-03-0{j + 1} 07:1{j}:00\t{j}\thttps://shop.example/{i}"
            for j in range(3)
        ]
        rows.append(f"{user}\trarity{chr(97 + i)}\t2006-03-05 12:00:00\t\t")
    path = tmp_path / "log.tsv"
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the program in this process."""

    def run_here(*arguments: object) -> CompletedProcess[str]:
        command = [str(argument) for argument in arguments]
        capsys.readouterr()
        with pytest.raises(SystemExit) as stopped:
            main(command)
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        assert isinstance(stopped.value.code, int)
        return CompletedProcess(command, stopped.value.code, out, err)

    return run_here


@pytest.fixture
def run_apart() -> Run:
    """Run the program as a process of its own, as a shell would."""

    def run_there(*arguments: object, stdin: bytes = b"", **variables: str) -> CompletedProcess[str]:
        command = [sys.executable, "-m", "queryveil", *map(str, arguments)]
        done = subprocess.run(command, input=stdin, capture_output=True, check=False, env=os.environ | variables)
        out, err = done.stdout.decode(), done.stderr.decode()
        assert "Traceback" not in out + err
        return CompletedProcess(command, done.returncode, out, err)

    return run_there


@pytest.fixture
def refused(run: Run) -> Callable[..., str]:
    """Run what must be refused with exit 2 and one line on stderr; give that line."""

    def refuse(*arguments: object) -> str:
        done = run(*arguments)
        assert (done.returncode, done.stdout) == (2, "")
        lines = done.stderr.splitlines()
        assert len(lines) == 1
        assert lines[0].startswith("queryveil: ")
        assert not any(text in done.stderr.lower() for text in (*WORDS, "rarity", "persona", "shop.example"))
        return lines[0].removeprefix("queryveil: ")

    return refuse


@pytest.fixture
def release(run: Run, log_file: Path, tmp_path: Path) -> Path:
    """A release folder of the log."""
    folder = tmp_path / "release"
    assert run("anonymize", "km", log_file, "-o", folder, "--k", 3, "--m", 2).returncode == 0
    return folder
