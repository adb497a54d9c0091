"""A service that is killed with SIGKILL at any moment loses nothing and releases nothing twice."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from tests.support.examples import SOAKS
from tests.support.streams import KEY, adds_up, event_lines, keyed_settings, small_tables, write_lines

from queryveil.checks import verify
from queryveil.service.ports import Stats

pytestmark = pytest.mark.slow

MORTAL = Path(__file__).with_name("mortal.py")
MOMENTS = ("before commit", "after commit", "before delivery", "in delivery", "after delivery")


def die_and_finish(deaths: dict[Path, list[str]], *, n_lines: int, seed: int) -> dict[Path, list[int]]:
    """Let the service of each folder die these deaths and run to its end; give how its processes ended."""
    command = [sys.executable, str(MORTAL)]
    for i, (folder, of_folder) in enumerate(deaths.items()):
        folder.mkdir(exist_ok=True)
        log = write_lines(folder / "log.tsv", event_lines(n_lines, seed=seed + i))
        command += [*(["--"] if i else []), str(folder), str(log), *of_folder]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    codes = [[int(code) for code in line.split()] for line in done.stdout.splitlines()]
    return dict(zip(deaths, codes, strict=True))


def check_all_is_well(folder: Path, *, n_lines: int) -> None:
    stats = msgspec.json.decode((folder / "stats.json").read_bytes(), type=Stats)
    assert adds_up(stats)
    assert (stats.n_read, stats.n_waiting, stats.n_outbox_rows) == (n_lines, 0, 0)
    released = (folder / "release" / "log.tsv").read_text(encoding="utf-8").splitlines()
    queries = [line.split("\t")[1] for line in released]
    assert len(queries) == len(set(queries)) == stats.n_released == stats.n_delivered
    with closing(sqlite3.connect(folder / "state.db")) as state:
        assert state.execute("SELECT sum(n) FROM profiles").fetchone() == (stats.n_released,)
        assert state.execute("SELECT count(*) FROM outbox").fetchone() == (0,)
    classifier = keyed_settings(tables=small_tables(folder)).make_classifier()
    verdict = verify(folder / "release", original=folder / "log.tsv", key=KEY, classifier=classifier)
    assert verdict.holds, verdict.in_words()


@pytest.fixture(scope="module")
def dead(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, list[int]]:
    """A service for each moment, all forked from one process, and how their processes ended."""
    home = tmp_path_factory.mktemp("moments")
    return die_and_finish({home / moment: [f"{moment}@1", f"{moment}@4"] for moment in MOMENTS}, n_lines=300, seed=0)


@pytest.mark.parametrize("moment", MOMENTS)
def test_dying_around_a_commit_or_delivery_loses_nothing(dead: dict[Path, list[int]], moment: str) -> None:
    (folder,) = (folder for folder in dead if folder.name == moment)
    assert dead[folder] == [-9, -9, 0]
    check_all_is_well(folder, n_lines=300)


def test_dying_at_random_moments_loses_nothing(tmp_path: Path) -> None:
    n_deaths, n_lines, seed = (50, 6000, random.randrange(10**9)) if SOAKS else (4, 1500, 3)
    rng = random.Random(seed)
    deaths = [f"{rng.uniform(0.0, 0.3):.4f}" for _ in range(n_deaths)]
    codes = die_and_finish({tmp_path: deaths}, n_lines=n_lines, seed=seed)[tmp_path]
    assert codes[-1] == 0
    assert -9 in codes, seed
    check_all_is_well(tmp_path, n_lines=n_lines)


def test_a_release_that_is_being_written_has_no_manifest(tmp_path: Path) -> None:
    log = write_lines(tmp_path / "log.tsv", event_lines(500, seed=9))
    command = [sys.executable, "-c", f"""
import sys; sys.path.insert(0, {str(MORTAL.parent)!r})
from pathlib import Path
from mortal import one_life
assert one_life(Path({str(tmp_path)!r}), Path({str(log)!r}), "after delivery@3") == -9
"""]  # fmt: skip
    subprocess.run(command, check=True)
    assert (tmp_path / "release" / "log.tsv").is_file()
    assert not (tmp_path / "release" / "manifest.json").exists()
    for path in (tmp_path / "state.db", tmp_path / "release" / "log.tsv"):
        assert path.stat().st_mode & 0o077 == 0
