"""Somebody who wonders whether a person is in the log."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.plain_judging import plain_likeness, plain_membership

from queryveil.attacks import _scoring
from queryveil.attacks.attacker import AuxiliaryData
from queryveil.attacks.membership import Likeness, Membership, above, gains, statistic
from queryveil.data import QueryLog
from queryveil.data.rows import Rows
from queryveil.errors import BadParameter
from queryveil.methods import Clump, Kdelta, Km, Plink, TokenHash
from queryveil.pairing import Pair, pseudonymised
from queryveil.rng import generator
from queryveil.synthesis import synthesize
from queryveil.testing.logs import log_of
from queryveil.text.histories import collect
from queryveil.text.tokens import tokenize

shares = st.lists(st.floats(0, 1), min_size=4, max_size=4)


def parts(log: QueryLog, *, n: int, seed: int = 1) -> list[QueryLog]:
    """Part a log by users drawn at random."""
    users = log.frame["user"].unique(maintain_order=True)
    part = pl.Series(generator(seed).permutation(len(users)) % n)
    return [log.with_frame(log.frame.filter(pl.col("user").is_in(users.filter(part == i).implode()))) for i in range(n)]


@pytest.fixture(scope="module")
def thirds() -> list[QueryLog]:
    return parts(synthesize(users=6000, seed=8).log, n=3)


def test_nearly_all_members_of_a_pseudonymised_log_are_found(thirds: list[QueryLog]) -> None:
    found = Membership(seed=1).attack(Pair.pseudonymised(thirds[0]), auxiliary=AuxiliaryData(public=thirds[1]))
    assert (found.n_targets, found.n_by_chance) == (1000, 10)
    assert found.n_found > 850


def test_frequencies_alone_find_fewer(thirds: list[QueryLog], monkeypatch: pytest.MonkeyPatch) -> None:
    before, public = Pair.pseudonymised(thirds[0]), AuxiliaryData(public=thirds[1])
    alike = Membership(seed=1).attack(before, auxiliary=public)
    # As if no row were one person's.
    monkeypatch.setattr(_scoring, "no_people", lambda _: iter(["nobody"]))
    frequencies = Membership(seed=1).attack(before, auxiliary=public)
    assert frequencies.beats_chance
    assert alike.n_found > 3 * frequencies.n_found


@pytest.mark.slow
@pytest.mark.parametrize("method", [None, Plink(seed=1), Km(k=5, m=2, seed=1), Kdelta(k=5, seed=1), Clump(k=5, seed=1)])
def test_a_release_of_other_people_finds_one_in_a_hundred(
    thirds: list[QueryLog], method: Km | Kdelta | Clump | Plink | None
) -> None:
    target, public, others = thirds
    # One row of the target is left in, so that the two are of the same ids at all.
    mixed = target.with_frame(pl.concat([others.frame, target.frame.head(1)]))
    pair = Pair(target, release=pseudonymised(mixed) if method is None else method.anonymize(mixed))
    shares = [
        Membership(n_targets=5000, seed=seed).attack(pair, auxiliary=AuxiliaryData(public=public)).share
        for seed in range(6)
    ]
    assert 0.002 < np.mean(shares) < 0.02


@pytest.mark.parametrize("method", [Km(k=5, m=2, seed=1), Kdelta(k=5, seed=1)])
def test_histories_with_fewer_terms_or_more_rows_hide_members_in_part(
    thirds: list[QueryLog], method: Km | Kdelta
) -> None:
    pair = Pair(thirds[0], release=method.anonymize(thirds[0]))
    found = Membership(seed=1).attack(pair, auxiliary=AuxiliaryData(public=thirds[1]))
    assert found.beats_chance
    assert found.share < 0.5


def test_bags_of_generalised_items_hide_who_is_in_the_log(thirds: list[QueryLog]) -> None:
    pair = Pair(thirds[0], release=Clump(k=5, seed=1).anonymize(thirds[0]))
    assert Membership(seed=1).attack(pair, auxiliary=AuxiliaryData(public=thirds[1])).share < 0.05


def test_hashed_terms_say_nothing_of_anybody(thirds: list[QueryLog]) -> None:
    key = b"opensesame-opensesame"
    pair = Pair(thirds[0], release=TokenHash(key=key, seed=1).anonymize(thirds[0]), key=key)
    assert (
        Membership().skip_reason(pair, auxiliary=AuxiliaryData(public=thirds[1]))
        == "the terms of the release are hashed"
    )


@examples(40)
@drawn(
    candidates=st.lists(st.sets(st.integers(0, 4), min_size=1), min_size=1, max_size=6),
    own=st.lists(st.sets(st.integers(0, 4)), min_size=1, max_size=4),
    n_holders=st.lists(st.integers(0, 9), min_size=5, max_size=5),
)
def test_the_most_like_is_as_like_as_the_plain_one_says(
    candidates: list[set[int]], own: list[set[int]], n_holders: list[int]
) -> None:
    after = collect(
        tokenize(pl.Series([" ".join("abcde"[i] for i in sorted(each)) for each in [{0, 1, 2, 3, 4}, *candidates]])),
        np.arange(len(candidates) + 1, dtype=np.int32),
        n_users=len(candidates) + 1,
    )
    like = Likeness(pseudonymised(log_of({})), after=after, n_holders=np.array(n_holders), n_people=9)
    ptr, values = Rows.from_lists([sorted(each) for each in own])
    found = like.of_each(Rows(ptr, values.astype(np.int64)))
    plain = [
        plain_likeness(each, [set(range(5)), *candidates], n_holders=n_holders, n_people=9, foreign=0.001, lost=0.02)
        for each in own
    ]
    assert [value for value in found.tolist() if value > -1e5] == pytest.approx([p for p in plain if p is not None])


def test_groups_and_their_holders_can_be_attacked(thirds: list[QueryLog]) -> None:
    for strict in (False, True):
        pair = Pair(thirds[0], release=Plink(seed=1, strict=strict).anonymize(thirds[0]))
        found = Membership(seed=1).attack(pair, auxiliary=AuxiliaryData(public=thirds[1]))
        assert found.n_targets == 1000
        assert found.share < 0.1


@examples(40)
@drawn(population=shares, released=shares, own=st.sets(st.integers(0, 3), min_size=1))
def test_the_statistic_is_that_of_the_definition(population: list[float], released: list[float], own: set[int]) -> None:
    log = log_of({"u1": ["a b c d"], "u2": [" ".join("abcd"[i] for i in sorted(own))]})
    histories = collect(tokenize(log.frame["query"]), np.array([0, 1], np.int32), n_users=2)
    gain = gains(np.array(population), released=np.array(released))
    found = statistic(histories, users=np.array([1]), gain=gain)[0]
    assert found == pytest.approx(plain_membership(own, population=population, released=released), abs=1e-9)


@examples(40)
@drawn(st.lists(st.integers(0, 50), min_size=100, max_size=400))
def test_no_more_than_one_in_a_hundred_outside_is_above_the_threshold(outside: list[int]) -> None:
    values = np.array(outside, np.float64)
    assert (values > above(values)).sum() <= len(values) // 100


def test_it_needs_a_public_log_of_enough_people(thirds: list[QueryLog]) -> None:
    before = Pair.pseudonymised(thirds[0])
    few = thirds[1].with_frame(thirds[1].frame.filter(pl.col("user") == thirds[1].frame["user"][0]))
    assert (
        Membership().skip_reason(before, auxiliary=AuxiliaryData())
        == "needs a public log of the same kind: --public FILE"
    )
    assert (
        Membership().skip_reason(before, auxiliary=AuxiliaryData(public=few))
        == "needs a public log of 200 people or more"
    )
    assert Membership().skip_reason(before, auxiliary=AuxiliaryData(public=thirds[1])) is None


def test_no_targets_is_a_clear_error() -> None:
    with pytest.raises(BadParameter, match="n_targets must be 1 or more"):
        Membership(n_targets=0)
