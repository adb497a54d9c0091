"""People planted in a made-up log: found by a name and a town that only they have asked for together."""

from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import polars as pl

from queryveil.data import Int64s
from queryveil.synthesis.sessions import NONE
from queryveil.synthesis.vocabulary import Vocabulary

N_OTHERS = 12
"""How many other users at least ask for the name, and how many others for the town."""
VICTIM_ROWS = 7


class Secret(msgspec.Struct, frozen=True, kw_only=True):
    """A planted person: no other user of the log has asked for both terms."""

    user: str
    name: str
    town: str
    illness: str
    terms: tuple[str, str]

    def __repr__(self) -> str:
        return f"Secret(n_terms={len(self.terms)})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("n_terms", len(self.terms))]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Planting:
    """Who is planted, and which rows of which users say what: `place` counts a user's rows, `cells` are three words."""

    victims: Int64s
    names: Int64s
    towns: Int64s
    illnesses: Int64s
    user: Int64s
    place: Int64s
    cells: Int64s


def how_many(users: int) -> int:
    """Return the number of planted people: one in a thousand, at least 3, at most 100."""
    return min(users, 100, max(3, users // 1000))


def choose_victims(rng: np.random.Generator, *, users: int) -> tuple[Int64s, Int64s]:
    """Choose the planted users, and the others in random order."""
    order, n = rng.permutation(users), how_many(users)
    return order[:n], order[n:]


def plant(rng: np.random.Generator, *, vocabulary: Vocabulary, victims: Int64s, others: Int64s) -> Planting:
    """Write the queries of the planted people, and those of others for the same names and towns.

    Names and towns come from ranges that no other query draws from; nobody else asks for a name and its town.
    """
    n = len(victims)
    index = np.arange(n)
    names, towns = vocabulary.start("secret_name") + index, vocabulary.start("secret_town") + index
    illnesses, given = vocabulary.draw(rng, "illness", n), vocabulary.draw(rng, "given", n)
    none = np.full(n, NONE)
    story = [
        (none, names, none),
        (given, names, none),
        (vocabulary.draw(rng, "business", n), towns, none),
        (illnesses, none, none),
        (illnesses, vocabulary.draw(rng, "care", n), none),
        (towns, vocabulary.draw(rng, "business", n), none),
        (none, names, vocabulary.draw(rng, "general", n)),
    ]
    told = np.stack([np.stack(row, axis=1) for row in story], axis=1).reshape(-1, 3)
    n_each = min(N_OTHERS, len(others) // (2 * n))
    crowd = others[: 2 * n * n_each]
    secret = np.repeat(index, 2 * n_each)
    for_name = np.tile(np.arange(2 * n_each) < n_each, n)
    shops = np.where(for_name, NONE, vocabulary.draw(rng, "business", len(crowd)))
    said = np.stack([shops, np.where(for_name, names[secret], towns[secret]), np.full(len(crowd), NONE)], axis=1)
    return Planting(
        victims=victims,
        names=names,
        towns=towns,
        illnesses=illnesses,
        user=np.concatenate([np.repeat(victims, len(story)), crowd]),
        place=np.concatenate([np.tile(np.arange(len(story)), n), np.zeros(len(crowd), dtype=np.int64)]),
        cells=np.concatenate([told, said]),
    )


def list_secrets(planting: Planting, *, table: pl.Series, ids: pl.Series) -> tuple[Secret, ...]:
    """Spell the planted people out."""
    columns = [table.gather(words) for words in (planting.names, planting.towns, planting.illnesses)]
    return tuple(
        Secret(user=user, name=name, town=town, illness=illness, terms=(name, town))
        for user, name, town, illness in zip(ids.gather(planting.victims), *columns, strict=True)
    )
