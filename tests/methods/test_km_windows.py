"""Times of km in windows: the starts of windows, which the promise covers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.releases import timed_log

from queryveil.checks import verify
from queryveil.errors import BadParameter
from queryveil.methods import Km
from queryveil.release import ColumnPolicy, TimeDetail

SHARED, BY_DAY = ColumnPolicy(time=TimeDetail.SHARED), ColumnPolicy(time=TimeDetail.DAY)


def test_shared_times_are_the_starts_of_windows_and_days_put_back_are_found(tmp_path: Path) -> None:
    log = timed_log([(user, "wine", 24.0 * day + 7) for user in ("1", "2") for day in range(14)])
    release = Km(k=2, m=1, window="7d", columns=SHARED).anonymize(log)
    starts = release.log.frame["time"]
    # Fourteen days from a Monday on; windows of seven begin on Thursdays.
    assert (starts.n_unique(), set(starts.dt.weekday()), set(starts.dt.hour())) == (3, {4}, {0})
    verdict = verify(release.save(tmp_path / "out"))
    assert (verdict.holds, verdict.notes) == (True, ())
    assert not any("times" in warning for warning in release.manifest.warnings)
    days = Km(k=2, m=1, window="7d", columns=BY_DAY).anonymize(log)
    (fault,) = verify(replace(days, manifest=release.manifest).save(tmp_path / "days")).faults
    assert "times are finer than manifest.json says (shared) in" in fault


def test_without_windows_no_times_are_shared() -> None:
    with pytest.raises(
        BadParameter, match="time must be drop, day, hour or keep here; only kdelta, and km with a window"
    ):
        Km(k=2, columns=SHARED)
    with pytest.raises(BadParameter, match="window must be a multiple of the released times"):
        Km(k=2, window="12h", columns=SHARED)
