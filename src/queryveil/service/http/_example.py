"""An example profile before and after, of invented users, for the page."""

import random
from collections.abc import Mapping
from functools import cache
from typing import Any

import polars as pl

from queryveil.methods.settings import PoolSettings
from queryveil.methods.swap import pools, preparing
from queryveil.text.classifier import CATEGORIES, Classifier

_SEED = 1729
_N_PEOPLE = 40
_N_QUERIES = 120
_MOST_K = 10
_WORDS: Mapping[str, tuple[str, str]] = {
    "Arts": ("guitar piano violin opera jazz ballet", "lyrics chords concert singer album song music"),
    "Health": ("asthma migraine diabetes allergy vitamin", "symptoms treatment medication doctor clinic therapy"),
    "Home": ("chicken potato chocolate garlic pumpkin", "recipe soup casserole cake salad sauce bread"),
    "Computers": ("laptop printer linux browser router", "driver software download backup password error"),
    "Sports": ("soccer tennis hockey golf basketball", "tournament scores player championship stadium match"),
    "Games": ("chess poker puzzle arcade dungeon", "cheats walkthrough strategy console game demo"),
}
_ENDINGS = "online free best tips guide review cheap beginner list"
_PEOPLE: Mapping[str, Mapping[str, int]] = {
    "Somebody who cooks": {"Home": 8, "Health": 3, "Arts": 1},
    "Somebody who plays in a band": {"Arts": 9, "Computers": 2, "Games": 1},
    "Somebody who follows sports": {"Sports": 7, "Games": 3, "Health": 1, "Computers": 1},
}


@cache
def example(*, k: int, l: int) -> dict[str, Any]:  # noqa: E741
    """Anonymize made-up people among others as the service does it; a k or l above 10 is 10, since they are few."""
    k, l = min(k, _MOST_K), min(l, _MOST_K)  # noqa: E741
    events = preparing.prepare(_made_up(), classifier=Classifier()).frame
    released = pools.Pools(PoolSettings(k=k, l=l), seed=_SEED).add(events).released
    people = [
        {"name": name, "before": _side(events, name, asked=events), "after": _side(released, name, asked=events)}
        for name in _PEOPLE
    ]
    return {"k": k, "l": l, "n_people": _N_PEOPLE, "people": people}


def _made_up() -> pl.DataFrame:
    rng = random.Random(_SEED)
    rows: list[tuple[str, str]] = []
    for i in range(_N_PEOPLE):
        name = list(_PEOPLE)[i] if i < len(_PEOPLE) else f"somebody {i}"
        interests = _PEOPLE.get(name) or {category: rng.randint(1, 6) for category in _WORDS}
        for category in rng.choices(list(interests), list(interests.values()), k=_N_QUERIES):
            first, second = _WORDS[category]
            rows.append((name, " ".join(rng.choice(words.split()) for words in (first, second, _ENDINGS))))
    rng.shuffle(rows)
    return pl.DataFrame(rows, schema={"user": pl.String, "query": pl.String}, orient="row")


def _side(rows: pl.DataFrame, name: str, *, asked: pl.DataFrame) -> dict[str, Any]:
    """Return a profile: the share of each category, and how many of its rows are queries of this person."""
    own = rows.filter(pl.col("user") == name)
    counts = dict(own["category"].value_counts(sort=True).iter_rows())
    return {
        "n_queries": len(own),
        "n_own": len(own.join(asked, on=["user", "query"], how="semi")),
        "shares": {(*CATEGORIES, "Unclassified")[code]: n / len(own) for code, n in counts.items()},
    }
