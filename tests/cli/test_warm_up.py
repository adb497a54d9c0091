"""`queryveil warm-up`."""

from __future__ import annotations

import json
from collections.abc import Callable
from subprocess import CompletedProcess

import pytest

Run = Callable[..., CompletedProcess[str]]


@pytest.mark.slow
def test_it_compiles_ahead_and_finds_all_compiled_the_second_time(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("queryveil.comparison.warming.METHODS", ("pseudonymise",))
    first, second = run("warm-up"), run("warm-up")
    assert (first.returncode, second.returncode) == (0, 0)
    assert "compiled" in first.stdout
    assert (second.stdout, second.stderr) == ("everything was compiled before\n", "")
    assert json.loads(run("warm-up", "--json").stdout) == {"n_compiled": 0}
