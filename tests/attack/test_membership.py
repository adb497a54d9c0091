"""Somebody who wonders whether a person is in the log."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st

from queryveil.attack.membership import Membership, above, gains, statistic
from queryveil.attack.ports import Given
from queryveil.errors import BadParameter
from queryveil.histories import collect
from queryveil.log import QueryLog
from queryveil.methods import Km, Plink
from queryveil.paired import Paired, pseudonymised
from queryveil.rng import generator
from queryveil.synth import synthesize
from queryveil.testing.logs import log_of
from queryveil.testing.plain_judging import plain_membership
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


def test_members_of_a_pseudonymised_log_are_found_far_more_often_than_others(thirds: list[QueryLog]) -> None:
    found = Membership(seed=1).attack(Paired.pseudonymised(thirds[0]), given=Given(public=thirds[1]))
    assert (found.n_targets, found.n_by_chance) == (1000, 10)
    assert found.n_found > 50
    assert found.beats_chance


def test_weighing_terms_by_how_rare_they_are_finds_more(thirds: list[QueryLog]) -> None:
    before, public = Paired.pseudonymised(thirds[0]), Given(public=thirds[1])
    plain = Membership(weighted=False, seed=1).attack(before, given=public)
    assert Membership(seed=1).attack(before, given=public).n_found > 2 * plain.n_found


@pytest.mark.parametrize("weighted", [True, False])
def test_a_release_of_other_people_finds_one_in_a_hundred(thirds: list[QueryLog], weighted: bool) -> None:
    target, public, others = thirds
    # One row of the target is left in, so that the two are of the same ids at all.
    mixed = target.with_frame(pl.concat([others.frame, target.frame.head(1)]))
    pair = Paired.of(target, release=pseudonymised(mixed))
    shares = [
        Membership(weighted=weighted, n_targets=5000, seed=seed).attack(pair, given=Given(public=public)).share
        for seed in range(6)
    ]
    assert 0.003 < np.mean(shares) < 0.02


def test_small_histories_that_many_share_hide_who_is_in_the_log(thirds: list[QueryLog]) -> None:
    pair = Paired.of(thirds[0], release=Km(k=10, m=3, seed=1).anonymize(thirds[0]))
    found = Membership(seed=1).attack(pair, given=Given(public=thirds[1]))
    assert not found.beats_chance


def test_groups_and_their_holders_can_be_attacked(thirds: list[QueryLog]) -> None:
    for strict in (False, True):
        pair = Paired.of(thirds[0], release=Plink(seed=1, strict=strict).anonymize(thirds[0]))
        found = Membership(seed=1).attack(pair, given=Given(public=thirds[1]))
        assert found.n_targets == 1000
        assert found.share < 0.1


@drawn(population=shares, released=shares, own=st.sets(st.integers(0, 3), min_size=1))
def test_the_statistic_is_the_sum_that_the_page_writes(
    population: list[float], released: list[float], own: set[int]
) -> None:
    log = log_of({"u1": ["a b c d"], "u2": [" ".join("abcd"[i] for i in sorted(own))]})
    histories = collect(tokenize(log.frame["query"]), np.array([0, 1], np.int32), n_users=2)
    gain = gains(np.array(population), released=np.array(released), weighted=False)
    found = statistic(histories, users=np.array([1]), gain=gain, weighted=False)[0]
    assert found == pytest.approx(plain_membership(own, population=population, released=released), abs=1e-9)


@drawn(st.lists(st.integers(0, 50), min_size=100, max_size=400))
def test_no_more_than_one_in_a_hundred_outside_is_above_the_threshold(outside: list[int]) -> None:
    values = np.array(outside, np.float64)
    assert (values > above(values)).sum() <= len(values) // 100


def test_it_needs_a_public_log_of_enough_people(thirds: list[QueryLog]) -> None:
    before = Paired.pseudonymised(thirds[0])
    few = thirds[1].with_frame(thirds[1].frame.filter(pl.col("user") == thirds[1].frame["user"][0]))
    assert Membership().misses(before, given=Given()) == "needs a public log of the same kind: --public FILE"
    assert Membership().misses(before, given=Given(public=few)) == "needs a public log of 200 people or more"
    assert Membership().misses(before, given=Given(public=thirds[1])) is None


def test_no_targets_is_a_clear_error() -> None:
    with pytest.raises(BadParameter, match="n_targets must be 1 or more"):
        Membership(n_targets=0)
