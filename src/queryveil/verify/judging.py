"""The verb: judge a release, whatever it promises."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from queryveil.formats import read_log
from queryveil.guarantees import Guarantee
from queryveil.log import QueryLog
from queryveil.release import Release, read_release
from queryveil.verify.invented import invented
from queryveil.verify.km import verify_km
from queryveil.verify.verdict import Verdict


def verify(release: Release | Path | str, *, original: QueryLog | Path | str | None = None) -> Verdict:
    """Judge the promise of a release, given as a value or as its folder.

    With the `original` log, or its file, also look for what the release holds and the original does not.
    """
    if not isinstance(release, Release):
        release = read_release(release)
    verdict = judge(release.data, release.promise, time_unit=release.manifest.columns.time.unit)
    if original is None:
        return verdict
    log = original if isinstance(original, QueryLog) else read_log(original)
    n_invented, witnesses = invented(release.data, original=log, promise=release.promise)
    return verdict.joined(witnesses=witnesses, n_violations=n_invented)


def judge(log: QueryLog, promise: Guarantee, *, time_unit: timedelta | None = None) -> Verdict:
    """Judge any promise of a released log; `time_unit` is what its times were rounded to."""
    return verify_km(log, promise, time_unit=time_unit)
