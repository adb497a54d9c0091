"""Somebody who knows a few terms of a person."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.plain_attacks import plain_named
from tests.support.releases import paired_histories, released, released_bags

from queryveil.attacks.attacker import AuxiliaryData
from queryveil.attacks.known_terms import ECCENTRICITY, KnownTerms, RarePair
from queryveil.attacks.vanity import Vanity
from queryveil.data import QueryLog
from queryveil.errors import BadParameter
from queryveil.formats import read_log
from queryveil.methods import Clump, Km, Plink, TokenHash
from queryveil.pairing import Pair
from queryveil.release import ColumnPolicy, Ids
from queryveil.rng import generator
from queryveil.synthesis import synthesize
from queryveil.testing.logs import log_of, tiny_log
from queryveil.testing.strategies import logs

NOTHING = AuxiliaryData()
KEEP = ColumnPolicy(ids=Ids.KEEP)
EXCITE = Path(__file__).resolve().parents[2] / ".." / "shared" / "data" / "excite-small.log"


def found(pair: Pair, *, n_known: int, n_wrong: int = 0) -> int:
    return KnownTerms(n_known=n_known, n_wrong=n_wrong, seed=1).attack(pair, auxiliary=NOTHING).n_found


@pytest.fixture(scope="module")
def made() -> QueryLog:
    return synthesize(users=4000, seed=3).log


@pytest.fixture(scope="module")
def before(made: QueryLog) -> Pair:
    return Pair.pseudonymised(made)


def test_four_terms_find_more_than_half_of_a_pseudonymised_log_and_more_terms_find_more(before: Pair) -> None:
    shares = []
    for n_known in (2, 3, 4, 6, 8):
        exposure = KnownTerms(n_known=n_known, seed=1).attack(before, auxiliary=NOTHING)
        assert exposure.beats_chance
        assert (exposure.n_targets, exposure.n_known, exposure.n_wrong) == (1000, n_known, 0)
        # Whoever names the same person every time names one of those who have so many terms.
        n_eligible = int((before.before.user_terms.lengths >= n_known).sum())
        assert exposure.n_by_chance == pytest.approx(1000 / n_eligible)
        shares.append(exposure.share)
    assert shares == sorted(shares)
    assert shares[2] > 0.5


def test_two_wrong_terms_on_top_make_it_harder_but_not_hard(before: Pair) -> None:
    for n_known in (3, 6):
        right = KnownTerms(n_known=n_known, seed=1).attack(before, auxiliary=NOTHING)
        wrong = KnownTerms(n_known=n_known, n_wrong=2, seed=1).attack(before, auxiliary=NOTHING)
        assert wrong.beats_chance
        assert wrong.n_found < right.n_found
        assert "and 2 that are not" in wrong.knows


def test_what_is_promised_of_three_terms_holds_against_two_and_three(made: QueryLog) -> None:
    pair = Pair(made, release=Km(k=10, m=3, columns=KEEP, seed=1).anonymize(made))
    for n_known in (2, 3):
        exposure = KnownTerms(n_known=n_known, seed=1).attack(pair, auxiliary=NOTHING)
        assert exposure.n_found == 0
        assert exposure.n_targets == 1000


def test_hashed_terms_are_not_the_terms_that_are_known(made: QueryLog) -> None:
    # Nobody found would read as if hashing hid people.
    pair = Pair(made, release=TokenHash(columns=KEEP, seed=1).anonymize(made))
    for attacker in (KnownTerms(), KnownTerms(cautious=False), RarePair(), Vanity()):
        assert attacker.skip_reason(pair, auxiliary=NOTHING) == "the terms of the release are hashed"


@pytest.mark.parametrize("n_wrong", [0, 2])
def test_whoever_always_names_the_likeliest_finds_more(before: Pair, n_wrong: int) -> None:
    for n_known in (2, 4):
        careful, bold = (
            KnownTerms(n_known=n_known, n_wrong=n_wrong, cautious=cautious, seed=1).attack(before, auxiliary=NOTHING)
            for cautious in (True, False)
        )
        assert (careful.attacker, bold.attacker) == ("known_terms", "likely_terms")
        assert bold.interval[0] > careful.interval[1]


def test_what_is_promised_of_two_terms_says_little_against_eight_and_caution_hides_it(made: QueryLog) -> None:
    pair = Pair(made, release=Km(k=5, m=2, columns=KEEP, seed=1).anonymize(made))
    shares = {n: KnownTerms(n_known=n, cautious=False, seed=1).attack(pair, auxiliary=NOTHING).share for n in (2, 8)}
    # Two terms lead to five people or more.
    assert shares[2] < 1 / 5
    assert shares[8] > 0.15
    assert KnownTerms(n_known=8, seed=1).attack(pair, auxiliary=NOTHING).share < 0.01


def test_identical_transactions_are_never_named() -> None:
    log = log_of({f"u{i}": ["apple milk butter beef"] for i in range(2)} | {f"v{i}": ["chicken"] for i in range(9)})
    twins = Pair(log, release=released_bags([["apple", "milk", "butter", "beef"]] * 2 + [["chicken"]] * 9))
    assert found(twins, n_known=4) == 0
    alone = Pair(log, release=released_bags([["apple", "milk", "butter", "beef"]] + [["chicken"]] * 9))
    # One transaction of two people who did the same: each of them is found half.
    assert found(alone, n_known=4) == 1
    assert KnownTerms(n_known=4, seed=1).attack(alone, auxiliary=NOTHING).n_targets == 2


@pytest.mark.slow
def test_a_clumped_log_names_nobody(made: QueryLog) -> None:
    pair = Pair(made, release=Clump(k=5, seed=1).anonymize(made))
    assert [found(pair, n_known=n) for n in (2, 4, 8)] == [0, 0, 0]


def test_people_who_are_gone_are_sought_and_not_found() -> None:
    before = {f"u{i}": [f"own{i} word{i} and the"] for i in range(20)}
    after = {user: queries for user, queries in before.items() if user not in ("u0", "u1")}
    exposure = KnownTerms(n_known=3, seed=1).attack(paired_histories(before, after), auxiliary=NOTHING)
    assert (exposure.n_targets, exposure.n_found) == (20, 18)
    # Eighteen targets are one of eighteen candidates, two are none.
    assert exposure.n_by_chance == pytest.approx(18 / 18)


def test_people_with_fewer_terms_are_not_sought() -> None:
    pair = paired_histories({"u1": ["a b c"], "u2": ["a b"]}, {"u1": ["a b c"], "u2": ["a b"]})
    assert KnownTerms(n_known=3).attack(pair, auxiliary=NOTHING).n_targets == 1
    assert KnownTerms(n_known=4).skip_reason(pair, auxiliary=NOTHING) == "nobody in the log has 4 terms"


def test_a_second_who_is_near_protects() -> None:
    # All terms but one are the second's as well.
    shared = {"u1": ["a b c d"], "u2": ["a b c"], "u3": ["x y"], "u4": ["z y"]}
    scores = np.array([4, 3, 0, 0]) / np.log(2)
    assert (scores[0] - scores[1]) / scores.std() < ECCENTRICITY
    assert found(paired_histories({"u1": ["a b c d"]}, shared), n_known=4) == 0
    # With many who have nothing of it, the same distance is far.
    crowd = shared | {f"v{i}": ["q"] for i in range(80)}
    assert found(paired_histories({"u1": ["a b c d"]}, crowd), n_known=4) == 1


def test_groups_are_not_attacked() -> None:
    log = synthesize(users=60, seed=3).log
    pair = Pair(log, release=Plink(seed=1).anonymize(log))
    assert KnownTerms().skip_reason(pair, auxiliary=NOTHING) == "the release has no rows that are one person's"


def test_an_empty_release_exposes_nobody() -> None:
    exposure = KnownTerms(n_known=2).attack(paired_histories({"u1": ["a b"]}, {}), auxiliary=NOTHING)
    assert (exposure.n_targets, exposure.n_found, exposure.n_by_chance) == (1, 0, 0)


def test_wrong_terms_are_different_and_never_the_target_s_own() -> None:
    pair = Pair.pseudonymised(synthesize(users=50, seed=3).log)
    attacker = KnownTerms(n_known=2, n_wrong=3)
    targets = np.flatnonzero(pair.before.user_terms.lengths >= 2)
    known = attacker._known(pair.before, targets, generator(4))
    for place, target in enumerate(targets.tolist()):
        own = set(pair.before.user_terms.row(target).tolist())
        mine = known.row(place).tolist()
        assert len(set(mine)) == len(mine) == 5
        assert [term in own for term in mine] == [True, True, False, False, False]


def test_where_everybody_knows_everything_there_are_no_wrong_terms() -> None:
    pair = paired_histories({"u1": ["a b"], "u2": ["a b"]}, {"u1": ["a b"], "u2": ["a b"]})
    assert found(pair, n_known=2, n_wrong=2) == 0


def test_targets_are_drawn_and_a_seed_draws_them_again(before: Pair) -> None:
    first, again, other = (KnownTerms(n_targets=300, seed=seed).attack(before, auxiliary=NOTHING) for seed in (1, 1, 2))
    assert first == again
    assert first.n_targets == other.n_targets == 300
    assert first.n_found != other.n_found


@examples(40)
@drawn(log=logs(), n_known=st.integers(1, 3), fresh=st.booleans())
def test_all_that_is_known_of_everybody_finds_whom_the_plain_one_finds(
    log: QueryLog, n_known: int, fresh: bool
) -> None:
    release = released(log, ids=Ids.FRESH if fresh else Ids.KEEP)
    pair = Pair(log, release=release)
    attacker = KnownTerms(n_known=n_known, seed=1)
    if attacker.skip_reason(pair, auxiliary=NOTHING):
        return
    exposure = attacker.attack(pair, auxiliary=NOTHING)
    # The same draws, by hand.
    rng = generator(1)
    eligible = np.flatnonzero(pair.before.user_terms.lengths >= n_known)
    targets = np.sort(rng.choice(eligible, size=exposure.n_targets, replace=False))
    known = attacker._known(pair.before, targets, rng)
    candidates = [{str(term) for term in terms} for terms in pair.after.user_terms.to_lists()]
    expected = 0.0
    for place, target in enumerate(targets):
        terms = [str(term) for term in known.row(place)]
        named = plain_named(terms, candidates, eccentricity=ECCENTRICITY)
        if named is not None:
            expected += float(pair.identity.chance(np.array([named]), user=np.array([target]))[0])
    assert exposure.n_found == round(expected)


@pytest.mark.parametrize(("name", "value"), [("n_known", 0), ("n_wrong", -1), ("n_targets", 0), ("seed", -1)])
def test_settings_that_make_no_sense_are_refused(name: str, value: int) -> None:
    with pytest.raises(BadParameter, match=name):
        KnownTerms(**dict[str, Any]({name: value}))


def test_a_tiny_log_works() -> None:
    assert KnownTerms(n_known=2, seed=1).attack(Pair.pseudonymised(tiny_log()), auxiliary=NOTHING).n_targets == 4


@pytest.mark.real_data
@pytest.mark.skipif(not EXCITE.is_file(), reason="the Excite log is not beside the checkout")
def test_two_terms_find_nearly_everybody_in_a_small_real_log() -> None:
    log = read_log(EXCITE)
    before = KnownTerms(n_known=2, seed=1).attack(Pair.pseudonymised(log), auxiliary=NOTHING)
    assert before.share > 0.9
    after = Pair(log, release=Km(k=5, m=2, columns=KEEP, seed=1).anonymize(log))
    assert KnownTerms(n_known=2, seed=1).attack(after, auxiliary=NOTHING).n_found == 0
