"""The verbs that judge a release, on noisy counts."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from tests.support.releases import released_tallies

from queryveil.data import Format, Layout, QueryLog
from queryveil.formats import write_log
from queryveil.methods.dp.dp import synthesized
from queryveil.testing.logs import log_of

Run = Callable[..., CompletedProcess[str]]
Refused = Callable[..., str]

TEXTS = ("kestrel", "lantern", "persona")


@pytest.fixture
def searches(tmp_path: Path) -> Path:
    log = log_of({f"persona{i}": ["kestrel lantern"] for i in range(60)})
    path = tmp_path / "searches.csv"
    write_log(QueryLog(frame=log.frame, layout=Layout(format=Format.CSV)), path)
    return path


@pytest.fixture(params=["counts", "made up"])
def noisy(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    release = released_tallies({"kestrel lantern": 58}, threshold=13)
    if request.param == "made up":
        release = synthesized(release, n_users=20, seed=1)
    return release.save(tmp_path / "noisy")


@pytest.mark.parametrize("verb", ["measure", "attack"])
def test_noisy_counts_are_measured_and_attacked(verb: str, run: Run, noisy: Path, searches: Path) -> None:
    done = run(verb, searches, noisy)
    assert done.returncode == 0, done.stderr
    assert not [text for text in TEXTS if text in (done.stdout + done.stderr).replace("searches", "").lower()]


def test_exact_figures_are_kept_out_of_the_folder(run: Run, noisy: Path, searches: Path) -> None:
    before = sorted(path.name for path in noisy.iterdir())
    done = run("report", noisy, "--original", searches, "--seed", 1)
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in noisy.iterdir()) == before
    beside = noisy.parent / "noisy-report.html"
    assert done.stderr == f"written to {beside}\n"
    assert "Keep this report to yourself" in beside.read_text()


def test_exact_figures_are_refused_inside_the_folder_however_it_is_named(
    refused: Refused, run: Run, noisy: Path, searches: Path
) -> None:
    before = sorted(path.name for path in noisy.iterdir())
    (noisy.parent / "link").symlink_to(noisy)
    for place in (noisy / "x.html", noisy.parent / "link" / "x.html", noisy / ".." / "noisy" / "report.html"):
        line = refused("report", noisy, "--original", searches, "-o", place, "--force")
        assert line.startswith("output must be a file outside the release, which others will get, got ")
    assert sorted(path.name for path in noisy.iterdir()) == before
    assert "x.html" in refused("report", noisy, "-o", noisy / "x.html")
    assert run("report", noisy, "-o", noisy / "report.html").returncode == 0


def test_files_that_the_manifest_does_not_list_are_named(run: Run, noisy: Path) -> None:
    said = "note: not covered by the promise, beside the data: report.html"
    assert said not in run("verify", noisy).stderr
    (noisy / "report.html").touch()
    done = run("verify", noisy)
    assert done.returncode == 0
    assert said in done.stderr
    (noisy / "exact.csv").touch()
    done = run("verify", noisy)
    assert (done.returncode, done.stdout) == (
        1,
        "The release has a fault: exact.csv is a file that manifest.json does not list.\n",
    )
    for i in range(10):
        (noisy / f"more\n{i}").touch()
    done = run("verify", noisy)
    assert "fault: the folder has 1 more that manifest.json does not list\n" in done.stdout
    assert "fault: more\\u000a0 is a file" in done.stdout
    assert run("report", noisy).returncode == 1
    assert "exact.csv is a file that manifest.json does not list" in (noisy / "report.html").read_text()


@pytest.fixture
def own_queries(tmp_path: Path) -> Path:
    log = log_of({f"persona{i}": ["kestrel lantern", f"own{i} word{i}"] for i in range(60)})
    write_log(QueryLog(frame=log.frame, layout=Layout(format=Format.CSV)), tmp_path / "own.csv")
    return tmp_path / "own.csv"


def test_whoever_plants_users_is_read_by_the_difference(run: Run, noisy: Path, own_queries: Path) -> None:
    done = run("attack", own_queries, noisy, "--only", "sybil", "--seed", 1)
    said = "how often the query leaves although the person never asked it; only the difference tells of the person"
    assert "sybil" in done.stdout
    assert f"note: sybil, by chance: {said}\n" in done.stderr
    assert run("report", noisy, "--original", own_queries, "--format", "md").returncode == 0
    assert said in (noisy.parent / "noisy-report.md").read_text()


def test_without_opendp_all_attack_by_noise_of_their_own_and_the_report_is_made(
    run: Run, noisy: Path, own_queries: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As Python treats a package that cannot be imported.
    monkeypatch.setitem(sys.modules, "opendp", None)
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    others, public = log_of({f"other{i}": [f"kestrel {i}", "lantern"] for i in range(400)}), tmp_path / "public.csv"
    write_log(QueryLog(frame=others.frame, layout=Layout(format=Format.CSV)), public)
    done = run("attack", own_queries, noisy, "--public", public)
    assert done.returncode == 0
    assert "needs the extra" not in done.stderr
    assert all(name in done.stdout for name in ("sybil", "neighbour", "membership"))
    assert run("report", noisy, "--original", own_queries, "--format", "md").returncode == 0
    report = (noisy.parent / "noisy-report.md").read_text()
    assert "| Planted users |" in report
    assert "What it cost" in report


def test_a_report_never_takes_the_place_of_the_clicks(run: Run, tmp_path: Path) -> None:
    clicks = {("kestrel lantern", "http://ripple.example"): 20}
    folder = released_tallies({"kestrel lantern": 58}, clicks=clicks, threshold=13).save(tmp_path / "noisy")
    (part,) = folder.glob("clicks.*")
    before = part.read_bytes()
    done = run("report", folder, "-o", part, "--force")
    assert done.returncode == 2
    assert "not a part of what is reported on" in done.stderr
    assert part.read_bytes() == before


def test_a_report_from_the_release_alone_goes_into_the_folder(run: Run, noisy: Path) -> None:
    assert run("report", noisy).returncode == 0
    assert "Keep this report to yourself" not in (noisy / "report.html").read_text()
