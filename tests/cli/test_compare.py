"""`queryveil compare`: what it prints, writes and exits with."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import polars as pl
import pytest
from tests.support.waiting import patience, until

pytestmark = pytest.mark.slow

Run = Callable[..., CompletedProcess[str]]
Refused = Callable[..., str]


@pytest.fixture
def searches(run: Run, tmp_path: Path) -> Path:
    path = tmp_path / "searches.tsv"
    assert run("synth", path, "--users", 200, "--seed", 3, "--values").returncode == 0
    return path


def test_a_table_the_best_run_and_its_command_are_printed_and_files_written(
    run: Run, searches: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    methods = ("--methods", "km:k=3:m=2,pseudonymise", "--jobs", 1)
    rule = ("--limit", "50%", "--reader", "recipient,site-owner")
    exceptions = ("--except", "fragments=texts may be seen", "--except", "vanity=two people say little")
    done = run("compare", searches, "-o", folder, *methods, *rule, *exceptions)
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0].split("  ")[0] == "run"
    assert " ".join(lines[0].split()) == "run outcome log size kept highest risk rejected by seconds"
    assert lines[1].split()[:4] == ["km", "k=3", "m=2", "best"]
    assert (
        "Best is km k=3 m=2: of the runs whose promise holds and in which no attacker (recipient, owner" in done.stdout
    )
    assert "Not considered: Texts of one person (fragments), because: texts may be seen. In km k=3 m=2, " in done.stdout
    assert "    queryveil anonymize km LOG -o DIR --k 3 --m 2" in lines
    assert done.stderr.splitlines()[-1] == f"written to {folder}: compare.html, table.csv, plan.toml, results"
    assert {path.name for path in folder.iterdir()} == {"compare.html", "table.csv", "plan.toml", "results"}
    table = pl.read_csv(folder / "table.csv")
    assert table["run"].to_list() == ["km k=3 m=2", "pseudonymise"]
    assert table["outcome"].to_list() == ["best", "promises nothing"]
    assert {"attack likely_terms:4", "attack likely_terms:4 risk", "score log_size_kept"} <= set(table.columns)

    # Judged in another way, nothing is run again.
    again = run("compare", searches, "-o", folder, *methods, "--limit", 0.5, "--json")
    found = json.loads(again.stdout)
    assert (found["picked"], found["exceptions"], len(found["readers"])) == (None, {}, 6)
    assert found["runs"][0]["rejected_by"]
    assert found["said"][0].startswith("No run can be recommended: ")


def test_json_has_all_figures_and_a_plan_can_be_run_again(run: Run, searches: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    run("compare", searches, "-o", folder, "--methods", "query-threshold:k=3", "--jobs", 1, "--limit", 0.5)
    done = run("compare", searches, "-o", tmp_path / "two", "--plan", folder / "plan.toml", "--jobs", 1, "--json")
    assert done.returncode == 0
    found = json.loads(done.stdout)
    assert found["limit"] == 0.5
    assert [each["method"] for each in found["runs"]] == ["query_threshold"]
    assert found["picked"] is None


def test_people_public_log_and_values_are_used(run: Run, searches: Path, tmp_path: Path) -> None:
    public = tmp_path / "public.tsv"
    run("synth", public, "--users", 210, "--seed", 9)
    words = ("compare", searches, "-o", tmp_path / "out", "--methods", "pseudonymise", "--jobs", 1, "--json")
    people = f"{searches}.secrets.jsonl"
    done = run(*words, "--public", public, "--people", people, "--values", f"{searches}.values.csv")
    found = json.loads(done.stdout)
    assert (found["n_users"], found["n_public"]) == (200, 210)
    attempts = {each["after"]["attacker"]: each["after"] for each in found["runs"][0]["attacks"]["attempts"]}
    assert attempts["vanity"]["n_targets"] == len(Path(people).read_text().splitlines())
    assert "bid_kept" in {score["name"] for score in found["runs"][0]["scores"]}


def test_a_broken_promise_is_loud_and_exit_1(run: Run, searches: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    words = ("compare", searches, "-o", folder, "--methods", "km:k=3:m=2", "--jobs", 1)
    assert run(*words).returncode == 0
    result = folder / "results" / "km-k-3-m-2.json"
    broken = json.loads(result.read_text()) | {"standing": "broken", "verdict": "The promise is broken: 1 violation."}
    result.write_text(json.dumps(broken))
    done = run(*words)
    assert done.returncode == 1
    assert "BROKEN" in done.stdout
    assert "BROKEN: km k=3 m=2: The promise is broken: 1 violation." in done.stderr
    assert "a promise is broken" in (folder / "compare.html").read_text()


def test_what_is_wrong_is_one_line_and_nothing_is_written(
    run: Run, refused: Refused, log_file: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    assert refused("compare", log_file, "-o", folder, "--methods", "nosuch").startswith("method must be one of km")
    assert refused("compare", log_file, "-o", folder, "--methods", "km:q=1").startswith("km q=1: a setting of km must")
    for option, value, said in (
        ("--exposure", "worst", "exposure must be binding or one of"),
        ("--limit", "2", "limit must be a share such as 5% or 0.05, at most 100%, got 2"),
        ("--reader", "everybody", "reader must be one or more of recipient"),
        ("--reader", "", "reader must be one or more of recipient"),
        ("--except", "clock", "except must be an attacker with the reason why: clock=REASON, got clock"),
        ("--except", "nosuch=because", "except must be one of active_id"),
    ):
        assert refused("compare", log_file, "-o", folder, option, value).startswith(said)
    unknown = run("compare", log_file, "-o", folder, "--for", "fame")
    assert unknown.returncode == 2
    assert unknown.stderr.startswith("queryveil: for must be one of ranking, suggestions, ")
    assert "left out where a purpose is named" in refused(
        "compare", log_file, "-o", folder, "--for", "trends", "--utility", "terms_kept"
    )
    both = ("--plan", tmp_path / "plan.toml", "--methods", "km")
    assert refused("compare", log_file, "-o", folder, *both) == "methods must be left out with --plan, got km"
    assert refused("compare", log_file, "-o", folder, "--jobs", 0) == "jobs must be 1 or more, got 0"
    assert not folder.exists()


def test_ctrl_c_while_the_processes_start_is_one_line(searches: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "queryveil", "compare", str(searches), "-o", str(tmp_path / "out"), "--jobs", "2"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    until((tmp_path / "out" / "results").is_dir, process=process)
    # The log is read, and the processes are about to start.
    time.sleep(0.5)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=patience())
    assert (process.returncode, out) == (130, b"")
    assert err.decode() == "queryveil: stopped; nothing was released\n"


def test_a_measure_that_there_is_not_is_one_line_with_those_there_are(
    refused: Refused, searches: Path, tmp_path: Path
) -> None:
    words = ("--methods", "query_threshold:k=3", "--jobs", 1, "--utility", "fame")
    assert "log_size_kept" in refused("compare", searches, "-o", tmp_path / "out", *words)


def test_nobody_to_seek_is_said_before_the_work_and_no_run_that_ends_is_exit_2(
    run: Run, refused: Refused, searches: Path, tmp_path: Path
) -> None:
    assert "targets must be 1 or more" in refused("compare", searches, "-o", tmp_path / "a", "--targets", 0)
    done = run("compare", searches, "-o", tmp_path / "b", "--methods", "km:keep=nosuch", "--jobs", 1)
    assert done.returncode == 2
    assert "no run came to an end" in done.stderr
