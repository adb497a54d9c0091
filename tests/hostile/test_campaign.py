"""A slice of the campaign, and all of it where there is time; and that what is wrong would be seen."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from tests.hostile.__main__ import run
from tests.hostile.campaign import RESULTS, attack_with_logs, attack_with_releases, tampered_releases
from tests.hostile.malformed_logs import ROWS, Log
from tests.hostile.tampered_manifests import Tampering
from tests.hostile.workers import Job, outcomes
from tests.support.examples import SOAKS

SLICE = ("km csv", "clump parquet", "plink strict", "google csv")


@pytest.mark.slow
def test_nothing_that_was_tampered_with_is_taken_for_sound_and_no_row_is_lost() -> None:
    table = run(seed=1) if SOAKS else run(seed=1, n_logs=30, n_releases=60, only=SLICE)
    assert table.wrong == []
    n_cases = [sum(row.values()) for kind, row in table.counts.items() if kind.startswith("release")]
    assert sum(n_cases) >= (1000 if SOAKS else 60)
    assert {result for row in table.counts.values() for result, n in row.items() if n} <= set(RESULTS)


class _Dying:
    """Ends the process that receives it."""

    def __reduce__(self) -> tuple[Any, tuple[int]]:
        return os._exit, (7,)


@pytest.mark.slow
def test_what_hangs_and_what_dies_is_counted(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    hanging = Job(verb="read", path=str(tmp_path / "pipe"))
    dying = Job(verb="read", path="", options={"x": _Dying()})
    died, hung = outcomes([dying, hanging], seconds=0.01)
    assert died.fault == "the process ended with exit code 7"
    assert hung.is_hang


@pytest.mark.slow
def test_what_is_lost_or_false_is_counted(tmp_path: Path) -> None:
    """The oracle is told of rows that are not there, and that a sound release is false."""
    for part in ("logs", "made", "copies"):
        (tmp_path / part).mkdir()
    data = b"user,query\nu1,tea\n"
    wrong = Log(kind="sound", name="log.csv", data=data, format="csv", rows=ROWS)
    (lost,) = attack_with_logs([wrong], tmp_path / "logs")
    assert (lost.result, lost.why) == ("loss", "5 good rows, and 1 read")
    base = tampered_releases(tmp_path / "made", seed=1, only=["km csv"])[0].base
    sound = Tampering(kind="none", base=base, name="none", apply=lambda _: None, truth="false")
    (false,) = attack_with_releases([sound], tmp_path / "copies")
    assert false.result == "falsehood"
