"""What the commands print."""

from __future__ import annotations

import pytest

from queryveil.cli.output import print_table


def test_square_brackets_in_a_table_are_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["[b]run", "of"], [["[/red] a run", "[bold]x"]], title="[/i] all")
    said = capsys.readouterr().out
    assert [line.split() for line in said.splitlines()] == [
        ["[/i]", "all"],
        ["[b]run", "of"],
        ["[/red]", "a", "run", "[bold]x"],
    ]
