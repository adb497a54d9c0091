"""Somebody who knows that rows were made up."""

from __future__ import annotations

import msgspec
import numpy as np
import polars as pl
import pytest
from tests.support.releases import released

from queryveil.attacks.added_rows import AddedRows, suspicion
from queryveil.attacks.attacker import AuxiliaryData, Exposure
from queryveil.data import QueryLog
from queryveil.errors import BadParameter
from queryveil.methods import Kdelta
from queryveil.pairing import Pair
from queryveil.release import ColumnPolicy, Ids, Release, TimeDetail
from queryveil.rng import generator
from queryveil.synthesis import synthesize
from queryveil.testing.logs import log_of, tiny_log

NOTHING = AuxiliaryData()


def as_kdelta(log: QueryLog, *, n_added: int) -> Release:
    """Return a log as if kdelta had released it."""
    manifest = released(log, method="kdelta").manifest
    return Release(data=log, manifest=msgspec.structs.replace(manifest, changed={"rows_added": n_added}))


@pytest.fixture(scope="module")
def made() -> QueryLog:
    return synthesize(users=2000, seed=6).log


def attacked(log: QueryLog, *, time: TimeDetail = TimeDetail.DAY, ids: Ids = Ids.KEEP) -> Exposure:
    release = Kdelta(k=5, columns=ColumnPolicy(ids=ids, time=time), seed=1).anonymize(log)
    pair = Pair(log, release=release)
    assert AddedRows().skip_reason(pair, auxiliary=NOTHING) is None
    return AddedRows(seed=1).attack(pair, auxiliary=NOTHING)


@pytest.mark.slow
def test_rows_that_kdelta_makes_up_can_be_told_better_than_blindly_and_better_still_by_exact_times(
    made: QueryLog,
) -> None:
    by_day, exact = attacked(made), attacked(made, time=TimeDetail.KEEP)
    assert by_day.share > by_day.chance_share + 0.1
    assert exact.n_targets == by_day.n_targets
    assert exact.n_found > by_day.n_found


@pytest.mark.slow
def test_fresh_ids_are_judged_by_those_who_can_be_told(made: QueryLog) -> None:
    exact, estimated = attacked(made), attacked(made, ids=Ids.FRESH)
    assert estimated.beats_chance
    assert 0.8 * exact.n_targets < estimated.n_targets <= 1.2 * exact.n_targets


def test_rows_with_nothing_to_tell_them_apart_are_found_by_chance_only() -> None:
    # Everybody has two real rows and two made-up ones, all alike.
    n_users, rng = 500, generator(3)
    words = rng.integers(0, 200, (n_users, 4))
    before = log_of({f"u{i}": [f"w{w}" for w in words[i, :2]] for i in range(n_users)})
    after = log_of({f"u{i}": [f"w{w}" for w in words[i]] for i in range(n_users)})
    pair = Pair(before, release=as_kdelta(after, n_added=2 * n_users))
    shares = [AddedRows(seed=seed).attack(pair, auxiliary=NOTHING).share for seed in range(10)]
    assert np.mean(shares) == pytest.approx(0.5, abs=0.04)


def test_a_row_is_made_up_if_its_user_has_more_of_it_than_before() -> None:
    before = log_of({"u1": ["Red  wine", "jaguar"], "u2": ["cup", "cup"]})
    after = log_of({"u1": ["red wine", "jaguar"], "u2": ["cup", "cup", "cup", "jaguar"]})
    found = AddedRows(seed=1).attack(Pair(before, release=as_kdelta(after, n_added=6)), auxiliary=NOTHING)
    # All rows are named, so all that are made up are found: one cup too many, and a jaguar.
    assert (found.n_targets, found.n_found, found.n_by_chance) == (2, 2, 2)


def test_urls_and_missing_urls_tell_rows_apart() -> None:
    before = QueryLog.from_frame({"user": ["u1", "u1"], "query": ["cup", "cup"], "url": ["a.example", None]})
    after = QueryLog.from_frame({"user": ["u1", "u1"], "query": ["cup", "cup"], "url": ["b.example", None]})
    found = AddedRows(seed=1).attack(Pair(before, release=as_kdelta(after, n_added=2)), auxiliary=NOTHING)
    assert (found.n_targets, found.n_found) == (1, 1)


def test_what_is_repeated_seems_real_and_what_many_have_seems_copied() -> None:
    log = log_of({"u1": ["red wine", "red wine", "jaguar", "cello"], "u2": ["jaguar"], "u3": ["jaguar"]})
    repeated, _, copied, own, *_ = suspicion(log, exact_times=False)
    assert repeated < own < copied


def test_a_time_that_another_row_of_the_user_has_is_suspect_if_times_are_exact() -> None:
    frame = {"user": ["u1"] * 3, "query": ["a", "b", "c"], "time": ["2024-03-04 10:00", "2024-03-04 10:00", None]}
    log = QueryLog.from_frame(pl.DataFrame(frame).with_columns(pl.col("time").str.to_datetime("%Y-%m-%d %H:%M")))
    one, other, without = suspicion(log, exact_times=True)
    assert one == other > without
    assert len(set(suspicion(log, exact_times=False).tolist())) == 1


def test_a_release_without_made_up_rows_is_not_attacked() -> None:
    assert AddedRows().skip_reason(Pair.pseudonymised(tiny_log()), auxiliary=NOTHING) == "no rows were made up"
    none_added = Pair(tiny_log(), release=as_kdelta(tiny_log(), n_added=0))
    assert AddedRows().skip_reason(none_added, auxiliary=NOTHING) == "no rows were made up"


def test_a_negative_seed_is_a_clear_error() -> None:
    with pytest.raises(BadParameter, match="seed must be 0 or more"):
        AddedRows(seed=-1)
