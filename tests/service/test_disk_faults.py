"""A disk that fails at any call of a stream, or a kill at it: nothing is lost and nothing is said twice."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.disk_faults import run_faulty

pytestmark = pytest.mark.slow

STREAMS = Path(__file__).with_name("faulty_streams.py")


# Threads of a service may call the disk less often than in the round that was traced, so not all points are reached.
@pytest.mark.parametrize(("kind", "least"), [("commits", 20), ("service", 5)])
def test_a_stream_whose_disk_fails_anywhere_loses_nothing_and_repeats_nothing(
    tmp_path: Path, kind: str, least: int
) -> None:
    *wrong, n_points = run_faulty(STREAMS, tmp_path / "home", kind, home=tmp_path)
    assert not wrong, "\n".join(wrong)
    assert int(n_points.split()[0]) >= least
