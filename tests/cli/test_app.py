"""The program itself: help, version, exit codes, and where its output goes."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
import typer.main

from queryveil import __version__
from queryveil.cli import app

Run = Callable[..., CompletedProcess[str]]
Refused = Callable[..., str]


def commands(command: Any = None, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Return every command with the words that lead to it."""
    command = command or typer.main.get_command(app)
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, (*path, name))


@pytest.mark.parametrize("path", [path for path, _ in commands()], ids=" ".join)
def test_the_help_of_every_command_lists_its_options_and_fits_a_screen(
    run: Run, path: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", 80)
    done = run(*path, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) <= 52
    command = dict(commands())[path]
    shown = [parameter for parameter in command.params if not getattr(parameter, "hidden", False)]
    options = [option for parameter in shown for option in parameter.opts if option.startswith("--")]
    assert shown or hasattr(command, "commands")
    for option in options:
        assert option in done.stdout
    for name in getattr(command, "commands", {}):
        assert f" {name} " in done.stdout


@pytest.mark.parametrize("path", [path for path, _ in commands()], ids=" ".join)
def test_every_command_and_every_option_is_explained(path: tuple[str, ...]) -> None:
    command = dict(commands())[path]
    assert command.help
    for parameter in command.params:
        assert parameter.help, parameter.name


def test_the_commands_are_the_verbs() -> None:
    verbs = [" ".join(path) for path, command in commands() if not hasattr(command, "commands")]
    assert sorted(verbs) == [
        "anonymize brave-wdp",
        "anonymize clump",
        "anonymize ddg-2026",
        "anonymize dp",
        "anonymize ec-2026",
        "anonymize google-2024",
        "anonymize kdelta",
        "anonymize km",
        "anonymize mozilla",
        "anonymize partition",
        "anonymize plink",
        "anonymize pseudonymise",
        "anonymize query-threshold",
        "anonymize swap",
        "anonymize token-hash",
        "attack",
        "classify",
        "compare",
        "demo",
        "inspect",
        "keygen",
        "measure",
        "plan",
        "profiles",
        "report",
        "reproduce",
        "serve",
        "sign",
        "stream",
        "synth",
        "verify",
        "warm-up",
    ]


def test_the_version_is_printed(run: Run) -> None:
    done = run("--version")
    assert (done.returncode, done.stdout) == (0, f"queryveil {__version__}\n")


def test_without_a_command_there_is_help_and_exit_2(run: Run) -> None:
    for words in ([], ["anonymize"]):
        done = run(*words)
        assert done.returncode == 2
        assert "Usage:" in done.stdout + done.stderr
        assert "queryveil: \n" not in done.stderr


def test_an_unknown_command_or_option_is_one_line(refused: Refused) -> None:
    assert refused("nosuch") == "No such command 'nosuch'."
    assert refused("--nosuch") == "No such option: --nosuch"


def test_whatever_goes_wrong_inside_is_one_line_without_its_message(
    refused: Refused, log_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("quoting the query kestrel")

    monkeypatch.setattr("queryveil.reports.inspection.inspect", fail)
    assert refused("inspect", log_file).startswith("a fault of queryveil itself (RuntimeError at test_app.py:")


def test_too_little_memory_is_one_line(refused: Refused, log_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("queryveil.reports.inspection.inspect", fail)
    assert refused("inspect", log_file).startswith("not enough memory")


def test_being_stopped_is_exit_130(run: Run, log_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("queryveil.reports.inspection.inspect", stop)
    done = run("inspect", log_file)
    assert done.returncode == 130
    assert done.stderr.strip() == "queryveil: stopped; nothing was released"


@pytest.mark.slow
def test_a_reader_that_has_gone_is_neither_a_traceback_nor_a_broken_promise(release: Path) -> None:
    for verb in ("verify", "inspect"):
        source = release if verb == "verify" else release / "log.tsv"
        readable, writable = os.pipe()
        os.close(readable)
        command = [sys.executable, "-m", "queryveil", verb, str(source)]
        done = subprocess.run(command, stdout=writable, stderr=subprocess.PIPE, check=False)
        os.close(writable)
        assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.slow
def test_output_that_cannot_be_written_is_one_line(log_file: Path) -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "queryveil", "inspect", str(log_file)]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False, text=True)
    assert (done.returncode, done.stderr) == (2, "queryveil: No space left on device\n")


def test_no_progress_is_shown_where_stderr_is_no_terminal(run_apart: Run, log_file: Path) -> None:
    done = run_apart("inspect", log_file, "--json", FORCE_COLOR="1", TTY_COMPATIBLE="1")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["n_rows"] == 48


SLOW_STEPS = """
import time
from queryveil import progress
from queryveil.cli.output import progress_bar
with progress_bar():
    for i in range(14):
        progress.step("counting", i / 14)
        time.sleep(0.1)
"""


@pytest.mark.slow
def test_progress_is_shown_on_a_terminal_once_the_work_has_taken_a_second() -> None:
    screen, terminal = pty.openpty()
    variables = os.environ | {"TERM": "xterm"}
    subprocess.run([sys.executable, "-c", SLOW_STEPS], stderr=terminal, check=True, env=variables)
    os.close(terminal)
    assert b"counting" in os.read(screen, 100_000)
    os.close(screen)
