"""What `queryveil anonymize dp` says of a release, and of one that could not be written."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from queryveil.release import read_release

Run = Callable[..., CompletedProcess[str]]

SURELY = ("--epsilon", 10, "--delta", "1e-3")
WRITER = """
import resource, sys
from queryveil.errors import QueryveilError
from tests.support.releases import released_tallies
release = released_tallies({f"kestrel {i}": 100 + i for i in range(2000)})
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
try:
    release.save(sys.argv[1])
except QueryveilError as error:
    print(error)
"""


@pytest.fixture
def clicked(tmp_path: Path) -> Path:
    rows = [f"persona{i:03},kestrel,https://shop.example/lamp" for i in range(300)]
    path = tmp_path / "log.csv"
    path.write_text("\n".join(["user,query,url", *rows]) + "\n")
    return path


def test_clicks_are_counted_if_there_are_to_be_any(run: Run, clicked: Path, tmp_path: Path) -> None:
    done = run("anonymize", "dp", clicked, "-o", tmp_path / "out", "--clicks", 0.5, *SURELY)
    assert read_release(tmp_path / "out").tallies.n_clicks == 1
    assert [line.split(maxsplit=1)[1] for line in done.stdout.splitlines() if line.startswith("clicks ")] == [
        "1, each a query and a URL with a noisy count"
    ]
    assert not any(line.startswith("nothing was released") for line in done.stderr.splitlines())
    without = run("anonymize", "dp", clicked, "-o", tmp_path / "other", *SURELY)
    assert "clicks" not in without.stdout
    made_up = run("anonymize", "dp", clicked, "-o", tmp_path / "made", "--clicks", 0.5, "--synthesize", 9, *SURELY)
    assert "a query and a URL" not in made_up.stdout


def test_weak_promises_are_warned_of_on_the_terminal(run: Run, clicked: Path, tmp_path: Path) -> None:
    weak = ("--epsilon", 11, "--delta", "2e-3")
    done = run("anonymize", "dp", clicked, "-o", tmp_path / "out", *weak)
    assert "warning: epsilon above 10 promises next to nothing: " in done.stderr
    assert "warning: delta above 0.001 promises next to nothing: " in done.stderr


@pytest.mark.parametrize("rounds", [1, 2])
@pytest.mark.parametrize("options", [(), ("--synthesize", 9)], ids=["counts", "made up"])
@pytest.mark.parametrize("rows", ["", "persona1,kestrel\npersona2,kestrel\n"], ids=["nobody", "two people"])
def test_if_nothing_leaves_that_is_said_and_is_no_error(
    rows: str, options: tuple[object, ...], rounds: int, run: Run, tmp_path: Path
) -> None:
    log, out = tmp_path / "few.csv", tmp_path / "out"
    log.write_text(f"user,query\n{rows}")
    done = run("anonymize", "dp", log, "-o", out, "--delta", "1e-30", "--rounds", rounds, *options)
    assert done.returncode == 0
    thresholds = [str(part.threshold) for part in read_release(out).manifest.noise]
    assert len(thresholds) == rounds
    reached = " or, in the second round, ".join(thresholds)
    assert "nothing was released: no noisy count reached its threshold" in read_release(out).manifest.warnings
    way_out = "nor would one with --epsilon 10 --max-queries 1; more people would help"
    assert f"nothing was released: no noisy count reached {reached}; {way_out}\n" in done.stderr
    assert "rows" in done.stdout if options else "queries" in done.stdout


@pytest.mark.slow
def test_a_release_that_does_not_fit_on_the_disk_is_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = subprocess.run([sys.executable, "-c", WRITER, str(out)], capture_output=True, text=True, check=True)
    assert done.stdout == (
        f"{out}: could not be written: file too large; nothing was released; free space or choose another folder\n"
    )
    assert list(tmp_path.iterdir()) == []
