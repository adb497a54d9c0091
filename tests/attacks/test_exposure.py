from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.plain_attacks import plain_surest

from queryveil.attacks import Exposure
from queryveil.attacks.attacker import Surest, wilson
from queryveil.attacks.limits import Limit, least_risk, risk
from queryveil.errors import BadParameter


def counted(n_found: int, *, n_targets: int = 1000, n_by_chance: float = 20.0) -> Exposure:
    return Exposure(
        attacker="known_terms",
        knows="3 terms",
        what="users",
        n_targets=n_targets,
        n_found=n_found,
        n_by_chance=n_by_chance,
    )


def test_shares_are_of_the_targets() -> None:
    found = counted(30)
    assert (found.share, found.chance_share) == (0.03, 0.02)


def test_the_interval_is_wilsons() -> None:
    # Worked out by hand: 10 of 100, with z = 1.96.
    assert counted(10, n_targets=100).interval == pytest.approx((0.05523, 0.17436), abs=1e-5)


def test_a_share_of_all_there_are_is_exact_and_needs_no_number_of_targets() -> None:
    sample, whole = (replace(counted(0, n_targets=14, n_by_chance=0), is_complete=each) for each in (False, True))
    assert (risk(sample), least_risk(sample)) == (wilson(0, n=14)[1], wilson(0, n=14)[1])
    assert (risk(whole), least_risk(whole), whole.interval) == (0, 0, (0, 0))
    assert risk(replace(whole, n_found=7)) == 0.5
    assert Limit(share=0.5, readers=("acquaintance",)).ruling([replace(whole, n_found=7)]).is_met
    assert not Limit(share=0.49, readers=("acquaintance",)).ruling([replace(whole, n_found=7)]).is_met
    assert "(of all there are)" in whole.in_words()


def test_nothing_and_everything_found_leave_an_interval_inside_0_and_1() -> None:
    assert wilson(0, n=10) == pytest.approx((0, 0.27753), abs=1e-5)
    assert wilson(10, n=10) == pytest.approx((0.72247, 1), abs=1e-5)
    assert wilson(0, n=10)[0] == 0
    assert wilson(10, n=10)[1] == 1


def test_the_interval_holds_the_true_share_in_about_95_of_100_cases() -> None:
    drawn = np.random.default_rng(3).binomial(400, 0.03, 4000)
    held = [low <= 0.03 <= high for low, high in (wilson(int(n), n=400) for n in drawn)]
    assert 0.93 < np.mean(held) < 0.98


def test_without_targets_nothing_is_known() -> None:
    found = counted(0, n_targets=0, n_by_chance=0.0)
    assert (found.share, found.chance_share, found.interval) == (0.0, 0.0, (0.0, 1.0))
    assert not found.beats_chance


def test_an_attacker_beats_chance_only_if_the_whole_interval_does() -> None:
    assert counted(60).beats_chance
    assert not counted(24).beats_chance
    assert not counted(5).beats_chance


def test_what_one_blind_guesser_finds_has_an_interval_too() -> None:
    low, high = counted(0).chance_interval
    assert low < 0.02 < high
    assert (low, high) == wilson(20, n=1000)


@pytest.mark.parametrize(
    ("n_found", "n_by_chance", "message"),
    [
        (11, 1.0, r"n_found must be between 0 and n_targets \(10\), got 11"),
        (-1, 1.0, r"n_found must be between 0 and n_targets \(10\), got -1"),
        (1, 10.5, r"n_by_chance must be between 0 and n_targets \(10\), got 10.5"),
    ],
)
def test_counts_that_cannot_be_are_refused(n_found: int, n_by_chance: float, message: str) -> None:
    with pytest.raises(BadParameter, match=message):
        counted(n_found, n_targets=10, n_by_chance=n_by_chance)


def test_the_words_name_the_share_its_interval_and_chance() -> None:
    assert counted(30).in_words() == (
        "known_terms, who knows 3 terms, found 30 of 1,000 users: 3 % (95 % interval 2.11 % to 4.25 %); "
        "blind guessing finds 2 %."
    )


GUESSES = st.lists(
    st.tuples(st.sampled_from([0.0, 0.5, 1.0]), st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0])), max_size=250
)


@given(guesses=GUESSES.filter(len))
def test_the_surest_guesses_are_those_of_the_plain_one(guesses: list[tuple[float, float]]) -> None:
    right, confidence = zip(*guesses, strict=True)
    found = Surest.of(np.array(right), confidence=np.array(confidence))
    assert found is not None
    assert (found.n_targets, found.n_found, found.n_certain) == plain_surest(right, confidence)


def test_who_is_surely_found_is_told_beside_the_average() -> None:
    confidence = np.linspace(1, 0, 1000)
    # The first thirty guesses are right but one; after them one in a hundred is.
    right = np.where(np.arange(1000) < 30, 1.0, np.arange(1000) % 100 == 0)
    right[12] = 0
    found = Surest.of(right, confidence=confidence)
    assert found == Surest(n_targets=10, n_found=10, n_certain=29)
    assert found.share == 1
    assert found.interval[0] > 0.7
    assert Surest.of(np.empty(0), confidence=np.empty(0)) is None


def test_who_is_surest_without_reason_finds_nobody_with_certainty() -> None:
    rng = np.random.default_rng(4)
    found = Surest.of((rng.random(1000) < 0.3).astype(float), confidence=np.ones(1000))
    assert found is not None
    assert (found.n_targets, found.n_certain) == (10, 0)
    assert found.n_found == 3


def test_machines_get_the_same_figures() -> None:
    found = json.loads(json.dumps(counted(30).to_dict()))
    assert found["n_found"] == 30
    assert found["share"] == 0.03
    assert found["chance_share"] == 0.02
    assert found["interval"] == pytest.approx([0.0211, 0.0425], abs=1e-4)
    assert found["beats_chance"] is True
    assert found["surest"] is None
    known = Exposure(
        attacker="a",
        knows="b",
        n_targets=9,
        n_found=1,
        n_by_chance=0,
        surest=Surest(n_targets=1, n_found=1, n_certain=1),
    )
    surest = json.loads(json.dumps(known.to_dict()))["surest"]
    assert (surest["share"], surest["n_certain"]) == (1, 1)
    assert surest["interval"] == pytest.approx(wilson(1, n=1))
