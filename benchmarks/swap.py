"""The pools of swap: against plain Python, by k and l, by the number of events and the size of batches."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import cache
from typing import TypeAlias

import numpy as np
import polars as pl
from tests.support.plain_swap import PlainPools

from benchmarks.timing import print_ratios, take_turns
from queryveil.cli.output import print_table
from queryveil.methods.settings import PoolSettings
from queryveil.methods.swap.pools import N_POOLS, Pools, RandomNumbers
from queryveil.methods.swap.preparing import prepare
from queryveil.synthesis import synthesize
from queryveil.text.classifier import Classifier

SEED = 0
Run: TypeAlias = tuple[pl.DataFrame, PoolSettings, int | None]


@cache
def made_up(n_users: int) -> pl.DataFrame:
    """Make up a log of AOL's shape, about 55 events a user, and prepare it in the order of its times."""
    log = synthesize(users=n_users, like="aol", seed=SEED).log.frame.sort("time")
    return prepare(log.select("user", "query"), classifier=Classifier()).frame


def skewed(n: int) -> pl.DataFrame:
    """Make up events that are hard to pair: one in twenty is the same query, and few users ask most of them."""
    rng = np.random.default_rng(SEED)
    n_asked = rng.lognormal(0, 1.5, n // 50)
    user = np.searchsorted(np.cumsum(n_asked) / n_asked.sum(), rng.random(n))
    query = (np.exp(rng.random(n) * np.log(2 * n)) - 1).astype(np.int64)
    return pl.DataFrame(
        {
            "user": "user" + pl.Series(user).cast(pl.String),
            "query": "some words of query " + pl.Series(query).cast(pl.String),
            "category": rng.integers(0, N_POOLS, n).astype(np.int8),
        }
    )


def stuck(n: int) -> pl.DataFrame:
    """Return the worst case: two users who ask the same again and again, so that nobody ever fits."""
    return pl.DataFrame({"user": ["a", "b"] * (n // 2), "query": ["tea"] * n, "category": np.zeros(n, np.int8)})


def add_all(events: pl.DataFrame, settings: PoolSettings, *, size: int | None = None) -> Pools:
    """Let all events arrive, in batches of a size."""
    pools = Pools(settings, seed=SEED)
    for start in range(0, events.height, size or events.height):
        pools.add(events[start : start + (size or events.height)])
    return pools


def print_each(title: str, runs: Mapping[str, Run], *, rounds: int = 3) -> None:
    """Print the time for each event, the hashing and gathering of texts included."""
    candidates: dict[str, Callable[[], object]] = {
        name: lambda run=run: add_all(run[0], run[1], size=run[2])  # type: ignore[misc]
        for name, run in runs.items()
    }
    seconds = take_turns(candidates, rounds=rounds)
    rows = [(name, f"{took / runs[name][0].height * 1e6:.2f} µs") for name, took in seconds.items()]
    print_table(["", "an event"], rows, title=title)
    print()


def against_plain_python(*, n: int = 20_000, k: int = 10) -> None:
    """Compare with plain Python, which gives the same rows."""
    events = made_up(5_000)[:n]
    rows = events.select("user", "query", "category").rows()
    numbers = RandomNumbers(seed=SEED).look(at_least=12 * n).tolist()

    def plain() -> None:
        PlainPools(k=k, l=k, growth=1.2, max_pool=10_000, numbers=iter(numbers[2:])).add(rows)

    settings = PoolSettings(k=k, remembered=n)
    seconds = take_turns({"pools": lambda: add_all(events, settings)}, rounds=5)
    seconds |= take_turns({"plain Python": plain}, rounds=1)
    print_ratios(f"{n:,} events, k={k}, l={k}", seconds, ours="pools")


def by_k_and_l() -> None:
    """Show the time for each event by the settings."""
    events = made_up(5_000)
    settings = [PoolSettings(k=k, l=distinct) for k in (5, 10, 20, 50) for distinct in (2, k)]
    print_each(f"{events.height:,} events at once", {f"k={s.k} l={s.l}": (events, s, None) for s in settings})


def by_batch(*, k: int = 10) -> None:
    """Show what small batches cost."""
    events, settings = made_up(5_000)[:100_000], PoolSettings(k=k)
    print_each(f"k={k}, l={k}, in batches", {f"{n:,}": (events, settings, n) for n in (100, 1000, 10_000)})


def hard_cases(*, k: int = 10) -> None:
    """Show what events cost that are hard to pair, or cannot be paired at all."""
    settings = PoolSettings(k=k, l=2)
    runs = {"skewed": (skewed(300_000), settings, None), "stuck at 10,000": (stuck(20_000), settings, None)}
    print_each(f"k={k}, l=2, hard cases", runs, rounds=1)


def growth(*, k: int = 10) -> None:
    """Show the time for each event as they become more, and what the memory of pairs takes."""
    rows = []
    for n_users in (2_000, 5_000, 20_000):
        events = made_up(n_users)
        n = events.height
        started = time.perf_counter()
        pools = add_all(events, PoolSettings(k=k, remembered=n))
        took = time.perf_counter() - started
        bits = (pools._issued.older.nbytes + pools._issued.newest.nbytes) * 8 / n
        rows.append((n, f"{took / n * 1e6:.2f} µs", f"{bits:.1f}", int(pools.waiting.sum()), int(pools.k_now.max())))
    print_table(["events", "an event", "bits a pair", "waiting", "largest k"], rows, title=f"k={k}, l={k}")
    print()


if __name__ == "__main__":
    add_all(skewed(1000), PoolSettings(k=5))
    against_plain_python()
    by_k_and_l()
    by_batch()
    hard_cases()
    growth()
