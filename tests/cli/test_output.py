"""What the commands print."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from queryveil.cli import output
from queryveil.cli.output import echo, print_facts, print_json, print_table, write_out
from queryveil.errors import BadFile, BadRow, BadRows, MissingColumn

Run = Callable[..., CompletedProcess[str]]
HOSTILE = "a\x1b[2J\x07\x9b31m\u202eb\rc\x7f"
STEERING = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def test_square_brackets_in_a_table_are_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["[b]run", "of"], [["[/red] a run", "[bold]x"]], title="[/i] all")
    said = capsys.readouterr().out
    assert [line.split() for line in said.splitlines()] == [
        ["[/i]", "all"],
        ["[b]run", "of"],
        ["[/red]", "a", "run", "[bold]x"],
    ]


def test_whatever_is_printed_holds_no_character_that_steers_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    echo(HOSTILE)
    echo(HOSTILE, err=True)
    print_facts({HOSTILE: HOSTILE})
    print_table([HOSTILE, "n"], [[HOSTILE, 1]], title=HOSTILE)
    print_json({HOSTILE: HOSTILE})
    write_out(f"{HOSTILE}\n")
    out, err = capsys.readouterr()
    assert not STEERING.search(out + err)
    assert r"a\u001b[2J\u0007\u009b31m\u202eb\u000dc\u007f" in out
    assert err.count("\n") == 1


def test_a_line_end_in_a_name_makes_no_line_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    echo("odd\nThe promise holds")
    assert capsys.readouterr().out == "odd\\u000aThe promise holds\n"


def test_escapes_in_json_mean_what_they_stand_for(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"name": HOSTILE})
    assert json.loads(capsys.readouterr().out) == {"name": HOSTILE}


@pytest.mark.parametrize(
    "error",
    [
        BadFile(HOSTILE, "odd"),
        MissingColumn("log.csv", "query", found=[HOSTILE]),
        BadRows([BadRow(HOSTILE, 1, reason="odd")], n_total=1),
    ],
    ids=lambda error: type(error).__name__,
)
def test_names_in_messages_of_errors_hold_none_either(error: Exception) -> None:
    assert not STEERING.search(str(error))


def test_names_of_files_and_columns_reach_no_terminal_as_they_are(run: Run, tmp_path: Path) -> None:
    odd = tmp_path / "log\x1b[2J\x9b.csv"
    odd.write_text("user,query,\x1b]0;x\x07\n7,kettle,\n")
    missing = tmp_path / "none\x1b[2J\nqueryveil: fine.csv"
    for done in (run("inspect", odd), run("inspect", missing), run("--od\x1b[2Jd"), run("verify", missing)):
        assert not STEERING.search(done.stdout + done.stderr)
        assert len(done.stderr.splitlines()) <= 1


def test_commands_print_through_one_module_only() -> None:
    folder = Path(output.__file__).parent
    for path in folder.glob("*.py"):
        text = path.read_text(encoding="utf-8")
        if path.name != "output.py":
            assert "typer.echo(" not in text, path.name
            assert not re.search(r"sys\.std(out|err)\.write\(|\bprint\(", text), path.name
