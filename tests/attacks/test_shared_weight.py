"""Somebody who takes terms of one weight for terms of one person."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import polars as pl
import pytest

from queryveil.attacks import AuxiliaryData, attack
from queryveil.attacks.shared_term import SharedWeight
from queryveil.data import GROUPS_SCHEMA, Groups, Profiles, QueryLog
from queryveil.methods import Plink
from queryveil.pairing import Pair
from queryveil.release import Release
from queryveil.synthesis import synthesize
from queryveil.testing.logs import food, log_of

PEOPLE = {"u1": ["apple beef"], "u2": ["milk butter"], "u3": ["cheese orange"]}
WHO = pl.DataFrame({"user": ["u1", "u2", "u3"], "group": [1, 1, 1]})
TERMS = ["apple", "beef", "milk", "butter", "cheese", "orange"]


def pair_of(weights: list[float], *, holders: list[int] | None = None) -> Pair:
    log = log_of(PEOPLE)
    row = (1, 3, 6, TERMS, weights, holders)
    groups = Groups(frame=pl.DataFrame([row], schema=GROUPS_SCHEMA, orient="row"))
    manifest = Plink(p=0.5, taxonomy=food()).anonymize(log).manifest
    return Pair(log, release=Release(data=groups, manifest=msgspec.structs.replace(manifest, parameters={})))


def test_weights_of_their_own_give_everybody_away() -> None:
    pair = pair_of([0.1, 0.1, 0.2, 0.2, 0.3, 0.3])
    found = SharedWeight(seed=1).attack(pair, auxiliary=AuxiliaryData(membership=WHO))
    assert (found.n_targets, found.n_found) == (3, 3)
    assert found.n_by_chance < 3
    assert found.what == "terms"


def test_a_weight_that_is_nobody_else_s_names_nothing() -> None:
    pair = pair_of([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    found = SharedWeight(seed=1).attack(pair, auxiliary=AuxiliaryData(membership=WHO))
    assert (found.n_targets, found.n_found, found.n_by_chance) == (0, 0, 0)


def test_by_chance_is_the_term_that_most_members_have() -> None:
    people = {"u1": ["apple beef"], "u2": ["apple milk"], "u3": ["apple butter"], "u4": ["cheese"]}
    row = (1, 4, 7, ["apple", "beef", "butter", "cheese", "milk"], [0.5] * 5, [3, 1, 1, 1, 1])
    groups = Groups(frame=pl.DataFrame([row], schema=GROUPS_SCHEMA, orient="row"))
    manifest = Plink(p=0.5, taxonomy=food()).anonymize(log_of(people)).manifest
    pair = Pair(log_of(people), release=Release(data=groups, manifest=manifest))
    who = pl.DataFrame({"user": list(people), "group": [1] * 4})
    for seed in range(8):
        found = SharedWeight(seed=seed).attack(pair, auxiliary=AuxiliaryData(membership=who))
        assert found.n_targets == 4
        # Whoever is known by another term has the apple, but for u4; whoever is known by it is a matter of luck.
        assert found.n_by_chance <= 3


@pytest.mark.parametrize(
    ("pair", "auxiliary", "reason"),
    [
        (lambda: Pair.pseudonymised(log_of(PEOPLE)), AuxiliaryData(membership=WHO), "the release has no groups"),
        (lambda: pair_of([0.1] * 6), AuxiliaryData(), "needs who is in which group: --membership FILE"),
        (lambda: pair_of([0.1] * 6), AuxiliaryData(membership=WHO), None),
    ],
)
def test_it_needs_groups_and_who_is_in_which(
    pair: Callable[[], Pair], auxiliary: AuxiliaryData, reason: str | None
) -> None:
    assert SharedWeight().skip_reason(pair(), auxiliary=auxiliary) == reason


@pytest.fixture(scope="module")
def made() -> QueryLog:
    return synthesize(users=800, seed=5).log


def scaled(log: QueryLog, *, to: float) -> Profiles:
    """Return the profiles of a log, each scaled to the length 1 by its weights or by their squares."""
    profiles = Plink(seed=1).group(log).profiles
    n = pl.col("terms").list.len()
    return Profiles(frame=profiles.frame.with_columns(weights=(n.cast(pl.Float64) ** -to).repeat_by(n)))


@pytest.mark.parametrize("to", [1.0, 0.5])
def test_scaled_profiles_lose_nothing_in_strict_groups_and_most_in_those_of_the_paper(
    made: QueryLog, to: float
) -> None:
    profiles = scaled(made, to=to)
    shares = {}
    for strict in (False, True):
        grouping = Plink(p=0.2, strict=strict, seed=1).group(profiles)
        found = attack(profiles, grouping.release, membership=grouping.membership, only=("shared_weight",), seed=1)
        shares[strict] = found.attempts[0].after
    assert shares[False].beats_chance
    assert not shares[True].beats_chance
