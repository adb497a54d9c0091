"""The planted people: each is found by name and town together, and by neither alone."""

from __future__ import annotations

import polars as pl
import pytest

from queryveil.synthesis import Secret, Synthetic, synthesize
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
