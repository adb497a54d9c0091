"""Somebody who knows the group and some terms of a person, and wants another."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples
from tests.support.plain_attacks import plain_choice_weights

from queryveil.attacks import AuxiliaryData, attack
from queryveil.attacks._learning import learned_choices
from queryveil.attacks.known_profile import Association, GroupShares, KnownProfile
from queryveil.comparison.judged import split
from queryveil.data import GROUPS_SCHEMA, Groups, QueryLog
from queryveil.data.rows import Rows
from queryveil.methods import Plink
from queryveil.methods.plink import Grouping
from queryveil.pairing import Pair
from queryveil.release import Release
from queryveil.synthesis import synthesize
from queryveil.testing.logs import food, log_of


def plain_ratio(people: list[set[int]], term: int, known: set[int]) -> Fraction:
    """Return how many times as likely known terms are with a term as without it, as if 10 more people had the term."""
    ratio = Fraction(1)
    with_it = [one for one in people if term in one]
    without = [one for one in people if term not in one]
    for each in known - {term}:
        share = Fraction(2 * sum(each in one for one in people) + 1, 2 * (len(people) + 1))
        first, second = (
            (sum(each in one for one in some) + 10 * share) / (len(some) + 10) for some in (with_it, without)
        )
        ratio *= first / second
    return ratio


@examples(60)
@given(st.lists(st.sets(st.integers(0, 5)), max_size=12), st.sets(st.integers(0, 5), max_size=3))
def test_terms_go_together_as_counted_by_hand(people: list[set[int]], known: set[int]) -> None:
    rows = Rows.from_lists([sorted(one) for one in people])
    found = Association(Rows(rows.ptr, rows.values.astype(np.int64)), n_terms=6)
    expected = [float(plain_ratio(people, term, known)) for term in range(6)]
    ratios = found.log_ratios(np.array(sorted(known), np.int64))
    assert np.exp(ratios.sum(axis=0)) == pytest.approx(expected)


def test_what_is_seen_of_a_term_is_how_it_goes_with_the_known_and_with_the_rest_of_the_group() -> None:
    people = Rows.from_lists([[0, 1], [0, 1, 3], [2, 3], [2], [4]])
    found = Association(Rows(people.ptr, people.values.astype(np.int64)), n_terms=5)
    told = GroupShares(release_of((6, 4, list("abcd"), [0.25] * 4, [1] * 4), (5, 3, ["e"], [0.25], [1])))
    terms, looks = found.looks(np.array([0]), told=told, group=0)
    assert terms.tolist() == [1, 2, 3, 4], "those that the group lists, then others; none that is known"
    ratios = found.log_ratios(np.arange(5))
    odds = np.log(told.odds(0, population=found.share)[0])
    assert looks[:, 0].tolist() == pytest.approx((odds + ratios[0])[1:].tolist())
    listed, others = np.split(looks[:, 1:], 2, axis=1)
    assert not listed[3].any()
    assert not others[:3].any()
    # With 1, the rest of the group is 2 and 3; they are three, and one of four terms is known, in a group of six.
    assert listed[0, :5].tolist() == pytest.approx([1, odds[1], 3, 1, 6])
    with_one = ratios[[2, 3], 1].tolist()
    assert listed[0, 5:8].tolist() == pytest.approx([ratios[0, 1]] * 3)
    assert listed[0, 11:14].tolist() == pytest.approx([sum(with_one) / 3, max(*with_one, 0), min(*with_one, 0)])
    likeness = found.directions[[1, 2, 3]] @ found.directions[4]
    assert others[3, 14:17].tolist() == pytest.approx([likeness.sum() / 3, likeness.max(), likeness.min()])
    alone, _ = found.looks(np.array([0]), told=told, group=-1)
    assert sorted(alone.tolist()) == [1, 2, 3, 4], "of a person whose group is not known any term may be named"


def release_of(*rows: tuple[int, int, list[str], list[float], list[int] | None], **parameters: str) -> Release:
    log = log_of({"u1": ["apple beef"], "u2": ["milk butter"]})
    full = [(i, *row) for i, row in enumerate(rows, start=1)]
    manifest = Plink(p=0.5, taxonomy=food()).anonymize(log).manifest
    manifest.parameters.update(parameters)
    return Release(data=Groups(frame=pl.DataFrame(full, schema=GROUPS_SCHEMA, orient="row")), manifest=manifest)


def test_odds_are_those_of_any_member_and_of_the_rest_by_what_is_missing() -> None:
    release = release_of((4, 3, ["apple", "beef"], [0.5, 0.25], [2, 1]), (6, 1, ["beef"], [0.1], [1]))
    told = GroupShares(release)
    assert told.vocabulary.to_list() == ["apple", "beef"]
    first, second = (told.odds(group, population=np.array([0.5, 0.2]))[0] for group in (0, 1))
    assert first.tolist() == pytest.approx([1, 1 / 3])
    # Half of ten people have the apple, two of them in the first group; so three of the six others.
    assert second.tolist() == pytest.approx([3.5 / 7 / (1 - 3.5 / 7), 0.2])


def test_without_holders_weights_are_shares_or_the_mean_of_the_group_is_all_there_is() -> None:
    rows = (4, 5, ["apple", "beef"], [1.0, 0.25], None)
    nothing = np.zeros(2)
    assert GroupShares(release_of(rows)).odds(0, population=nothing)[0].tolist() == pytest.approx([7, 1 / 3])
    union = GroupShares(release_of(rows, representative="union"))
    assert union.odds(0, population=nothing)[0].tolist() == pytest.approx([5 / 3, 5 / 3])


def test_it_needs_groups_who_is_in_which_and_a_public_log() -> None:
    log = log_of({"u1": ["apple beef"], "u2": ["milk butter"]})
    grouping = Plink(p=0.5, taxonomy=food(), seed=1).group(log)
    pair, known = Pair(log, release=grouping.release), KnownProfile()
    assert known.skip_reason(Pair.pseudonymised(log), auxiliary=AuxiliaryData()) == "the release has no groups"
    assert "--membership" in str(known.skip_reason(pair, auxiliary=AuxiliaryData()))
    assert "--public" in str(known.skip_reason(pair, auxiliary=AuxiliaryData(membership=grouping.membership)))
    all_of_it = AuxiliaryData(membership=grouping.membership, public=log)
    assert known.skip_reason(pair, auxiliary=all_of_it) is None
    assert known.attack(pair, auxiliary=all_of_it).n_targets == 0, "nobody has more than three terms"


@examples(20)
@given(
    st.lists(
        st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=2, max_size=4), min_size=2, max_size=9
    )
)
def test_choices_are_those_of_the_highest_likelihood(rows: list[list[tuple[int, int]]]) -> None:
    tables = [np.array(table, np.float64) for table in rows]
    truths = [np.arange(len(table)) == abs(int(table.sum())) % len(table) for table in tables]
    chosen = learned_choices(list(zip(tables, truths, strict=True)), of=tables)
    weights = plain_choice_weights([table.tolist() for table in tables], [list(map(bool, truth)) for truth in truths])
    for table, best in zip(tables, chosen, strict=True):
        scores = table @ weights
        assert scores[best] >= scores.max() - 1e-3


def test_without_a_true_row_the_first_feature_chooses() -> None:
    tables = [np.array([[0.0, 9.0], [1.0, 0.0]])]
    assert learned_choices([], of=tables) == [1]
    assert learned_choices([(tables[0], np.array([False, False]))], of=tables) == [1]


@pytest.fixture(scope="module")
def parts() -> tuple[QueryLog, QueryLog]:
    return split(synthesize(users=4000, seed=5).log, share=0.25, seed=1)


def grouped(log: QueryLog, **settings: float) -> Grouping:
    return Plink(p=0.2, strict=True, seed=1, **settings).group(log)  # type: ignore[arg-type]


@pytest.mark.slow
def test_it_guesses_most_in_groups_of_people_who_share_nothing_and_fewer_by_default(
    parts: tuple[QueryLog, QueryLog],
) -> None:
    log, public = parts
    shares = []
    for aversion in (4.0, Plink().aversion):
        grouping = grouped(log, aversion=aversion)
        pair = Pair(log, release=grouping.release)
        known = AuxiliaryData(public=public, membership=grouping.membership)
        shares.append(KnownProfile(seed=1).attack(pair, auxiliary=known))
    assert shares[0].beats_chance
    assert shares[1].share < shares[0].share - 0.04
    assert shares[1].interval[0] > shares[1].chance_share + 0.05, "aversion does not hide which terms belong together"


@pytest.mark.slow
def test_the_wrong_groups_tell_no_more_than_chance(parts: tuple[QueryLog, QueryLog]) -> None:
    log, public = parts
    grouping = grouped(log, aversion=4.0)
    wrong = grouping.membership.with_columns(group=grouping.membership["group"].shuffle(seed=1))
    found = attack(log, grouping.release, public=public, membership=wrong, only=("known_profile",), seed=1)
    assert not found.attempts[0].after.beats_chance
    again = attack(log, grouping.release, public=public, membership=wrong, only=("known_profile",), seed=1)
    assert found == again
