"""The verbs that judge a release, on noisy counts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from queryveil.formats import write_log
from queryveil.log import Format, Layout, QueryLog
from queryveil.methods.dp_synthesis import synthesized
from queryveil.testing.logs import log_of
from queryveil.testing.releases import released_tallies

Run = Callable[..., CompletedProcess[str]]

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
