"""`queryveil anonymize dp`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from queryveil.data import QueryLog
from queryveil.guarantees import DifferentialPrivacy
from queryveil.methods.dp.budget import read_ledger
from queryveil.release import read_release

Run = Callable[..., CompletedProcess[str]]
Refused = Callable[..., str]

TOTALS = ("--total-epsilon", 3, "--total-delta", "3e-5")


@pytest.fixture
def busy_log(tmp_path: Path) -> Path:
    """A log of 300 users who share two queries and a click, and have one query each that nobody else has."""
    rows = ["user,query,time,url"]
    for i in range(300):
        rows += [
            f"persona{i:03},Kestrel  lantern,2024-03-04 07:00:00,https://shop.example/lamp",
            f"persona{i:03},mulberry,2024-03-04 07:01:00,",
            f"persona{i:03},rarity{i},2024-03-04 07:02:00,https://shop.example/{i}",
        ]
    path = tmp_path / "log.csv"
    path.write_text("\n".join(rows) + "\n")
    return path


def test_a_release_is_made_summed_up_and_verified(run: Run, busy_log: Path, tmp_path: Path) -> None:
    # With so small a delta a query of one user never leaves.
    done = run("anonymize", "dp", busy_log, "-o", tmp_path / "out", "--delta", "1e-12")
    assert done.returncode == 0
    assert "differs by a factor of at most 2.72" in done.stdout
    assert "300" not in done.stdout
    release = read_release(tmp_path / "out")
    assert set(release.tallies.frame["query"]) == {"kestrel lantern", "mulberry"}
    assert release.promise == DifferentialPrivacy(epsilon=1.0, delta=1e-12)
    judged = run("verify", tmp_path / "out", "--original", busy_log)
    assert (judged.returncode, judged.stdout) == (
        0,
        "(1, 1e-12)-differential privacy holds for 2 counts, as far as it can be checked.\n",
    )
    assert "note: files cannot show" in judged.stderr


def test_the_options_reach_the_method(run: Run, busy_log: Path, tmp_path: Path) -> None:
    options = ["--epsilon", 2, "--delta", "1e-6", "--max-queries", 3, "--mechanism", "laplace", "--rounds", 2]
    options += ["--choose", "frequent", "--clicks", 0.5, "--max-clicks", 1, "--bots", 50, "--seed", 3, "--json"]
    done = run("anonymize", "dp", busy_log, "-o", tmp_path / "out", *options)
    assert (done.returncode, done.stderr) == (0, "")
    manifest = json.loads(done.stdout)
    assert manifest["promise"] == {"model": "dp", "epsilon": 2.0, "delta": 1e-6}
    assert manifest["parameters"] == {
        "epsilon": 2.0,
        "delta": 1e-6,
        "max_queries": 3,
        "mechanism": "laplace",
        "rounds": 2,
        "choose": "frequent",
        "clicks": 0.5,
        "max_clicks": 1,
        "bot_threshold": 50,
    }
    parts = [(part["what"], part["mechanism"], part["max_items"]) for part in manifest["noise"]]
    assert parts == [("queries", "laplace", 3)] * 2 + [("clicks", "laplace", 1)]
    clicks = read_release(tmp_path / "out").tallies.clicks
    assert clicks is not None
    assert clicks.select("query", "url").rows() == [("kestrel lantern", "https://shop.example/lamp")]
    assert run("verify", tmp_path / "out", "--original", busy_log).returncode == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--epsilon", "0"], "epsilon must be above 0 and at most 100, got 0.0"),
        (["--epsilon", "-1"], "epsilon must be above 0"),
        (["--epsilon", "nan"], "epsilon must be above 0 and at most 100, got nan"),
        (["--epsilon", "1e-9"], "epsilon must be 0.0001 or more"),
        (["--delta", "1"], "delta must be above 0 and below 1, got 1.0"),
        (["--delta", "0"], "delta must be above 0 and below 1, got 0.0"),
        (["--max-queries", "0"], "max-queries must be a whole number from 1"),
        (["--mechanism", "magic"], "mechanism must be one of auto, truncated-geometric"),
        (["--rounds", "3"], "rounds must be 1 or 2, got 3"),
        (["--choose", "best"], "choose must be one of random, frequent, got best"),
        (["--clicks", "1"], "clicks must be a part of the budget, 0 or more and below 1, got 1.0"),
        (["--clicks", "0.5", "--max-clicks", "0"], "max-clicks must be a whole number from 1"),
        (["--synthesize", "0"], "synthesize must be between 1 and 100,000,000 users, got 0"),
        (["--bots", "-1"], "bots must be 1 or more, or 0 to keep every user, got -1"),
        (["--seed", "-1"], "seed must be 0 or more"),
        (["--total-epsilon", "1", "--total-delta", "1e-5"], "budget must be a file, for --total-epsilon"),
        (["--budget", "nowhere.budget"], "nowhere.budget: there is no such ledger; begin one with --total-epsilon"),
        (["--budget", "b", "--total-epsilon", "1"], "total-delta must be given: a ledger begins with both totals"),
        (["--budget", "b", "--total-delta", "1e-5"], "total-epsilon must be given"),
        (
            ["--budget", "b", "--total-epsilon", "inf", "--total-delta", "1e-5"],
            "total-epsilon must be above 0 and finite, got inf",
        ),
        (
            ["--clicks", "0.9999999999"],
            "clicks must be a part of the budget that leaves the queries epsilon 0.0001 or more, got 0.9999999999",
        ),
        (
            ["--clicks", "1e-9"],
            "clicks must be a part of the budget that leaves the clicks epsilon 0.0001 or more, got 1e-09",
        ),
        (["--clicks", "0.5", "--epsilon", "1e-9"], "epsilon must be 0.0001 or more"),
        (
            ["--budget", "b", "--total-epsilon", "0.5", "--total-delta", "1e-5"],
            "b: epsilon 1 was requested and 0.5 is left, 0.5 too little; nothing was spent",
        ),
    ],
)
def test_a_bad_option_is_one_line_and_nothing_is_written(
    refused: Refused,
    log_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert message in refused("anonymize", "dp", log_file, "-o", tmp_path / "out", *options)
    assert [path.name for path in tmp_path.iterdir()] == ["log.tsv"]


def test_a_budget_is_spent_by_each_release_until_not_enough_is_left(
    run: Run, refused: Refused, busy_log: Path, tmp_path: Path
) -> None:
    budget = tmp_path / "log.budget"
    first = run("anonymize", "dp", busy_log, "-o", tmp_path / "one", "--budget", budget, *TOTALS)
    assert first.returncode == 0
    assert f"budget: in {budget} epsilon 2 and delta 2e-05 are left" in first.stderr
    again = ("anonymize", "dp", busy_log, "-o", tmp_path / "one", "--budget", budget, "--epsilon", 1.5, "--force")
    assert "epsilon 0.5 and delta 1e-05 are left" in run(*again).stderr
    assert [each.release for each in read_ledger(budget).spent] == ["one", "one"]
    before, made = budget.read_bytes(), (tmp_path / "one" / "manifest.json").read_bytes()
    line = refused("anonymize", "dp", busy_log, "-o", tmp_path / "one", "--budget", budget, "--force")
    assert line == f"{budget}: epsilon 1 was requested and 0.5 is left, 0.5 too little; nothing was spent"
    assert (budget.read_bytes(), (tmp_path / "one" / "manifest.json").read_bytes()) == (before, made)


def test_what_fails_before_there_is_noise_spends_nothing(
    run: Run, refused: Refused, busy_log: Path, tmp_path: Path
) -> None:
    budget, bare = tmp_path / "log.budget", tmp_path / "bare.csv"
    bare.write_text("user,query\npersona1,kestrel\n")
    with_clicks = ("--budget", budget, *TOTALS, "--clicks", 0.3)
    assert "no column for the url" in refused("anonymize", "dp", bare, "-o", tmp_path / "out", *with_clicks)
    assert (
        "no such file"
        in refused("anonymize", "dp", tmp_path / "none.csv", "-o", tmp_path / "out", *with_clicks).lower()
    )
    tiny = refused("anonymize", "dp", busy_log, "-o", tmp_path / "out", "--epsilon", "1e-9", *with_clicks)
    assert "epsilon must be 0.0001 or more" in tiny
    (tmp_path / "out").mkdir()
    assert "already there" in refused("anonymize", "dp", busy_log, "-o", tmp_path / "out", *with_clicks)
    assert not budget.exists()


def test_without_opendp_it_is_one_line_and_nothing_is_spent(
    refused: Refused, busy_log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As Python treats a package that cannot be imported.
    monkeypatch.setitem(sys.modules, "opendp", None)
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    line = refused("anonymize", "dp", busy_log, "-o", tmp_path / "out", "--budget", tmp_path / "b", *TOTALS)
    assert "pip install 'queryveil[dp]'" in line
    assert [path.name for path in tmp_path.iterdir()] == ["log.csv"]


def test_with_an_opendp_that_does_not_work_nothing_is_spent(
    refused: Refused, busy_log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As a package whose parts do not fit each other.
    monkeypatch.setattr("opendp.prelude.enable_features", None)
    line = refused("anonymize", "dp", busy_log, "-o", tmp_path / "out", "--budget", tmp_path / "b", *TOTALS)
    assert line.startswith("OpenDP is installed but cannot be loaded; install it again: pip install")
    assert [path.name for path in tmp_path.iterdir()] == ["log.csv"]


@pytest.mark.parametrize(
    ("folder", "why"),
    [("/proc/release", "no such file or directory"), ("r" * 250, "file name too long")],
    ids=["a place that takes no folders", "a long name"],
)
def test_where_no_folder_can_be_made_nothing_is_spent(
    folder: str, why: str, refused: Refused, busy_log: Path, tmp_path: Path
) -> None:
    out = tmp_path / folder
    line = refused("anonymize", "dp", busy_log, "-o", out, "--budget", tmp_path / "b", *TOTALS)
    assert line == (f"{out}: could not be written: {why}; nothing was released; free space or choose another folder")
    assert [path.name for path in tmp_path.iterdir()] == ["log.csv"]


def test_what_fails_once_there_is_noise_stays_spent(
    run: Run, busy_log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        # The spending is on the disk before the first noise is drawn.
        assert len(read_ledger(tmp_path / "b").spent) == 1
        raise KeyboardInterrupt

    monkeypatch.setattr("queryveil.methods.dp.dp.draw", interrupted)
    done = run("anonymize", "dp", busy_log, "-o", tmp_path / "out", "--budget", tmp_path / "b", *TOTALS)
    assert done.returncode == 130
    assert "stays spent" in done.stderr
    assert len(read_ledger(tmp_path / "b").spent) == 1
    assert not (tmp_path / "out").exists()


def test_a_ledger_never_lies_in_the_release_nor_is_a_log_taken_for_one(
    refused: Refused, busy_log: Path, tmp_path: Path
) -> None:
    out, before = tmp_path / "out", busy_log.read_bytes()
    for place in (out, out / "b"):
        line = refused("anonymize", "dp", busy_log, "-o", out, "--budget", place, *TOTALS)
        assert "a file outside the release" in line
    assert "line 1 is not one of a ledger" in refused(
        "anonymize", "dp", busy_log, "-o", out, "--budget", busy_log, *TOTALS
    )
    assert busy_log.read_bytes() == before


def test_made_up_sessions_are_said_to_be_made_up(run: Run, busy_log: Path, tmp_path: Path) -> None:
    options = ["--synthesize", 40, "--clicks", 0.3, "--delta", "1e-12"]
    done = run("anonymize", "dp", busy_log, "-o", tmp_path / "out", *options)
    assert done.returncode == 0
    assert "40, all made up" in done.stdout
    release = read_release(tmp_path / "out")
    assert isinstance(release.data, QueryLog)
    assert release.log.n_users == 40
    assert set(release.log.frame["query"]) <= {"kestrel lantern", "mulberry"}
    assert release.manifest.parameters["synthesized"] is True
    judged = run("verify", tmp_path / "out", "--original", busy_log)
    assert judged.returncode == 0
    assert "made up from noisy counts" in judged.stderr


def test_a_delta_that_is_too_large_for_the_log_is_said_on_the_terminal_only(
    run: Run, busy_log: Path, tmp_path: Path
) -> None:
    done = run("anonymize", "dp", busy_log, "-o", tmp_path / "out", "--delta", 0.01)
    assert "warning: delta is not below 1 in the number of users" in done.stderr
    assert "number of users" not in (tmp_path / "out" / "manifest.json").read_text()


def test_a_broken_release_is_exit_1(run: Run, busy_log: Path, tmp_path: Path) -> None:
    assert run("anonymize", "dp", busy_log, "-o", tmp_path / "out").returncode == 0
    manifest = tmp_path / "out" / "manifest.json"
    said = json.loads(manifest.read_text())
    said["noise"][0]["scale"] /= 2
    manifest.write_text(json.dumps(said))
    done = run("verify", tmp_path / "out", "--show")
    assert done.returncode == 1
    assert "part 1 of the noise has a delta of" in done.stdout
