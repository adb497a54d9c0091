"""Identity is who, by ids and by what was done."""

from __future__ import annotations

import hashlib
import hmac

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.plain_attacks import plain_alike

from queryveil.data.rows import Rows
from queryveil.pairing.identity import Identity, identify_by_id, identify_by_overlap
from queryveil.release import keyed

CELLS = st.lists(st.sets(st.sampled_from("abcdefg")), max_size=8)


def who_of(*people: list[int]) -> Identity:
    return Identity(users=Rows.from_lists(people), exact=False)


def cells_of(owners: list[set[str]]) -> pl.DataFrame:
    rows = [(number, cell) for number, cells in enumerate(owners) for cell in sorted(cells)]
    return pl.DataFrame(rows, schema={"owner": pl.Int64, "cell": pl.String}, orient="row")


@given(
    people=st.lists(st.sets(st.integers(0, 5)), min_size=1, max_size=6),
    asked=st.lists(st.tuples(st.integers(-1, 5), st.integers(0, 5)), max_size=12),
)
def test_the_chance_is_one_in_as_many_as_a_candidate_may_be(
    people: list[set[int]], asked: list[tuple[int, int]]
) -> None:
    asked = [(candidate, user) for candidate, user in asked if candidate < len(people)]
    who = who_of(*map(sorted, people))
    candidates, users = (np.array([pair[i] for pair in asked], np.int64) for i in (0, 1))
    plain = [1 / len(people[c]) if c >= 0 and u in people[c] else 0.0 for c, u in asked]
    assert who.chance(candidates, user=users).tolist() == pytest.approx(plain)


@given(people=st.lists(st.sets(st.integers(0, 5)), max_size=6))
def test_all_candidates_that_are_somebody_are_shared_out(people: list[set[int]]) -> None:
    who = who_of(*map(sorted, people))
    shares = who.n_candidates_of(6)
    assert shares.sum() == pytest.approx(sum(map(bool, people)))
    plain = [sum(1 / len(each) for each in people if user in each) for user in range(6)]
    assert shares.tolist() == pytest.approx(plain)


def test_only_says_who_must_be_whom() -> None:
    assert who_of([3], [], [1, 2], [0]).sole_user().tolist() == [3, -1, -1, 0]


def test_ids_that_nobody_has_are_nobody() -> None:
    who = identify_by_id(pl.Series(["u3", "x", "u1"]), users=pl.Series(["u1", "u2", "u3"]))
    assert who.exact
    assert who.sole_user().tolist() == [2, -1, 0]
    empty = pl.Series([], dtype=pl.String)
    assert identify_by_id(empty, users=pl.Series(["u1"])).n_candidates == 0
    assert identify_by_id(pl.Series(["u1"]), users=empty).sole_user().tolist() == [-1]


def test_keyed_ids_are_those_of_a_release() -> None:
    expected = hmac.new(b"opensesame-opensesame", b"u1", hashlib.sha256).hexdigest()[:32]
    assert keyed(pl.Series(["u1"]), key=b"opensesame-opensesame").to_list() == [expected]
    assert keyed(pl.Series([], dtype=pl.String), key=b"opensesame-opensesame").dtype == pl.String


@given(candidates=CELLS, users=CELLS)
def test_who_did_most_alike_is_whom_the_plain_one_finds(candidates: list[set[str]], users: list[set[str]]) -> None:
    who = identify_by_overlap(
        cells_of(candidates), users=cells_of(users), n_candidates=len(candidates), n_users=len(users)
    )
    assert not who.exact
    assert who.users.to_lists() == [plain_alike(each, users) for each in candidates]


def test_things_done_twice_count_once() -> None:
    twice = pl.DataFrame({"owner": [0, 0, 0], "cell": ["a", "a", "a"]})
    who = identify_by_overlap(twice, users=cells_of([{"a"}, {"a", "b"}]), n_candidates=1, n_users=2)
    assert who.users.to_lists() == [[0, 1]]


def test_groups_are_nobody() -> None:
    who = Identity.unknown(3)
    assert who.n_candidates == 3
    assert who.chance(np.array([0, 2]), user=np.array([0, 1])).tolist() == [0, 0]
    assert who.n_candidates_of(2).tolist() == [0, 0]


def test_no_repr_tells_who_is_who() -> None:
    assert repr(who_of([7])) == "Identity(n_candidates=1, exact=False)"
