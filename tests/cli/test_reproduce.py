"""`queryveil reproduce`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

pytestmark = pytest.mark.slow

Run = Callable[..., CompletedProcess[str]]
Refused = Callable[..., str]


def test_a_table_is_printed_and_repeats(run: Run) -> None:
    first, second = (run("reproduce", "km-table3", "--users", 300) for _ in range(2))
    assert (first.returncode, first.stderr) == (0, "")
    assert first.stdout == second.stdout
    assert len(first.stdout.splitlines()) > 3


def test_json_holds_the_table(run: Run) -> None:
    done = run("reproduce", "km-table3", "--users", 300, "--json")
    table = json.loads(done.stdout)
    assert done.returncode == 0
    assert all(len(row) == len(table["columns"]) for row in table["rows"])


def test_a_figure_of_groups_of_users_is_printed(run: Run) -> None:
    done = run("reproduce", "kdelta-fig2", "--users", 50, "--json")
    table = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    assert table["columns"][-2] == "50 users"
    assert "kdelta-fig1" in run("reproduce", "--help").stdout


def test_wrong_usage_is_one_line(refused: Refused, tmp_path: Path) -> None:
    assert "name must be one of km-table3" in refused("reproduce", "km-table99")
    assert "there is no such file" in refused("reproduce", "km-table3", tmp_path / "nowhere.tsv")
    assert "users must be 1 or more" in refused("reproduce", "km-table3", "--users", -1)
    assert "there is no such file or folder" in refused("reproduce", "plink-fig2", "--corpus", tmp_path / "nowhere")
    assert refused("reproduce") == "Missing argument 'NAME'."


def test_a_given_corpus_is_searched(run: Run, refused: Refused, tmp_path: Path) -> None:
    words = ("recipe", "music", "garden", "doctor", "computer", "lamp")
    lines = [{"text": " ".join({words[i % 6], words[i % 5], words[i % 4]})} for i in range(240)]
    corpus = tmp_path / "docs.jsonl"
    corpus.write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")
    done = run("reproduce", "plink-fig5", "--users", 300, "--corpus", corpus, "--json")
    assert done.returncode == 0
    assert "the corpus: a corpus that was given, 240 documents" in json.loads(done.stdout)["notes"]
    assert "corpus must be left out for km-table3" in refused(
        "reproduce", "km-table3", "--users", 300, "--corpus", corpus
    )
