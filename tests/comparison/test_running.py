"""Whole comparisons on made-up logs: resumed, failing, in several processes, without files."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import polars as pl
import pytest
from tests.support.waiting import patience, until

import queryveil
from queryveil import progress
from queryveil.attacks.attacker import Person
from queryveil.comparison import Plan, Run, compare, plan_of
from queryveil.comparison.judged import ComparisonInput, Judged, judge
from queryveil.comparison.workers import Workers
from queryveil.data import QueryLog
from queryveil.errors import BadInput, BadParameter
from queryveil.synthesis import synthesize, term_values

pytestmark = pytest.mark.slow

MADE = synthesize(users=300, seed=4)
LOG = MADE.log
SMALL = synthesize(users=80, seed=4).log
"""For tests that look at no figure: attackers take longer than what is tested."""
FEW = "km:k=3:m=2,query_threshold:k=3"
PEOPLE = [Person(name=secret.name, town=secret.town, user=secret.user) for secret in MADE.secrets]


def results(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((folder / "results").iterdir())}


def mark(path: Path) -> None:
    """Change a figure that nobody computes, to see whether the file is read or made anew."""
    result = json.loads(path.read_bytes())
    path.write_text(json.dumps(result | {"seconds": {"marked": 77.0}}), encoding="utf-8")


def test_methods_stand_side_by_side_with_verdict_attacks_and_scores() -> None:
    comparison = queryveil.compare(LOG, "km:k=3:m=2,clump:k=3,swap:k=3,plink:p=0.5,pseudonymise,token_hash", seed=1)
    assert comparison.n_users == 225
    assert comparison.n_public == 75
    assert not [row.judged.failed for row in comparison.rows if row.judged.failed]
    assert [row.judged.standing for row in comparison.rows] == ["holds"] * 4 + ["promises nothing"] * 2
    for row in comparison.rows:
        assert row.utility is not None
        assert row.judged.attacks is not None
        assert set(row.judged.seconds) == {"anonymize", "verify", "pair", "attack", "measure"}
    km, *_, pseudonymised, _ = comparison.rows
    assert km.exposure is not None
    assert pseudonymised.exposure is not None
    assert pseudonymised.exposure.share > 0.5
    assert km.exposure.interval[1] < pseudonymised.exposure.interval[0]
    assert comparison.before is not None
    assert comparison.before.share == pytest.approx(pseudonymised.exposure.share, abs=0.1)


def test_planted_people_are_found_in_what_promises_nothing_and_not_where_they_are_hidden() -> None:
    comparison = compare(LOG, "km:k=3:m=2,pseudonymise", people=PEOPLE, holdout=0, exposure="vanity", seed=1)
    hidden, open_to_all = (row.exposure for row in comparison.rows)
    assert hidden is not None
    assert open_to_all is not None
    assert (hidden.n_found, open_to_all.n_found, open_to_all.n_targets) == (0, len(PEOPLE), len(PEOPLE))


@pytest.mark.parametrize("holdout", [0.25, 0.0])
def test_ranking_is_judged_on_the_people_held_out_and_the_log_is_looked_at_once(holdout: float) -> None:
    log = synthesize(users=120, seed=2).log
    inputs = ComparisonInput(log=log, n_targets=5, seed=1).with_holdout(holdout)
    found = judge(Run(name="km", method="km", settings={"k": 2, "m": 1, "keep": "url"}), inputs)
    assert {"ranking_kept", "completions_kept", "interests_kept"} <= {score.name for score in found.scores}
    assert any("--public LOG" in text for text in found.notes) == (holdout == 0)
    assert inputs.reference.public is inputs.public
    assert "ranking" in vars(inputs.reference)


def test_a_second_comparison_does_only_what_is_missing(tmp_path: Path) -> None:
    compare(SMALL, FEW, folder=tmp_path / "out", seed=1)
    for path in (tmp_path / "out" / "results").iterdir():
        mark(path)
    (tmp_path / "out" / "results" / "km-k-3-m-2.json").unlink()
    again = compare(SMALL, f"{FEW},pseudonymise", folder=tmp_path / "out", seed=1)
    done = {row.name: "marked" not in row.judged.seconds for row in again.rows}
    assert done == {"km k=3 m=2": True, "query_threshold k=3": False, "pseudonymise": True}
    assert "marked" in again.original.seconds


def test_changing_how_it_is_judged_or_a_name_needs_no_new_run(tmp_path: Path) -> None:
    compare(SMALL, FEW, folder=tmp_path / "out", seed=1)
    before = results(tmp_path / "out")
    other = compare(SMALL, FEW, folder=tmp_path / "out", seed=1, exposure="clock", utility="rows_kept", limit="50%")
    assert (other.exposure, other.utility, other.limit) == ("clock", "rows_kept", 0.5)
    assert results(tmp_path / "out") == before
    assert "rows_kept" in (tmp_path / "out" / "plan.toml").read_text()


def test_another_log_other_settings_or_force_are_done_anew(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    named = Plan(runs=(Run(name="ours", method="query_threshold", settings={"k": 3}),))

    def is_new(log: QueryLog, plan: Plan, *, again: bool = False) -> bool:
        for path in (folder / "results").iterdir():
            mark(path)
        return "marked" not in compare(log, plan, folder=folder, seed=1, again=again).rows[0].judged.seconds

    compare(SMALL, named, folder=folder, seed=1)
    assert not is_new(SMALL, named)
    assert is_new(SMALL, named, again=True)
    stricter = Plan(runs=(Run(name="ours", method="query_threshold", settings={"k": 4}),))
    assert is_new(SMALL, stricter)
    assert is_new(SMALL.with_frame(SMALL.frame.head(SMALL.n_rows - 1)), stricter)


def test_a_damaged_or_failed_result_is_done_anew(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    compare(SMALL, "query_threshold:k=3", folder=folder, seed=1)
    path = folder / "results" / "query-threshold-k-3.json"
    whole = path.read_bytes()
    path.write_bytes(whole[:100])
    assert not compare(SMALL, "query_threshold:k=3", folder=folder, seed=1).rows[0].judged.failed
    path.write_text(json.dumps(json.loads(whole) | {"failed": "no memory", "standing": "failed"}), encoding="utf-8")
    assert not compare(SMALL, "query_threshold:k=3", folder=folder, seed=1).rows[0].judged.failed


def test_a_run_that_cannot_be_done_is_a_row_with_its_reason_and_the_others_go_on(tmp_path: Path) -> None:
    comparison = compare(SMALL, "clump:k=5000,query_threshold:k=3", folder=tmp_path / "out", seed=1)
    assert [row.judged.standing for row in comparison.rows] == ["failed", "promises nothing"]
    assert comparison.notes()[0].startswith("clump k=5000: k must be at most the number of transactions, ")
    assert (tmp_path / "out" / "compare.html").is_file()


def test_no_text_and_no_id_of_the_log_is_written(tmp_path: Path) -> None:
    made = synthesize(users=150, seed=4)
    log = made.log.with_frame(made.log.frame.with_columns(user="someuser" + pl.col("user")))
    people = [Person(name=each.name, town=each.town, user=f"someuser{each.user}") for each in made.secrets]
    compare(log, None, folder=tmp_path / "out", people=people, values=term_values(log, seed=1), seed=1)
    files = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert {path.name for path in files} >= {"compare.html", "table.csv", "plan.toml", "original.json"}
    written = "\n".join(path.read_text(encoding="utf-8") for path in files).lower()
    assert "someuser" not in written
    assert not any(person.name.lower() in written or person.town.lower() in written for person in people)
    queries = log.frame["query"].unique()
    rare = queries.filter(queries.str.count_matches(" ") >= 1)
    assert len(rare) > 500
    assert [query for query in rare if query.lower() in written] == []
    assert [url for url in log.frame["url"].drop_nulls().unique() if url.lower() in written] == []


def test_two_jobs_find_what_one_finds(tmp_path: Path) -> None:
    plan = plan_of(f"{FEW},clump:k=3")
    one = compare(SMALL, plan, seed=1)
    two = compare(SMALL, plan, seed=1, jobs=2, folder=tmp_path / "out")
    for row, other in zip(one.rows, two.rows, strict=True):
        mine, theirs = (msgspec.structs.replace(each.judged, seconds={}) for each in (row, other))
        assert mine == theirs
    assert "NUMBA_NUM_THREADS" not in os.environ


def test_a_process_that_dies_costs_its_own_run_only() -> None:
    inputs = ComparisonInput(log=SMALL, seed=1).with_holdout(0.25)
    runs = [Run(name=f"threshold {k}", method="query_threshold", settings={"k": k}) for k in range(2, 7)]
    told: list[Judged] = []

    def listen(judged: Judged) -> None:
        if not told:
            for child in multiprocessing.active_children():
                child.kill()
        told.append(judged)

    with Workers(jobs=2) as workers:
        workers.judge(runs, inputs, on_result=listen, n_all=len(runs))
    assert sorted(judged.name for judged in told) == sorted(run.name for run in runs)
    dead = [judged for judged in told if judged.failed]
    assert 1 <= len(dead) <= 2
    assert {judged.failed.split(",")[0] for judged in dead} == {"its process was ended by the system"}
    assert multiprocessing.active_children() == []


SCRIPT = """
import sys
from pathlib import Path
from queryveil.comparison import compare
from queryveil.synthesis import synthesize
if __name__ == "__main__" or {unguarded}:
    compare(synthesize(users=80, seed=4).log, None, folder=sys.argv[1], seed=1, jobs=2)
"""


def test_a_script_without_a_guard_is_told_what_to_do(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(unguarded=True), encoding="utf-8")
    command = [sys.executable, str(script), str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=patience())
    assert done.returncode == 1
    assert "jobs must be 1 in a script that does its work outside of `if __name__ == '__main__':`" in done.stderr


def test_a_comparison_that_is_stopped_leaves_what_is_finished(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(unguarded=False), encoding="utf-8")
    folder = tmp_path / "out"
    command = [sys.executable, str(script), str(folder)]
    # A group of its own: a terminal sends Ctrl-C to all processes of it.
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    until(lambda: list(folder.glob("results/*.json")), process=process)
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=patience())
    assert process.returncode != 0
    kept = list(folder.glob("results/*.json"))
    assert kept
    assert all(msgspec.json.decode(path.read_bytes(), type=Judged) for path in kept)
    assert not (folder / "compare.html").exists()


def test_whoever_watches_is_told_which_run_it_is() -> None:
    seen: list[tuple[str, float]] = []
    with progress.watch(lambda name, share: seen.append((name, share))):
        compare(SMALL, FEW, seed=1)
    names = [name for name, _ in seen]
    assert any(name.startswith("1 of 3: km k=3 m=2 (") for name in names)
    assert any(name.startswith("2 of 3: query_threshold k=3 (attacking: ") for name in names)
    shares = [share for _, share in seen]
    assert shares == sorted(shares)


def test_a_log_without_users_and_bad_settings_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="nobody to compare methods on"):
        compare(SMALL.with_frame(SMALL.frame.clear()), FEW)
    with pytest.raises(BadParameter, match="jobs must be 1 or more, got 0"):
        compare(SMALL, FEW, jobs=0)
    with pytest.raises(BadParameter, match="exposure must be binding or one of"):
        compare(SMALL, FEW, exposure="nosuch", folder=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("dear reader")
    with pytest.raises(BadParameter, match="output must be a new folder, an empty one, or that of a comparison"):
        compare(SMALL, FEW, folder=tmp_path)
    with pytest.raises(BadParameter, match="output must be a folder, and this is a file"):
        compare(SMALL, FEW, folder=tmp_path / "thesis.tex")


def test_a_plan_may_be_a_file_a_value_words_or_nothing(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text('holdout = 0.0\n[[run]]\nmethod = "query_threshold"\nk = 3\n', encoding="utf-8")
    by_file, by_text = compare(SMALL, path), compare(SMALL, str(path))
    by_words = compare(SMALL, ["query_threshold:k=3"], holdout=0)
    for comparison in (by_file, by_text, by_words):
        assert [row.name for row in comparison.rows] == ["query_threshold k=3"]
        assert comparison.n_public == 0
