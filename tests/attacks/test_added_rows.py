"""Somebody who knows that rows were made up."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from tests.support.releases import released

from queryveil.attacks.added_rows import AddedRows, _likeness, _with_cells
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
    # One cup too many, and a jaguar.
    assert found.n_targets == 2


def test_urls_and_missing_urls_tell_rows_apart() -> None:
    before = QueryLog.from_frame({"user": ["u1", "u1"], "query": ["cup", "cup"], "url": ["a.example", None]})
    after = QueryLog.from_frame({"user": ["u1", "u1"], "query": ["cup", "cup"], "url": ["b.example", None]})
    found = AddedRows(seed=1).attack(Pair(before, release=as_kdelta(after, n_added=2)), auxiliary=NOTHING)
    assert found.n_targets == 1


def test_one_half_of_the_people_teaches_what_made_up_rows_of_the_other_look_like() -> None:
    # Real queries are repeated, made-up ones stand alone.
    before = log_of({f"u{i}": [f"w{i % 7}"] * 3 for i in range(60)})
    after = log_of({f"u{i}": [*[f"w{i % 7}"] * 3, f"w{(i + 1) % 7}", f"w{(i + 2) % 7}"] for i in range(60)})
    found = AddedRows(seed=1).attack(Pair(before, release=as_kdelta(after, n_added=120)), auxiliary=NOTHING)
    assert (found.n_targets, found.n_found, found.n_by_chance) == (120, 120, 48)


def test_users_with_equal_shares_are_one_group_whatever_the_number_of_their_rows() -> None:
    log = QueryLog.from_frame({"user": ["u1", "u1", "u2", "u2", "u2", "u2", "u3"], "query": ["a", "b"] * 3 + ["a"]})
    rows = _with_cells(as_kdelta(log, n_added=1))
    groups = dict(zip(rows["user"], rows["group"], strict=True))
    assert groups["u1"] == groups["u2"] != groups["u3"]
    assert rows["cell"].n_unique() == 2


def test_the_words_of_a_row_are_looked_for_in_the_other_queries_of_its_user() -> None:
    log = log_of({"u1": ["red wine", "red cup", "cello"], "u2": ["red"]})
    assert _likeness(log.frame, "user")[:, 0].tolist() == [0.5, 0.5, 0.0, 0.0]


def test_a_release_without_made_up_rows_is_not_attacked() -> None:
    assert AddedRows().skip_reason(Pair.pseudonymised(tiny_log()), auxiliary=NOTHING) == "no rows were made up"
    none_added = Pair(tiny_log(), release=as_kdelta(tiny_log(), n_added=0))
    assert AddedRows().skip_reason(none_added, auxiliary=NOTHING) == "no rows were made up"


def test_a_negative_seed_is_a_clear_error() -> None:
    with pytest.raises(BadParameter, match="seed must be 0 or more"):
        AddedRows(seed=-1)
