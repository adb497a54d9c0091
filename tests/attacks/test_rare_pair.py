"""Somebody who knows two or three terms of a person."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.plain_attacks import plain_alone
from tests.support.releases import paired_histories, released

from queryveil.attacks.attacker import AuxiliaryData
from queryveil.attacks.known_terms import MOST_TERMS, RarePair, alone_with_own
from queryveil.data import QueryLog
from queryveil.errors import BadParameter
from queryveil.guarantees import KmAnonymity
from queryveil.methods import Clump, Km, Partition, Plink, Swap
from queryveil.pairing import Pair
from queryveil.release import ColumnPolicy, Ids
from queryveil.synthesis import synthesize
from queryveil.testing.logs import log_of
from queryveil.testing.strategies import PLANTS, logs
from queryveil.text.taxonomy import Taxonomy

NOTHING = AuxiliaryData()
KEEP = ColumnPolicy(ids=Ids.KEEP)
NEAR_MISS = {"u1": ["amber birch cedar"], "u2": ["amber birch"], "u3": ["amber cedar"], "u4": ["birch cedar"]}


def found(pair: Pair) -> int:
    return RarePair(seed=1).attack(pair, auxiliary=NOTHING).n_found


def test_most_people_are_alone_with_a_pair_in_a_pseudonymised_log() -> None:
    pair = Pair.pseudonymised(synthesize(users=2000, seed=3).log)
    exposure = RarePair(seed=1).attack(pair, auxiliary=NOTHING)
    assert exposure.n_targets == 1000
    assert exposure.share > 0.5
    assert exposure.beats_chance
    assert exposure.n_by_chance == pytest.approx(1000 / (pair.before.user_terms.lengths >= 2).sum())


def test_a_pair_of_terms_that_each_is_shared_gives_a_person_away() -> None:
    histories = {"u1": ["arnold", "lilburn"], "u2": ["arnold", "shoes"], "u3": ["lilburn"], "u4": ["shoes"]}
    # u1 and u2 have a pair; one term is no pair.
    assert found(paired_histories(histories, histories)) == 2


def test_a_triple_gives_a_person_away_whose_pairs_are_all_shared() -> None:
    assert found(paired_histories(NEAR_MISS, NEAR_MISS)) == 1
    twice = NEAR_MISS | {"u5": ["amber birch cedar"]}
    assert found(paired_histories(twice, twice)) == 0


def test_whoever_keeps_pairs_but_not_triples_lets_it_through() -> None:
    log = log_of(NEAR_MISS)
    pairs = Km(k=2, m=2, columns=KEEP, seed=1).anonymize(log)
    assert pairs.promise == KmAnonymity(k=2, m=2)
    assert found(Pair(log, release=pairs)) == 1
    triples = Km(k=2, m=3, columns=KEEP, seed=1).anonymize(log)
    assert found(Pair(log, release=triples)) == 0


@examples(40)
@drawn(log=logs(), m=st.sampled_from([3, 4, None]), ids=st.sampled_from([Ids.KEEP, Ids.FRESH]))
def test_a_promise_about_three_terms_holds_for_everybody(log: QueryLog, m: int | None, ids: Ids) -> None:
    release = Km(k=2, m=m, columns=ColumnPolicy(ids=ids), seed=1).anonymize(log)
    pair = Pair(log, release=release)
    if RarePair().skip_reason(pair, auxiliary=NOTHING) is None:
        assert found(pair) == 0


@examples(40)
@drawn(log=logs())
def test_it_holds_for_nodes_of_a_taxonomy_and_within_windows_too(log: QueryLog) -> None:
    for method in (
        Km(k=2, m=3, taxonomy=Taxonomy.from_pairs(PLANTS), columns=KEEP, seed=1),
        Km(k=2, m=3, window="1d", seed=1),
    ):
        pair = Pair(log, release=method.anonymize(log))
        assert not alone_with_own(pair, users=np.arange(pair.n_users)).ptr.any()


@pytest.mark.slow
def test_it_holds_on_a_log_of_thousands() -> None:
    log = synthesize(users=3000, seed=3).log
    for release in (
        Km(k=2, m=3, columns=KEEP, seed=1).anonymize(log),
        Clump(k=2, seed=1).anonymize(log),
        Partition(k=2, seed=1).anonymize(log),
    ):
        exposure = RarePair(seed=1).attack(Pair(log, release=release), auxiliary=NOTHING)
        assert (exposure.n_targets, exposure.n_found) == (1000, 0)


def test_only_terms_that_the_person_really_asked_for_count() -> None:
    before = {"u1": ["amber birch"], "u2": ["cedar dahlia"]}
    assert found(paired_histories(before, before)) == 2
    swapped = {"u1": ["cedar dahlia"], "u2": ["amber birch"]}
    assert found(paired_histories(before, swapped)) == 0


def test_a_blind_guesser_may_name_as_many_as_pairs_lead_to() -> None:
    before = {"u1": ["a b c d e f"]} | {f"v{i}": ["x y"] for i in range(1, 10)}
    # Three pairs of u1's terms lead to three others.
    after = {"u1": ["x"], "v1": ["a b"], "v2": ["c d"], "v3": ["e f"]} | {f"v{i}": ["x"] for i in range(4, 10)}
    exposure = RarePair(seed=1).attack(paired_histories(before, after), auxiliary=NOTHING)
    assert (exposure.n_targets, exposure.n_found) == (10, 0)
    assert exposure.n_by_chance == pytest.approx((3 + 9) / 10)


@examples(40)
@drawn(log=logs(), release=logs())
def test_all_are_found_whom_the_plain_one_finds(log: QueryLog, release: QueryLog) -> None:
    # Another log under the same ids: as much is gone or added as can be.
    there = release.frame["user"].is_in(log.frame["user"].implode())
    if not there.any():
        return
    pair = Pair(log, release=released(release.with_frame(release.frame.filter(there))))
    users = np.arange(pair.n_users)
    alone = alone_with_own(pair, users=users)
    before, after = (
        [{str(term) for term in terms} for terms in side.user_terms.to_lists()] for side in (pair.before, pair.after)
    )
    assert [set(found) for found in alone.to_lists()] == [plain_alone(own, after) for own in before]


def test_of_a_long_history_the_rarest_terms_are_tried() -> None:
    common = " ".join(f"word{i}" for i in range(200))
    histories = {"bot": [f"{common} own mine"], "u1": [common], "u2": [f"{common} own"], "u3": [f"{common} mine"]}
    pair = paired_histories(histories, histories)
    assert len(pair.before.terms) > 3 * MOST_TERMS
    # The bot is alone with own and mine; u2 and u3 share what they have with it.
    assert alone_with_own(pair, users=np.arange(4)).to_lists() == [[0], [], [], []]


def test_swapped_rows_give_few_away() -> None:
    log = synthesize(users=2000, seed=3).log
    release = Swap(k=10, columns=KEEP, seed=1).anonymize(log)
    before, after = (
        RarePair(seed=1).attack(pair, auxiliary=NOTHING)
        for pair in (Pair.pseudonymised(log), Pair(log, release=release))
    )
    assert after.share < before.share / 5


def test_groups_and_people_with_one_term_are_not_attacked() -> None:
    log = synthesize(users=60, seed=3).log
    pair = Pair(log, release=Plink(seed=1).anonymize(log))
    assert RarePair().skip_reason(pair, auxiliary=NOTHING) == "the release has no rows that are one person's"
    short = paired_histories({"u1": ["amber"]}, {"u1": ["amber"]})
    assert RarePair().skip_reason(short, auxiliary=NOTHING) == "nobody in the log has two terms"


def test_an_empty_release_exposes_nobody() -> None:
    exposure = RarePair().attack(paired_histories({"u1": ["a b"]}, {}), auxiliary=NOTHING)
    assert (exposure.n_targets, exposure.n_found, exposure.n_by_chance) == (1, 0, 0)


def test_nobody_cannot_be_sought() -> None:
    with pytest.raises(BadParameter, match="n_targets"):
        RarePair(n_targets=0)
