"""The planted people: each is found by name and town together, and by neither alone."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from queryveil.attacks.limits import n_targets_needed
from queryveil.synthesis import WEB, Secret, Synthetic, synthesize
from queryveil.synthesis.logs import N_OTHERS, VICTIM_ROWS
from queryveil.synthesis.vocabulary import words


def users_of(made: Synthetic, term: str) -> set[str]:
    asked = pl.col("query").str.split(" ").list.contains(term)
    return set(made.log.frame.filter(asked)["user"])


@pytest.fixture(scope="module", params=["web", "altavista", "aol"])
def made(request: pytest.FixtureRequest) -> Synthetic:
    return synthesize(users=4000, seed=8, like=request.param)


def test_one_user_in_a_thousand_is_planted(made: Synthetic) -> None:
    assert len(made.secrets) == 4
    assert len({secret.user for secret in made.secrets}) == 4


@pytest.mark.slow
def test_at_most_a_hundred_are_planted() -> None:
    assert len(synthesize(users=150_000, seed=2, like="altavista").secrets) == 100


@pytest.fixture(scope="module")
def large() -> Synthetic:
    return synthesize(users=20_000, seed=8)


def test_a_large_log_of_the_web_has_enough_planted_people_for_a_limit_of_5_percent(large: Synthetic) -> None:
    assert len({secret.user for secret in large.secrets}) == len(large.secrets) == 125
    # Three quarters are attacked where a quarter stands for the public.
    assert n_targets_needed(0.05) < 125 * 0.75
    assert len(synthesize(users=12_000, seed=8).secrets) == 12
    assert len(synthesize(users=100_000, seed=8).secrets) == 500


def test_name_and_town_belong_to_one_user_however_many_are_planted(large: Synthetic) -> None:
    words = large.log.frame.select("user", term=pl.col("query").str.split(" ")).explode("term").unique()
    users = dict(words.group_by("term").agg("user").iter_rows())
    assert len({term for secret in large.secrets for term in secret.terms}) == 250
    for secret in large.secrets:
        assert set(users[secret.name]) & set(users[secret.town]) == {secret.user}
        assert len(users[secret.name]) == len(users[secret.town]) == 13
        assert secret.user in users[secret.illness]


def test_planting_more_people_leaves_all_other_rows_as_they_were(large: Synthetic) -> None:
    fewer = synthesize(users=20_000, seed=8, like=replace(WEB, users_per_planted=None))
    assert fewer.secrets == large.secrets[:20]
    changed = (fewer.log.frame["query"] != large.log.frame["query"]).sum()
    assert 0 < changed <= 105 * (VICTIM_ROWS + 2 * N_OTHERS)
    assert fewer.log.frame.select("user", "time").equals(large.log.frame.select("user", "time"))
    same = fewer.log.frame["query"] == large.log.frame["query"]
    assert fewer.log.frame.filter(same).equals(large.log.frame.filter(same))


def test_name_and_town_together_belong_to_one_user(made: Synthetic) -> None:
    for secret in made.secrets:
        assert secret.terms == (secret.name, secret.town)
        assert users_of(made, secret.name) & users_of(made, secret.town) == {secret.user}


def test_name_and_town_alone_are_shared_by_a_dozen_others(made: Synthetic) -> None:
    for secret in made.secrets:
        assert len(users_of(made, secret.name)) == 13
        assert len(users_of(made, secret.town)) == 13


def test_the_illness_is_asked_by_the_planted_user_and_by_others(made: Synthetic) -> None:
    for secret in made.secrets:
        assert secret.illness in words()["illness"]
        asking = users_of(made, secret.illness)
        assert secret.user in asking
        assert len(asking) > 1


@pytest.mark.parametrize("users", [1, 2, 3, 10, 50])
@pytest.mark.parametrize("seed", range(4))
def test_the_pair_is_unique_in_small_logs_too(users: int, seed: int) -> None:
    made = synthesize(users=users, seed=seed)
    for secret in made.secrets:
        assert users_of(made, secret.name) & users_of(made, secret.town) == {secret.user}
    if users >= 10:
        assert all(len(users_of(made, secret.name)) > 1 for secret in made.secrets)


def test_no_planted_user_looks_like_a_bot(made: Synthetic) -> None:
    planted: list[Secret] = list(made.secrets)
    gaps = made.log.frame.filter(pl.col("user").is_in([secret.user for secret in planted]))
    pace = gaps.select(pl.col("time").diff().dt.total_seconds().over("user")).drop_nulls()["time"].median()
    assert pace > 10  # type: ignore[operator]
