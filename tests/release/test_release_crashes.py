"""A run that is killed, or a disk that is full, leaves no release; the next run cleans up."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from queryveil.checks import verify
from queryveil.errors import OutputBusy
from queryveil.methods import Km
from queryveil.release import read_release
from queryveil.synthesis import synthesize, write_synthetic
from queryveil.testing import tiny_log

pytestmark = pytest.mark.slow

# Saves a release, and stops when the data is written and the manifest is about to be.
SAVE_HALF = """
import os, signal, sys
from queryveil.methods import Km
from queryveil.testing import tiny_log
stopped = []
def stop(event, arguments):
    if event == "open" and os.path.basename(str(arguments[0])) == "manifest.json" and not stopped:
        stopped.append(True)
        os.kill(os.getpid(), signal.SIGSTOP)
release = Km(k=2, m=1).anonymize(tiny_log())
sys.addaudithook(stop)
release.save(sys.argv[1], force="force" in sys.argv)
"""

# The system stops files from growing beyond a few bytes, as a full disk would.
FULL_DISK = """
import resource, sys
from pathlib import Path
import polars as pl
from queryveil.errors import QueryveilError
from queryveil.formats import layout_for
from queryveil.data.log import QueryLog
from queryveil.methods import Km
frame = pl.DataFrame({"user": [f"u{i}" for i in range(2000)], "query": ["brass kettle"] * 2000})
releases = {
    name: Km(k=2, m=1).anonymize(QueryLog(frame=frame, layout=layout_for(Path(name))))
    for name in ("log.tsv", "log.csv", "log.jsonl", "log.parquet", "log.tsv.gz", "log.csv.zst", "log.jsonl.bz2")
}
resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
for name, release in releases.items():
    try:
        release.save(Path(sys.argv[1]) / name)
        print(name, "was written")
    except QueryveilError as error:
        print(error)
"""


def start(*arguments: object, code: str | None = None) -> subprocess.Popen[bytes]:
    program = ["-c", code] if code else ["-m", "queryveil"]
    command = [sys.executable, *program, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def start_half(*arguments: object) -> subprocess.Popen[bytes]:
    """Start a run, and return when it has stopped in the middle of its writing."""
    process = start(*arguments, code=SAVE_HALF)
    status = os.waitpid(process.pid, os.WUNTRACED)[1]
    assert os.WIFSTOPPED(status), "it ended and should have stopped"
    return process


def kill(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()


def partials(folder: Path) -> list[Path]:
    return list(folder.glob(".*.partial-*"))


def save_small(folder: Path) -> None:
    Km(k=2, m=1).anonymize(tiny_log()).save(folder, force=True)


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_run_killed_while_it_writes_leaves_no_release_and_the_next_one_cleans_up(tmp_path: Path) -> None:
    kill(start_half(tmp_path / "out", "force"))
    assert [names(folder) for folder in partials(tmp_path)] == [{"log.parquet"}]
    assert names(tmp_path) == {".out.lock", *(path.name for path in partials(tmp_path))}
    save_small(tmp_path / "out")
    assert names(tmp_path) == {"out"}


def test_a_second_run_is_told_of_the_first_and_disturbs_nothing(tmp_path: Path) -> None:
    process = start_half(tmp_path / "out", "force")
    try:
        before = names(tmp_path)
        with pytest.raises(OutputBusy, match="another run is writing to") as told:
            save_small(tmp_path / "out")
        assert "\n" not in str(told.value)
        assert names(tmp_path) == before
    finally:
        kill(process)
    save_small(tmp_path / "out")
    assert names(tmp_path) == {"out"}


def test_without_force_a_release_made_by_others_in_the_meantime_stays(tmp_path: Path) -> None:
    save_small(tmp_path / "other")
    process = start_half(tmp_path / "out")
    (tmp_path / "other").rename(tmp_path / "out")
    process.send_signal(signal.SIGCONT)
    assert process.wait() == 1
    assert read_release(tmp_path / "out").data.n_rows == read_release(tmp_path / "out").manifest.counts.n_rows_after
    assert names(tmp_path) == {"out"}


def test_a_command_killed_at_any_moment_leaves_a_whole_release_or_none(tmp_path: Path) -> None:
    write_synthetic(synthesize(users=2000, seed=1), tmp_path / "log.tsv")
    home = tmp_path / "home"
    home.mkdir()
    moments = random.Random(7)
    for _ in range(6):
        process = start("anonymize", "km", tmp_path / "log.tsv", "-o", home / "out", "--k", 5, "--m", 2, "--force")
        end = time.monotonic() + moments.uniform(0.1, 2.5)
        while process.poll() is None and time.monotonic() < end and not partials(home):
            time.sleep(0.002)
        kill(process)
        if (home / "out").exists():
            assert verify(read_release(home / "out")).holds
        assert all(name in ("out", ".out.lock") or name.startswith(".out.partial-") for name in names(home))
    save_small(home / "out")
    assert names(home) == {"out"}


def test_a_full_disk_is_a_clear_error_and_leaves_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(tmp_path)], capture_output=True, text=True, check=False, cwd=os.sep
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 7
    for line in lines:
        assert "written: file too large" in line.lower()
        assert "kettle" not in line
    assert not list(tmp_path.iterdir())
