"""`queryveil inspect`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

Run = Callable[..., CompletedProcess[str]]
Refused = Callable[..., str]


def test_it_says_what_is_in_the_log(run: Run, log_file: Path) -> None:
    done = run("inspect", log_file)
    facts = {line.split("  ")[0]: line.split("  ")[-1].strip() for line in done.stdout.splitlines()}
    assert (done.returncode, done.stderr) == (0, "")
    assert facts["rows"] == "48"
    assert facts["users"] == "12"
    assert facts["terms"] == "16 in 84 occurrences"
    assert facts["time"] == "2006-03-01 07:10 to 2006-03-05 12:00"
    assert facts["users with 1 term nobody else has"] == "12 (100 %)"


def test_json_holds_the_figures_and_no_text(run: Run, log_file: Path) -> None:
    done = run("inspect", log_file, "--json", "--m", 2)
    found = json.loads(done.stdout)
    assert found["n_rows"] == 48
    assert found["alone"] == {"1": 12, "2": 12}
    assert not any(text in done.stdout for text in ("kestrel", "rarity", "persona", "shop.example"))


def test_k_changes_who_stands_alone(run: Run, log_file: Path) -> None:
    assert "fewer than 13 users have" in run("inspect", log_file, "--k", 13).stdout


def test_a_log_without_times_or_rows_is_no_trouble(run: Run, tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("user,query\n")
    done = run("inspect", log)
    assert done.returncode == 0
    assert "no times" in done.stdout


def test_the_log_may_come_from_stdin_and_from_several_files(run: Run, run_apart: Run, log_file: Path) -> None:
    (log_file.parent / "log2.tsv").write_bytes(log_file.read_bytes())
    apart = run_apart("inspect", "-", "--json", stdin=log_file.read_bytes())
    assert json.loads(apart.stdout)["n_rows"] == 48
    both = run("inspect", log_file.parent / "log*.tsv", "--json")
    assert json.loads(both.stdout)["n_rows"] == 96


def test_columns_name_the_roles(run: Run, refused: Refused, tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("a,b\npersona1,kestrel\n")
    assert "no column for the user" in refused("inspect", log)
    assert json.loads(run("inspect", log, "--columns", "user=a,query=b", "--json").stdout)["n_users"] == 1


def test_wrong_usage_is_one_line(refused: Refused, log_file: Path, tmp_path: Path) -> None:
    assert "there is no such file" in refused("inspect", "nowhere.tsv")
    assert "this is a folder" in refused("inspect", tmp_path)
    assert "k must be 2 or more" in refused("inspect", log_file, "--k", 1)
    assert "m must be 1, 2 or 3" in refused("inspect", log_file, "--m", 4)
    assert refused("inspect") == "Missing argument 'LOG...'."
    assert refused("inspect", log_file, "more") == "more: there is no such file"


def test_several_files_are_one_log(run: Run, log_file: Path) -> None:
    copy = log_file.with_name("copy.tsv")
    copy.write_bytes(log_file.read_bytes())
    once, twice = (json.loads(run("inspect", *files, "--json").stdout) for files in ([log_file], [log_file, copy]))
    assert twice["n_rows"] == 2 * once["n_rows"]
    assert twice["n_users"] == once["n_users"]


def test_rows_that_were_skipped_are_told(run: Run, log_file: Path) -> None:
    log_file.write_text(log_file.read_text() + "one\ttwo\n\t\n")
    done = run("inspect", log_file, "--bad-rows", "skip")
    assert ["bad", "rows", "skipped", "2"] in [line.split() for line in done.stdout.splitlines()]
    assert json.loads(run("inspect", log_file, "--bad-rows", "skip", "--json").stdout)["n_bad_rows_skipped"] == 2


def test_documents_of_other_indexes_are_told(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "log.ndjson"
    path.write_text('{"index": {"_index": "orders"}}\n{"client_id": "7", "user_query": "kettle"}\n')
    assert "documents of other indexes left out  1" in run("inspect", path, "--format", "ubi").stdout
