"""Plink against plain Python, at larger sizes, and what strictness costs."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import pairwise
from typing import TypeVar

import numpy as np
from tests.support.plain_plink import plain_groups

from benchmarks.timing import print_ratios, take_turns
from queryveil.cli.output import print_table
from queryveil.data import Floats, Int32s, Int64s, Profiles
from queryveil.methods import Plink
from queryveil.methods.plink._groups import as_written, grouped
from queryveil.methods.plink.profiles import COMPANIONS, TermProfiles, Vectors, augmented, profiles_of
from queryveil.methods.settings import Weights
from queryveil.synthesis import synthesize
from queryveil.text.taxonomy import Taxonomy

SEED = 0
NOUNS = Taxonomy.wordnet()

_Made = TypeVar("_Made")


def made_up(users: int) -> TermProfiles:
    """Make profiles of a made-up log of AOL's shape."""
    log = synthesize(like="aol", users=users, seed=SEED).log
    return profiles_of(log, NOUNS, weights=Weights.BINARY, bot_threshold=100)


def long_ones(*, users: int = 720, length: int = 150) -> TermProfiles:
    """Make the paper's 720 profiles of 150 terms, half of each from a few subtrees of WordNet, half by Zipf."""
    rng = np.random.default_rng(SEED)
    names = NOUNS.names.filter(NOUNS.names.str.contains("^[a-z]+$"))
    common = rng.permutation(len(names))
    people = {}
    for user in range(users):
        rank = (np.exp(rng.random(length) * np.log(len(names) / 20)) - 1) * 20
        start = rng.integers(0, len(names) - 1000, 3)
        topical = start[rng.integers(0, 3, length)] + rng.integers(0, 200, length)
        drawn = np.unique(np.where(rng.random(length) < 0.5, topical, common[rank.astype(np.int64)]))
        more = rng.choice(len(names), length)
        terms = list(dict.fromkeys([*drawn.tolist(), *more.tolist()]))[:length]
        people[str(user)] = {names[term]: 1.0 for term in terms}
    return profiles_of(Profiles.from_dicts(people), NOUNS, weights=Weights.BINARY, bot_threshold=None)


def group(profiles: TermProfiles, vectors: Vectors, *, p: float = 0.4, strict: bool = False) -> Int32s:
    aversion = Plink().aversion
    return grouped(profiles, vectors, p=p, strict=strict, aversion=aversion, rng=np.random.default_rng(SEED))


def against_plain_python(*, users: int = 300, a: int = 1) -> None:
    """Compare algorithm 1 with plain Python on few profiles."""
    small = made_up(users)
    vectors = augmented(small, NOUNS, a=a)
    own, above = _dicts(*small.user_terms, small.weights), _dicts(*vectors.user_nodes, vectors.weights)
    seconds = take_turns({"ours": lambda: group(small, vectors)}, rounds=5)
    seconds |= take_turns(
        {"plain Python": lambda: plain_groups(own, above, p=as_written(0.4), strict=False, aversion=0)}, rounds=1
    )
    print_ratios(f"{small.n_users} profiles, p=0.4, a={a}", seconds, ours="ours")


def growth(*, a: int = 1) -> None:
    """Show the time per profile as they become more."""
    rows = []
    sets: dict[str, Callable[[], TermProfiles]] = {
        **{f"{n:,}": lambda n=n: made_up(n) for n in (5_000, 10_000, 20_000, 50_000)},  # type: ignore[misc]
        "720 long ones": long_ones,
    }
    for name, make in sets.items():
        profiles = make()
        took = []
        for strict in (False, True):
            n = COMPANIONS if strict else 0
            vectors, comparing = _timed(lambda q=profiles, n=n: augmented(q, NOUNS, a=a, n_companions=n))  # type: ignore[misc]
            took += [comparing, _timed(lambda q=profiles, v=vectors, s=strict: group(q, v, strict=s))[1]]  # type: ignore[misc]
        each = [f"{seconds / profiles.n_users * 1e6:,.0f}" for seconds in took]
        rows.append((name, f"{len(profiles.terms) / profiles.n_users:.1f}", *each, f"{took[1]:.2f} s"))
    header = ["users", "terms", "meanings", "paper", "meanings, strict", "strict", "paper, in all"]
    print_table(header, rows, title=f"µs per profile at p=0.4, a={a}")
    print()


def cost_of_strictness(*, users: int = 5_000) -> None:
    """Show what is dropped, and how similar members are to what their group releases."""
    log = synthesize(like="aol", users=users, seed=SEED).log
    n_terms = len(made_up(users).terms)
    rows = []
    for p in (0.1, 0.2, 0.3, 0.4):
        for strict in (False, True):
            manifest = Plink(p=p, strict=strict, seed=SEED).anonymize(log).manifest
            names = ("average_group_size", "largest_share", "average_linkability", "mean_similarity_to_group")
            dropped = manifest.removed["term_occurrences_dropped"] / n_terms
            measures = [f"{manifest.measures[name]:.3f}" for name in names]
            rows.append((p, "strict" if strict else "paper", *measures, f"{dropped:.1%}"))
    header = ["p", "", "members", "largest share", "linkability", "similarity", "dropped"]
    print_table(header, rows, title=f"{users:,} users made up like AOL's")


def _dicts(ptr: Int64s, columns: Int32s, values: Floats) -> list[dict[str, float]]:
    return [
        dict(zip(map(str, columns[a:b].tolist()), values[a:b].tolist(), strict=True)) for a, b in pairwise(ptr.tolist())
    ]


def _timed(run: Callable[[], _Made]) -> tuple[_Made, float]:
    started = time.perf_counter()
    found = run()
    return found, time.perf_counter() - started


if __name__ == "__main__":
    few = made_up(500)
    group(few, augmented(few, NOUNS, a=1)), group(few, augmented(few, NOUNS, a=1), strict=True)
    against_plain_python()
    growth()
    cost_of_strictness()
