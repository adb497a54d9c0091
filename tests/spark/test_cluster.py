"""With executors that are processes of their own, as on a cluster."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.examples import SOAKS

from queryveil import read_release, synth, verify

pytestmark = pytest.mark.skipif(shutil.which("java") is None, reason="Java is not installed")
N_USERS = 1_000_000 if SOAKS else 1_500
"""A million takes ten minutes on two cores."""
N_PARTITIONS = "16" if SOAKS else "4"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with two releases by the same seed; while one was made, an executor was killed."""
    folder = tmp_path_factory.mktemp("cluster")
    log = folder / "log.parquet"
    synth(users=N_USERS, seed=1).log.frame.write_parquet(log)
    script = Path(__file__).with_name("cluster_km.py")
    command = [sys.executable, str(script), str(log), str(folder / "left"), str(folder / "killed"), "7", N_PARTITIONS]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    told: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    assert [one["executors"] for one in told] == [2, 2]
    assert [one["killed"] for one in told] == [0, 1]
    assert all(one["n_rounds"] > 2 for one in told)
    return folder


def test_a_killed_executor_changes_nothing_in_the_result(folder: Path) -> None:
    left, killed = read_release(folder / "left"), read_release(folder / "killed")
    assert killed.log.frame.equals(left.log.frame)
    assert killed.manifest.counts == left.manifest.counts
    assert killed.manifest.removed == left.manifest.removed
    assert sorted(path.name for path in folder.iterdir()) == ["killed", "left", "log.parquet"]


def test_a_release_by_separate_executors_is_verified_by_the_checker_of_one_machine(folder: Path) -> None:
    release = read_release(folder / "killed")
    assert release.manifest.counts.n_users_before == N_USERS
    # Of so few, many have nothing that ten share.
    assert release.log.n_users > 0.6 * N_USERS
    assert verify(release).holds
