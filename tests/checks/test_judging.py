"""The verb: a release judged as a value and as a folder, with its original and without."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import polars as pl
import pytest

import queryveil
from queryveil.checks import judge, verify
from queryveil.data import QueryLog
from queryveil.errors import BadRelease
from queryveil.guarantees import KmAnonymity
from queryveil.release import ColumnReport, Counts, Ids, Manifest, Release, TimeDetail

LOG = QueryLog.from_frame({"user": ["1", "2", "3"], "query": ["red kettle", "kettle red", "kettle"]})


def release_of(log: QueryLog, promise: KmAnonymity, *, time: TimeDetail = TimeDetail.DROP) -> Release:
    counts = Counts(
        n_rows_before=log.n_rows, n_rows_after=log.n_rows, n_users_before=log.n_users, n_users_after=log.n_users
    )
    columns = ColumnReport(ids=Ids.FRESH, time=time)
    manifest = Manifest(
        method="by hand", promise=promise, parameters={}, counts=counts, removed={}, columns=columns, warnings=()
    )
    return Release(data=log, manifest=manifest)


def test_a_release_is_judged_by_the_promise_in_its_manifest() -> None:
    assert verify(release_of(LOG, KmAnonymity(k=2, m=2))).holds
    assert not verify(release_of(LOG, KmAnonymity(k=3, m=2))).holds
    assert verify(release_of(LOG, KmAnonymity(k=3, m=2))) == judge(LOG, KmAnonymity(k=3, m=2))


def test_a_release_folder_is_judged_as_the_release_it_holds(tmp_path: Path) -> None:
    for promise in (KmAnonymity(k=2, m=2), KmAnonymity(k=3, m=None)):
        release = release_of(LOG, promise)
        folder = release.save(tmp_path / f"release {promise.k}")
        assert verify(folder) == verify(str(folder)) == verify(release)


def test_a_missing_folder_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(BadRelease, match="no such folder"):
        verify(tmp_path / "nowhere")


def test_the_package_is_the_verb() -> None:
    assert queryveil.verify(release_of(LOG, KmAnonymity(k=2, m=2))).holds


def test_times_of_whole_days_cannot_tell_windows_of_hours() -> None:
    times = [datetime(2020, 1, day) for day in (1, 2, 2)]
    log = QueryLog.from_frame(LOG.frame.with_columns(time=pl.Series(times)))
    hourly = KmAnonymity(k=2, m=1, window="6h")
    assert verify(release_of(log, hourly, time=TimeDetail.DAY)).notes
    assert not verify(release_of(log, hourly, time=TimeDetail.KEEP)).notes


def test_a_release_that_keeps_its_promise_may_still_hold_what_the_original_does_not(tmp_path: Path) -> None:
    release = release_of(LOG, KmAnonymity(k=2, m=2))
    assert verify(release, original=LOG).holds
    smaller = QueryLog.from_frame({"user": ["x", "y"], "query": ["red kettle", "kettle"]})
    verdict = verify(release, original=smaller)
    assert not verdict.holds
    assert {witness.kind for witness in verdict.witnesses} == {"invented"}
    assert [(w.size, w.support, w.needed) for w in verdict.witnesses] == [(0, 3, 2), (0, 3, 2), (1, 2, 1), (1, 3, 2)]
    file = tmp_path / "original.parquet"
    smaller.frame.write_parquet(file)
    assert verify(release, original=file) == verify(release, original=str(file)) == verdict
