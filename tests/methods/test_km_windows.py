"""Times of km that the promise covers: starts of windows, and days and weeks that count as terms."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path

import msgspec
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.km_by_force import verify_km_by_force
from tests.support.releases import timed_log

from queryveil.checks import verify
from queryveil.checks.km import verify_km
from queryveil.data import QueryLog
from queryveil.errors import BadParameter
from queryveil.guarantees import KmAnonymity
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


def test_shared_times_that_do_not_fit_are_refused() -> None:
    with pytest.raises(BadParameter, match="m must be a number, or a window, where times are shared"):
        Km(k=2, m=None, columns=SHARED)
    with pytest.raises(BadParameter, match="window must be a multiple of the released times"):
        Km(k=2, window="12h", columns=SHARED)


def timed(*rows: tuple[str, str, int | None]) -> QueryLog:
    """Return rows of user, query and day, of which None is no time."""
    users, queries, days = zip(*rows, strict=True)
    times = [None if day is None else datetime(2026, 3, 1 + day) for day in days]
    return QueryLog.from_frame({"user": users, "query": queries, "time": times})


ROWS = st.lists(
    st.tuples(
        st.sampled_from("1234567"), st.sampled_from(["wine", "tea", "wine tea", "rye"]), st.none() | st.integers(0, 29)
    ),
    min_size=1,
    max_size=40,
)


@examples(60)
@given(rows=ROWS, k=st.integers(2, 4), m=st.integers(1, 3))
def test_released_times_count_as_terms_and_none_has_too_few_users(
    rows: list[tuple[str, str, int | None]], k: int, m: int
) -> None:
    log = timed(*rows)
    release = Km(k=k, m=m, columns=SHARED, seed=1).anonymize(log)
    without = Km(k=k, m=m, seed=1).anonymize(log)
    promise = release.promise
    assert isinstance(promise, KmAnonymity)
    assert verify_km_by_force(release.log, promise).holds
    assert verify_km(release.log, promise).holds
    # Times cost no term: the same rows stay with the same texts.
    assert sorted(release.log.frame["query"]) == sorted(without.log.frame["query"])


@examples(60)
@given(rows=ROWS, k=st.integers(2, 4), m=st.integers(1, 3))
def test_times_are_judged_as_by_the_definition(rows: list[tuple[str, str, int | None]], k: int, m: int) -> None:
    log, promise = timed(*rows), KmAnonymity(k=k, m=m, time_unit="1d")
    fast, slow = verify_km(log, promise), verify_km_by_force(log, promise)
    assert (fast.holds, fast.n_violations) == (slow.holds, slow.n_violations)


def test_a_day_with_a_term_that_too_few_share_is_found() -> None:
    """Both terms and both days have two users; wine on the second day has one."""
    log = timed(("1", "wine", 0), ("1", "wine", 1), ("2", "wine", 0), ("3", "tea", 1), ("3", "tea", 0), ("4", "tea", 0))
    assert verify_km(log, KmAnonymity(k=2, m=1, time_unit="1d")).holds
    assert verify_km(log, KmAnonymity(k=2, m=2)).holds
    verdict = verify_km(log, KmAnonymity(k=2, m=2, time_unit="1d"))
    assert not verdict.holds
    assert "2026-03-02 00:00:00" in verdict._terms(verdict.witnesses[0], log)


def test_the_finest_unit_that_half_of_the_rows_keep_is_released() -> None:
    same_day = timed(*((user, "wine", 3) for user in "1234"))
    same_week = timed(*((user, "wine", 4 + day) for day, user in enumerate("1234")))
    never = timed(*((user, "wine", None) for user in "1234"))
    units = [Km(k=2, m=2, columns=SHARED).anonymize(log).manifest for log in (same_day, same_week, never)]
    assert [unit.promise.time_unit for unit in units] == ["1d", "7d", None]
    assert [unit.columns.time for unit in units] == ["shared", "shared", "drop"]
    assert any("times are dropped" in warning for warning in units[2].warnings)


def test_times_put_back_into_a_release_are_found(tmp_path: Path) -> None:
    log = timed(*((user, "wine", 4 + day) for day, user in enumerate("1234")))
    release = Km(k=2, m=2, columns=SHARED).anonymize(log)
    assert verify(release.save(tmp_path / "weeks")).holds
    days = release.log.frame.with_columns(time=pl.Series([datetime(2026, 3, 5 + day) for day in range(4)]))
    forged = replace(release, data=release.log.with_frame(days))
    (fault,) = verify(forged.save(tmp_path / "days")).faults
    assert "times are finer than manifest.json says" in fault
    finer = msgspec.structs.replace(release.manifest.promise, time_unit="1d")
    forged = replace(forged, manifest=msgspec.structs.replace(release.manifest, promise=finer))
    assert verify(forged.save(tmp_path / "as-days")).n_violations == 4


def test_the_clock_is_read_in_the_unit_of_the_release() -> None:
    log = timed_log([(user, "wine", 24.0 * day + 7) for user in ("1", "2") for day in range(14)])
    release = Km(k=2, m=1, window="7d", columns=SHARED).anonymize(log)
    assert release.time_step is not None
    assert release.time_step.days == 7
