"""Removing identifiers in batches, against finding them query by query."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from benchmarks.timing import take_turns
from queryveil.cli.output import print_table
from queryveil.synthesis import synthesize
from queryveil.text.identifiers import find_identifiers, remove_identifiers
from queryveil.text.identifiers.identifiers import screen

SEED = 0
N_PLAIN = 2_000
FIRST = ["maribel", "jonathan", "deborah", "tamika", "brandon", "melissa", "gregory", "kathleen", "cynthia", "heather"]
LAST = ["thornquist", "kessler", "wyckoff", "ellsworth", "hartzell", "lindqvist", "feldhaus", "ottinger", "brennan"]
CITY = ["duluth mn", "peoria, illinois", "lubbock tx", "boise idaho", "macon ga", "fresno ca", "waco, texas"]


def planted(i: int) -> str:
    """Make up a query with an identifier; few are the same."""
    which = i // 10 % 5
    if which == 0:
        return f"{FIRST[i % 10]} {LAST[i // 10 % 9]} obituary {i % 97}"
    if which == 1:
        return f"plumber {i % 89} {CITY[i % 7]}"
    if which == 2:
        return f"call {200 + i % 700}-555-01{i % 100:02}"
    if which == 3:
        return f"example.com/~user{i}"
    return f"march {1 + i % 28} {1930 + i % 76}"


def in_batches(queries: pl.Series, run: Callable[[pl.Series], object], *, size: int) -> None:
    """Run over a column in batches, as a stream comes."""
    for start in range(0, len(queries), size):
        run(queries[start : start + size])


def one_by_one(queries: list[str]) -> None:
    """Run over every query alone."""
    for query in queries:
        find_identifiers(query)


def speed(name: str, queries: pl.Series) -> None:
    """Print queries a second: the screen, all of it, and the plain form on a part."""
    some = queries[:N_PLAIN].to_list()
    runs: dict[str, tuple[int, Callable[[], object]]] = {
        f"{label}, batches of {size:,}": (len(queries), lambda run=run, size=size: in_batches(queries, run, size=size))  # type: ignore[misc]
        for size in (1_000, 10_000)
        for label, run in (("screen only", screen), ("remove_identifiers", remove_identifiers))
    }
    runs["find_identifiers, one by one"] = (len(some), lambda: one_by_one(some))
    seconds = take_turns({label: run for label, (_, run) in runs.items()}, rounds=3)
    rows = [
        (label, f"{n / seconds[label]:,.0f}", f"{seconds[label] / n * 1e6:.2f} µs") for label, (n, _) in runs.items()
    ]
    needing = (screen(queries) > 0).mean()
    print_table(
        ["", "queries a second", "each"], rows, title=f"{name}: {len(queries):,} queries, {needing:.1%} need a rule"
    )
    print()


if __name__ == "__main__":
    made_up = synthesize(users=4_000, like="aol", seed=SEED).log.frame["query"].drop_nulls()[:100_000]
    remove_identifiers(made_up[:1_000])
    find_identifiers("www.kramer-tree.net +44 20 7946 0958 4111 1111 1111 1111")
    speed("made up like AOL", made_up)
    every_tenth = pl.Series(range(len(made_up))) % 10 == 0
    speed("an identifier in every tenth", made_up.zip_with(~every_tenth, pl.Series(map(planted, range(len(made_up))))))
