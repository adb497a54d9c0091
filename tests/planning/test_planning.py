"""Whole searches on small made-up logs: chosen, written, repeated, gone on with, refused."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import msgspec
import polars as pl
import pytest
from tests.support.waiting import patience, until

import queryveil
from queryveil.attacks import Person
from queryveil.attacks.limits import risk
from queryveil.comparison.judged import ComparisonInput, judge
from queryveil.comparison.methods import settings_of
from queryveil.comparison.plan import Run, plan_of
from queryveil.comparison.workers import Workers
from queryveil.errors import BadFile, BadInput, BadParameter, ReleaseExists
from queryveil.html_tables import percent
from queryveil.planning import Planned, Wanted, read_wanted
from queryveil.planning.candidates import by_turns, ladders, stronger_than
from queryveil.planning.deciding import Finding, spoken_against
from queryveil.planning.searching import Search, sampled
from queryveil.synthesis import synthesize, term_values
from queryveil.utility.purposes import PURPOSES

pytestmark = pytest.mark.slow

MADE = synthesize(users=250, seed=4)
VALUES = term_values(MADE.log, seed=1)
LOG = MADE.log.with_frame(MADE.log.frame.with_columns(user="persona" + pl.col("user")))
WANTED = Wanted(
    purpose="advertising",
    limit=0.5,
    readers=("acquaintance",),
    targets_seed=5,
    run=plan_of("km:k=3:m=1,km:k=5:m=3,kdelta:k=5:same_texts=true,query_threshold:k=3").runs,
)


@pytest.fixture
def plan_file(tmp_path: Path) -> Path:
    path = tmp_path / "few.toml"
    path.write_text(WANTED.to_toml(), encoding="utf-8")
    return path


PEOPLE = [Person(name=each.name, town=each.town, user=f"persona{each.user}") for each in MADE.secrets]


def planned(folder: Path, plan: Path, limit: float | str | None = None, seed: int | None = None) -> Planned:
    return queryveil.plan(LOG, folder=folder, plan=plan, values=VALUES, people=PEOPLE, limit=limit, seed=seed)


@dataclass(frozen=True, kw_only=True)
class Done:
    """A search that was done, and its folder."""

    found: Planned
    folder: Path


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Done:
    folder = tmp_path_factory.mktemp("search")
    (folder / "few.toml").write_text(WANTED.to_toml(), encoding="utf-8")
    return Done(found=planned(folder / "out", folder / "few.toml", seed=3), folder=folder / "out")


def test_the_most_useful_run_under_the_limit_is_released_and_the_reasons_are_told(done: Done) -> None:
    found = done.found
    assert found.confirmed is not None
    assert found.confirmed.name == "kdelta k=5 same_texts"
    assert WANTED.as_limit.ruling(found.confirmed.judged.exposures).is_met
    assert [one.name for one in found.decision.more_useful()] == ["km k=3 m=1"]
    release = queryveil.read_release(done.folder / "release")
    assert queryveil.verify(release).holds
    assert release.manifest.columns.ids == "fresh"
    assert [warning for warning in release.manifest.warnings if "ids" in warning] == []
    text = "\n".join(found.lines())
    assert found.command in text
    assert "Why not more" in text
    assert "query_threshold k=3 promises nothing, and is never chosen" in text
    assert (done.folder / "release" / "report.html").is_file()


def test_the_report_tells_what_was_found_when_the_release_passed(done: Done) -> None:
    """Other targets, or fewer of them, could contradict what the search says of the same release."""
    assert done.found.confirmed is not None
    attacks = done.found.confirmed.judged.attacks
    assert attacks is not None
    page = re.sub("<[^>]*>", " ", (done.folder / "release" / "report.html").read_text(encoding="utf-8"))
    page = " ".join(page.replace("\u00a0", " ").split())
    for name in ("neighbour", "sybil", "vanity"):
        (one,) = (each for each in attacks.attempts if each.after.attacker == name)
        assert one.before is not None
        low, high = map(percent, one.after.interval)
        assert f"{percent(one.after.share)} {low} to {high} {percent(one.after.chance_share)}" in page, name


def test_done_again_from_its_plan_file_it_gives_the_same(done: Done, tmp_path: Path) -> None:
    again = planned(tmp_path / "two", done.folder / "plan.toml", seed=3)
    assert again.confirmed is not None
    assert done.found.confirmed is not None
    assert again.confirmed.name == done.found.confirmed.name
    assert again.table().drop("seconds").equals(done.found.table().drop("seconds"))
    one, two = done.folder / "release", tmp_path / "two" / "release"
    (data,) = (path.name for path in one.iterdir() if path.name.startswith("log"))
    assert (one / data).read_bytes() == (two / data).read_bytes()
    assert "made with a seed" in "\n".join(again.lines())
    # Privacy: whoever has the plan file could undo the shuffling.
    assert "seed" not in (done.folder / "plan.toml").read_text(encoding="utf-8")


def test_no_text_and_no_id_of_the_log_is_written_beside_the_release(done: Done) -> None:
    files = [path for path in done.folder.rglob("*") if path.is_file() and path.suffix != ".parquet"]
    assert {path.name for path in files} >= {"plan.toml", "search.json", "table.csv", "report.html", "manifest.json"}
    written = "\n".join(path.read_text(encoding="utf-8") for path in files).lower()
    assert "persona" not in written
    queries = LOG.frame["query"].unique()
    rare = queries.filter(queries.str.count_matches(" ") >= 1)
    assert len(rare) > 300
    assert [query for query in rare if query.lower() in written] == []
    released = queryveil.read_release(done.folder / "release").log
    assert not released.frame["user"].str.contains("persona").any()


def test_where_nothing_qualifies_the_attacker_and_the_nearest_limit_are_told(tmp_path: Path, plan_file: Path) -> None:
    found = planned(tmp_path / "out", plan_file, "2%")
    assert found.confirmed is None
    assert not (tmp_path / "out" / "release").exists()
    assert found.in_words().startswith("No release for advertising, exposing at most 2 %")
    text = "\n".join(found.lines())
    assert "the log is too small for 2 %" in text
    assert "Binding" in text
    relaxed = {one.option.split()[0]: one for one in found.relaxations()}
    nearest = relaxed["--limit"]
    assert nearest.limit.ruling(nearest.finding.judged.exposures).is_met
    assert 0.02 < nearest.limit.share == pytest.approx(nearest.finding.ruling.risk, abs=0.001)
    assert json.loads((tmp_path / "out" / "search.json").read_text(encoding="utf-8"))["chosen"] is None


def test_an_exception_is_repeated_with_its_reason_and_what_it_finds(tmp_path: Path) -> None:
    plan_file = tmp_path / "one.toml"
    plan_file.write_text(msgspec.structs.replace(WANTED, run=WANTED.run[:1]).to_toml(), encoding="utf-8")
    why = "nobody outside knows how often somebody asked"
    reasons = {"counted_terms": why}
    found = queryveil.plan(
        LOG, folder=tmp_path / "out", plan=plan_file, values=VALUES, exceptions=reasons, limit="100%"
    )
    assert f"Excepted  counted_terms: {why}; counted terms" in "\n".join(found.lines())
    assert read_wanted(tmp_path / "out" / "plan.toml").exceptions == reasons


SCRIPT = """
import sys
from tests.planning.test_planning import planned
from pathlib import Path
if __name__ == "__main__":
    planned(Path(sys.argv[1]), Path(sys.argv[2]))
"""


def test_a_search_that_was_killed_goes_on_from_what_it_had(tmp_path: Path, plan_file: Path) -> None:
    folder, script = tmp_path / "out", tmp_path / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    results = folder / "search" / "whole" / "results"
    command = [sys.executable, str(script), str(folder), str(plan_file)]
    root = str(Path(__file__).resolve().parents[2])
    process = subprocess.Popen(command, start_new_session=True, env=os.environ | {"PYTHONPATH": root})
    try:
        until(lambda: results.is_dir() and any(path.suffix == ".json" for path in results.iterdir()))
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=patience())
    assert not (folder / "release").exists()
    (kept, *_) = sorted(path for path in results.iterdir() if path.suffix == ".json")
    result = json.loads(kept.read_bytes())
    kept.write_text(json.dumps(result | {"seconds": {"marked": 77.0}}), encoding="utf-8")
    found = planned(folder, plan_file)
    assert found.confirmed is not None
    marked = [one.name for one in found.decision.findings if "marked" in one.judged.seconds]
    assert marked == [result["run"]["name"]]


LADDERS = tuple((run,) for run in WANTED.run)


def searching(folder: Path, *, minutes: float = 10.0) -> Search:
    """Return a search for the runs of the plan file on samples, too."""
    wanted = Wanted(purpose="advertising", limit=0.5, readers=("acquaintance",), targets_seed=5, minutes=minutes)
    inputs = ComparisonInput(log=LOG, values=VALUES, seed=5, targets_seed=5)
    return Search(wanted=wanted, inputs=inputs, folder=folder, workers=Workers(jobs=1), ladders=LADDERS, least_users=50)


def test_samples_come_first_and_what_they_rule_out_is_not_tried_on_the_whole_log(tmp_path: Path) -> None:
    search = searching(tmp_path)
    decision = search.climb()
    assert [(rung.n_users, rung.is_whole) for rung in search.rungs] == [(62, False), (125, False), (250, True)]
    tried = [{judged.name for judged in rung.judged} for rung in search.rungs]
    assert tried[0] == {run.name for run in WANTED.run}
    assert tried[0] >= tried[1] >= tried[2]
    ruled_out = [
        judged.name
        for judged in search.rungs[1].judged
        if spoken_against(Finding.of(judged, limit=WANTED.as_limit, measure="revenue_kept")) / 2 > 0.5
    ]
    assert not tried[2] & set(ruled_out)
    assert decision.picked is not None


def test_nothing_is_begun_for_which_there_is_no_time(tmp_path: Path) -> None:
    search = searching(tmp_path, minutes=1e-9)
    decision = search.climb()
    assert decision.findings == ()
    assert [len(rung.judged) for rung in search.rungs] == [0, 0, 0]
    assert search.rungs[-1].n_left == len(WANTED.run)
    text = "\n".join(Planned(wanted=search.wanted, decision=decision, rungs=tuple(search.rungs)).lines())
    assert "no run could be judged on the whole log in time; give more --minutes" in text


def test_samples_are_of_users_lie_in_each_other_and_share_nobody_with_the_public() -> None:
    inputs = ComparisonInput(log=LOG, targets_seed=5)
    quarter, half = sampled(inputs, 50), sampled(inputs, 100)
    ours, more = (set(each.log.frame["user"]) for each in (quarter, half))
    assert (len(ours), len(more)) == (50, 100)
    assert ours < more
    assert half.public is not None
    assert not more & set(half.public.frame["user"])
    whole = LOG.frame.filter(pl.col("user").is_in(list(ours)))
    assert quarter.log.frame.equals(whole)


@pytest.mark.parametrize("purpose", PURPOSES)
def test_every_ladder_is_of_one_method_and_no_run_stands_on_two(purpose: str) -> None:
    for columns in (["user", "query"], ["user", "query", "time", "rank", "url"]):
        found = ladders(purpose, columns=columns)
        assert all(len({run.method for run in ladder}) == 1 for ladder in found)
        runs = by_turns(found)
        assert len({run.slug for run in runs}) == len(runs) == sum(map(len, found))
        Wanted(purpose=purpose, run=runs)


def test_the_strongest_run_of_each_ladder_comes_first() -> None:
    found = ladders("suggestions", columns=["user", "query"])
    stronger, runs = stronger_than(found), by_turns(found)
    assert {run.name for run in runs[: len(found)]} == {ladder[-1].name for ladder in found}
    for i, run in enumerate(runs):
        assert stronger[run.name] <= {each.name for each in runs[:i]}
    assert stronger["km k=20 m=3"] == {"km k=50 m=3", "km k=100 m=3"}
    assert not {run.method for run in runs} & {"plink", "clump", "partition"}


def test_what_compare_has_by_itself_is_tried(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    runs = by_turns(ladders("advertising", columns=["user", "query"]))
    path.write_text(Wanted(purpose="advertising", run=runs).to_toml(), encoding="utf-8")
    assert read_wanted(path).run == runs
    hide_nobody = ("pseudonymise", "token_hash")
    presets = [run for run in queryveil.comparison.default_plan().runs if run.method not in hide_nobody]
    missing = [run.name for run in presets if in_full(run) not in [in_full(each) for each in runs]]
    assert missing == []


def in_full(run: Run) -> tuple[str, dict[str, object]]:
    """Return a run with all its settings, those that are not named at their defaults."""
    defaults = {name: about.default for name, about in settings_of(run.method).items()}
    return run.method, defaults | run.settings


def test_bad_requests_are_one_line(tmp_path: Path, plan_file: Path) -> None:
    def refused(match: str, **given: object) -> None:
        with pytest.raises((BadParameter, BadInput), match=match):
            queryveil.plan(LOG, **({"folder": tmp_path / "out", "purpose": "advertising", "values": VALUES} | given))  # type: ignore[arg-type]

    refused("for must be given with a table of what terms are worth: --values FILE", values=None)
    refused("for must be one of ranking, ", purpose="gossip")
    refused("limit must be a share such as", limit="5")
    refused("limit must be above 0", limit=0)
    refused("reader must be one or more of", readers=["nobody"])
    refused("except must be an attacker with the reason why", exceptions={"sybil": " "})
    refused("except must be one of", exceptions={"gossip": "none"})
    refused("minutes must be above 0", minutes=0)
    refused("jobs must be 1 or more", jobs=0)
    assert not (tmp_path / "out").exists()
    (tmp_path / "thesis.tex").write_text("dear reader")
    refused("output must be a new folder, an empty one, or that of a search", folder=tmp_path)
    plan_file.write_text("purpose = 'advertising'\nlimit = 'much'\n", encoding="utf-8")
    with pytest.raises(BadFile, match=r"few.toml: a plan must be as queryveil plan writes it"):
        read_wanted(plan_file)


def test_a_release_that_is_there_is_not_replaced_without_being_asked(done: Done) -> None:
    before = (done.folder / "release" / "manifest.json").read_bytes()
    with pytest.raises(ReleaseExists):
        planned(done.folder, done.folder / "plan.toml")
    assert (done.folder / "release" / "manifest.json").read_bytes() == before


def test_a_search_that_was_killed_while_it_wrote_its_release_writes_it_again(done: Done, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    shutil.copytree(done.folder, folder)
    for name in ("search.json", "table.csv", "release/report.html"):
        (folder / name).unlink()
    again = planned(folder, done.folder / "plan.toml", seed=3)
    assert again.confirmed is not None
    assert all((folder / name).is_file() for name in ("search.json", "table.csv", "release/report.html"))


def test_with_force_the_release_is_replaced_and_the_search_done_anew(done: Done, tmp_path: Path) -> None:
    folder, few = tmp_path / "out", tmp_path / "few.toml"
    shutil.copytree(done.folder, folder)
    result = folder / "search" / "whole" / "results" / "kdelta-k-5-same-texts.json"
    result.write_text("damaged", encoding="utf-8")
    before = (folder / "release" / "manifest.json").read_bytes()
    few.write_text(msgspec.structs.replace(WANTED, run=WANTED.run[2:3]).to_toml(), encoding="utf-8")
    again = queryveil.plan(LOG, folder=folder, plan=few, values=VALUES, force=True)
    assert again.confirmed is not None
    assert [path.name for path in result.parent.iterdir()] == [result.name]
    assert json.loads(result.read_bytes())["standing"] == "holds"
    assert (folder / "release" / "manifest.json").read_bytes() != before


@pytest.mark.parametrize("run", plan_of("km:k=5:m=2").runs, ids=lambda run: run.name)
def test_exposure_falls_at_most_in_proportion_to_the_number_of_users(run: Run) -> None:
    inputs = ComparisonInput(log=LOG, seed=1, targets_seed=1)
    whole = {one.title: one for one in judge(run, inputs).exposures if one.n_targets}
    half = judge(run, sampled(inputs, 125)).exposures
    for one in half:
        if one.n_targets and one.title in whole and one.chance_share < 0.05:
            assert one.interval[0] / 2 <= risk(whole[one.title]), one.title
