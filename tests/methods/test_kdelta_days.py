"""kdelta with days that a group shares: the promise by its definition, and what verify finds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import polars as pl
import pytest
from hypothesis import given
from tests.methods.test_kdelta import METHODS, anonymize, broken
from tests.support.examples import examples

from queryveil.checks import verify
from queryveil.data import QueryLog
from queryveil.errors import BadParameter
from queryveil.guarantees import KdeltaAnonymity
from queryveil.methods.kdelta import Kdelta
from queryveil.release import ColumnPolicy
from queryveil.synthesis import synthesize
from queryveil.testing.strategies import clicked_logs

SHARED = ColumnPolicy(ids="keep", time="shared")  # type: ignore[arg-type]


@pytest.mark.parametrize("method", [each for each in METHODS if not each.max_distance])
@examples(25)
@given(log=clicked_logs())
def test_groups_of_k_share_their_days_where_that_is_asked_for(method: Kdelta, log: QueryLog) -> None:
    release = anonymize(replace(method, columns=SHARED), log)
    if release is None:
        return
    delta = 0.0 if method.same_texts else method.delta
    assert release.promise == KdeltaAnonymity(k=method.k, delta=delta, same_texts=method.same_texts, same_days=True)
    assert not broken(release, k=method.k, delta=delta)
    assert verify(release, original=log).holds
    # Nothing is warned of, as the promise covers it, and each day is one on which somebody searched.
    assert not any("times" in warning for warning in release.manifest.warnings)
    if log.n_rows:
        days = log.frame["time"].dt.truncate("1d").to_list()
        assert set(release.log.frame["time"].to_list()) <= set(days)


def test_true_days_put_back_are_found(tmp_path: Path) -> None:
    log = synthesize(users=300, seed=4).log
    shared, true = (
        Kdelta(k=3, same_texts=True, columns=ColumnPolicy(time=time), seed=1).anonymize(log)  # type: ignore[arg-type]
        for time in ("shared", "day")
    )
    assert verify(shared.save(tmp_path / "shared")).holds
    forged = replace(true, manifest=shared.manifest)
    found = verify(forged)
    assert not found.holds
    assert {witness.kind for witness in found.witnesses} == {"shares"}
    # Another promise beside the same times is found too, and so are times of the day.
    told = msgspec.structs.replace(shared.manifest, promise=true.promise)
    (fault,) = verify(replace(shared, manifest=told).save(tmp_path / "told")).faults
    assert fault == "manifest.json says of times that they are shared, and promises something else of them"
    noon = shared.log.frame.with_columns(pl.col("time").dt.offset_by("12h"))
    (fault,) = verify(replace(shared, data=log.with_frame(noon)).save(tmp_path / "noon")).faults
    assert fault.startswith("log.parquet: times are finer than manifest.json says (shared) in ")


def test_days_that_are_shared_need_exact_groups() -> None:
    with pytest.raises(BadParameter, match="time must be drop, day, hour or keep here"):
        Kdelta(mode="paper", columns=SHARED)
    with pytest.raises(BadParameter, match="time must be drop, day, hour or keep here"):
        Kdelta(max_distance=0.2, columns=SHARED)
