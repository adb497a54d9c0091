"""Somebody who knows the group of a person."""

from __future__ import annotations

import msgspec
import polars as pl
import pytest

from queryveil.attacks.attacker import AuxiliaryData
from queryveil.attacks.shared_term import SharedTerm, n_with_commonest
from queryveil.data import GROUPS_SCHEMA, Groups, QueryLog
from queryveil.methods import Plink
from queryveil.pairing import Pair
from queryveil.release import Release
from queryveil.synthesis import synthesize
from queryveil.testing.logs import food, log_of
from queryveil.text.tokens import tokenize

NOTHING = AuxiliaryData()
PEOPLE = {
    "u1": ["apple beef"],
    "u2": ["apple milk"],
    "u3": ["apple butter"],
    "u4": ["cheese"],
    "u5": ["orange"],
    "u6": ["banana"],
}


def groups_of(*rows: tuple[int, list[str], list[float], list[int] | None]) -> Groups:
    full = [(i + 1, members, len(t), t, w, h) for i, (members, t, w, h) in enumerate(rows)]
    return Groups(frame=pl.DataFrame(full, schema=GROUPS_SCHEMA, orient="row"))


def pair_of(groups: Groups, **parameters: str) -> Pair:
    log = log_of(PEOPLE)
    manifest = Plink(p=0.5, taxonomy=food()).anonymize(log).manifest
    manifest = msgspec.structs.replace(manifest, parameters=manifest.parameters | parameters)
    return Pair(log, release=Release(data=groups, manifest=manifest))


def test_as_many_are_found_as_have_the_commonest_term_of_their_group() -> None:
    pair = pair_of(groups_of((4, ["apple", "milk"], [0.75, 0.25], None), (2, ["cheese"], [0.5], None)))
    found = SharedTerm().attack(pair, auxiliary=NOTHING)
    assert (found.n_targets, found.n_found) == (6, 3 + 1)
    # Three of six people have the apple.
    assert found.n_by_chance == pytest.approx(3)


def test_holders_count_where_they_are_told_whatever_the_weights_say() -> None:
    groups = groups_of((3, ["apple"], [0.2], [3]), (3, ["cheese"], [1.0], [2]))
    assert n_with_commonest(groups).tolist() == [3, 2]


def test_of_a_group_without_terms_nothing_is_said() -> None:
    groups = groups_of((3, [], [], None), (2, [], [], []))
    assert n_with_commonest(groups).tolist() == [0, 0]


def test_a_rounded_share_is_the_number_that_it_comes_from() -> None:
    assert n_with_commonest(groups_of((7, ["apple"], [0.857143], None))).tolist() == [6]


@pytest.mark.parametrize("parameters", [{"weights": "tfidf"}, {"weights": "given"}, {"representative": "union"}])
def test_weights_that_are_no_shares_tell_nothing(parameters: dict[str, str]) -> None:
    pair = pair_of(groups_of((2, ["apple"], [1.0], None)), **parameters)
    assert SharedTerm().skip_reason(pair, auxiliary=NOTHING) == (
        "the release does not tell how many members of a group have a term"
    )


def test_a_log_has_no_groups() -> None:
    assert (
        SharedTerm().skip_reason(Pair.pseudonymised(log_of(PEOPLE)), auxiliary=NOTHING) == "the release has no groups"
    )


def test_groups_of_no_people_are_not_attacked() -> None:
    assert SharedTerm().skip_reason(pair_of(groups_of()), auxiliary=NOTHING) == "the release is empty"


@pytest.fixture(scope="module")
def made() -> QueryLog:
    return synthesize(users=800, seed=5).log


@pytest.mark.slow
def test_what_is_found_is_how_often_the_guess_is_right(made: QueryLog) -> None:
    """Somebody who sees who is in which group counts the same."""
    grouping = Plink(seed=1).group(made)
    groups, member_of = grouping.release.groups.frame, dict(grouping.membership.select("user", "group").iter_rows())
    commonest = {row["group"]: row["terms"][row["weights"].index(max(row["weights"]))] for row in groups.to_dicts()}
    queries = made.frame.group_by("user").agg(pl.col("query").drop_nulls())
    used = {user: set(tokenize(pl.Series(asked)).vocabulary) for user, asked in queries.iter_rows()}
    n_right = sum(commonest[group] in used[user] for user, group in member_of.items())
    pair = Pair(made, release=grouping.release)
    assert SharedTerm().attack(pair, auxiliary=NOTHING).n_found == n_right


def test_a_made_up_log_loses_most_to_it_as_in_the_paper_and_no_more_than_p_when_strict(made: QueryLog) -> None:
    as_paper = Pair(made, release=Plink(seed=1).anonymize(made))
    assert SharedTerm().skip_reason(as_paper, auxiliary=NOTHING) is None
    assert SharedTerm().attack(as_paper, auxiliary=NOTHING).beats_chance
    strict = Pair(made, release=Plink(p=0.3, strict=True, seed=1).anonymize(made))
    assert SharedTerm().skip_reason(strict, auxiliary=NOTHING) is None
    assert SharedTerm().attack(strict, auxiliary=NOTHING).share <= 0.3
