"""A disk that fails at any call, or a kill at it: the old or the new release is whole, with its own key."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.disk_faults import run_faulty

pytestmark = pytest.mark.slow

SAVES = Path(__file__).with_name("faulty_saves.py")


@pytest.mark.parametrize("how", ["new", "force", "force no-exchange"])
def test_after_any_fault_a_release_is_whole_and_its_key_is_its_own(tmp_path: Path, how: str) -> None:
    *wrong, n_points = run_faulty(SAVES, tmp_path / "home", *how.split(), home=tmp_path)
    assert not wrong, "\n".join(wrong)
    assert int(n_points.split()[0]) >= 10
