"""`queryveil classify`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

Run = Callable[..., CompletedProcess[str]]
Refused = Callable[..., str]


@pytest.fixture
def queries(tmp_path: Path) -> Path:
    path = tmp_path / "log.csv"
    path.write_text(
        "user,query\npersona1,artic monkeys\npersona1,call 212-555-0143 about soccer\npersona2,\npersona2,219-09-9999\n"
    )
    return path


def test_each_row_has_its_category_its_unit_and_what_was_removed(run: Run, queries: Path) -> None:
    done = run("classify", queries)
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.split() for line in done.stdout.splitlines()]
    assert lines[1][:4] == ["1", "Arts", "arctic", "monkeys"]
    assert lines[2] == ["2", "Sports", "soccer", "phone"]
    assert lines[3][:2] == ["3", "Unclassified"]
    assert "with a category             2 (100 %)" in done.stdout
    assert "of nothing but identifiers  1" in done.stdout
    assert "phone 1, ssn 1" in done.stdout
    assert "555" not in done.stdout


def test_json_is_a_line_for_each_row_and_one_of_shares(run: Run, queries: Path) -> None:
    *rows, last = (json.loads(line) for line in run("classify", queries, "--json").stdout.splitlines())
    assert rows[0] == {"row": 1, "category": "Arts", "main_unit": "arctic monkeys", "removed": []}
    assert rows[1]["removed"] == ["phone"]
    assert rows[2] == {"row": 3, "category": "Unclassified", "main_unit": None, "removed": []}
    assert last == {"n_rows": 4, "shares": {"Arts": 0.25, "Sports": 0.25, "Unclassified": 0.5}}


def test_the_paper_s_classifier_can_be_asked_for(run: Run, queries: Path) -> None:
    first = json.loads(run("classify", queries, "--classifier", "paper", "--json").stdout.splitlines()[0])
    assert (first["category"], first["main_unit"]) == ("Regional", "arctic")


def test_own_tables_are_read(run: Run, queries: Path, tmp_path: Path) -> None:
    own = tmp_path / "own.csv"
    own.write_text("unit,category\nmonkey,Science\n")
    first = json.loads(run("classify", queries, "--categories", own, "--json").stdout.splitlines()[0])
    assert (first["category"], first["main_unit"]) == ("Science", "monkey")


def test_wrong_settings_and_tables_are_one_line(refused: Refused, queries: Path, tmp_path: Path) -> None:
    assert refused("classify", queries, "--classifier", "best") == "classifier must be evidence or paper, got best"
    (tmp_path / "own.csv").write_text("unit\nkestrel\n")
    assert refused("classify", queries, "--categories", tmp_path / "own.csv") == (
        "own.csv: there is no column category; this table has the columns unit, category, weight"
    )


def test_an_empty_log_is_a_fine_log(run: Run, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("user,query\n")
    done = run("classify", tmp_path / "log.csv")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(run("classify", tmp_path / "log.csv", "--json").stdout) == {"n_rows": 0, "shares": {}}
