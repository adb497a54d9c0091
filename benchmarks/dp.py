"""dp against OpenDP and PipelineDP at one promise: how many items leave; then its time and memory on large logs.

    python -m benchmarks.dp [FILE ..] [--runs N] [--rows N,N,..] [--max-queries N,N,..]

The items are those of BMS-WebView-1, and of any other file of transactions that is given. Expected items are
exact for each draw of what a person contributes, and all ways have the same draws, so that they compare well; only what
a first round lets through is drawn. Sampled items are whole runs: ours from the log to the release, the libraries' on
counts bounded as ours are. `--rows 36000000` is a log of AOL's size; `--rows ""` leaves that part out.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.dp_growth import growth
from benchmarks.dp_ways import Way, all_of_ours, opendp, pipelinedp
from queryveil.cli.output import print_table
from queryveil.data import Bools, Format, Int32s, Int64s, QueryLog
from queryveil.formats import read_log
from queryveil.text.tokens import encode, normal_form

SEED = 0
BMS = Path(__file__).resolve().parents[1] / ".." / "shared" / "data" / "bms-webview-1.txt"
EPSILON, DELTA = 1.0, 1e-5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Baskets:
    """Who has which item, each pair once, and the same as a log."""

    name: str
    owner: Int32s
    item: Int32s
    n_items: int
    log: QueryLog

    @classmethod
    def read(cls, path: Path) -> Baskets:
        """Read a file of transactions: whoever a line is has its items as queries."""
        lines = read_log(path, format=Format.TRANSACTIONS).frame
        asked = lines.select("user", pl.col("query").str.extract_all(r"\S+")).explode("query")
        asked = asked.with_columns(normal_form(asked["query"])).unique(maintain_order=True)
        (owner, _), (item, texts) = encode(asked["user"]), encode(asked["query"])
        log = QueryLog.from_frame(asked)
        return cls(name=path.name, owner=owner, item=item, n_items=len(texts), log=log)

    def count(self, chosen: Bools) -> Int64s:
        return np.bincount(self.item[chosen], minlength=self.n_items)

    def bound(self, max_queries: int, *, among: Bools, rng: np.random.Generator) -> Bools:
        """Choose at most so many items of each, by chance."""
        rows = np.flatnonzero(among)
        rows = rows[np.lexsort((rng.random(len(rows)), self.owner[rows]))]
        owner = self.owner[rows]
        starts = np.flatnonzero(np.diff(owner, prepend=-1))
        rank = np.arange(len(rows)) - np.repeat(starts, np.diff(starts, append=len(rows)))
        chosen = np.zeros(len(self.owner), np.bool_)
        chosen[rows[rank < max_queries]] = True
        return chosen


def expected(baskets: Baskets, way: Way, *, max_queries: int, seed: int) -> float:
    """Return how many items leave on average, for one draw of what each contributes."""
    rng = np.random.default_rng(seed)
    is_out = np.zeros(baskets.n_items, np.bool_)
    for chance in way.rounds[:-1]:
        chosen = baskets.bound(max_queries, among=~is_out[baskets.item], rng=rng)
        is_out |= rng.random(baskets.n_items) < chance[baskets.count(chosen)]
    chosen = baskets.bound(max_queries, among=~is_out[baskets.item], rng=rng)
    return float(is_out.sum() + way.rounds[-1][baskets.count(chosen)].sum())


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How many items a way released, by chance and by draws."""

    way: Way
    expected: float
    drawn: tuple[int, ...]
    delta: float

    @property
    def cells(self) -> tuple[str | None, ...]:
        way, error = self.way, np.std(self.drawn) / max(1, len(self.drawn) - 1) ** 0.5
        stated = None if way.stated is None else f"{way.stated:.3g}"
        delta = f"{self.delta:.3g}{' !' * (self.delta > DELTA * (1 + 1e-6))}"
        figures = (f"{self.expected:.1f}", f"{np.mean(self.drawn):.1f}", f"{error:.1f}")
        return way.name, way.threshold, stated, delta, *figures


def compare(baskets: Baskets, *, max_queries: int, runs: int) -> None:
    """Print how many items each way releases, and ours beside the best library that keeps the promise."""
    everything = np.ones(len(baskets.owner), np.bool_)
    n_most = int(baskets.count(everything).max())
    ways = all_of_ours(log=baskets.log, n_most=n_most, epsilon=EPSILON, delta=DELTA, max_queries=max_queries)
    for library in (opendp, pipelinedp):
        ways += library(n_most=n_most, epsilon=EPSILON, delta=DELTA, max_queries=max_queries)
    bounded = [
        baskets.count(baskets.bound(max_queries, among=everything, rng=np.random.default_rng(SEED + run)))
        for run in range(runs)
    ]
    outcomes = [
        Outcome(
            way=way,
            expected=float(
                np.mean([expected(baskets, way, max_queries=max_queries, seed=SEED + i) for i in range(runs)])
            ),
            drawn=tuple(way.draw(counts) for counts in bounded),
            delta=way.delta_of_new(max_queries),
        )
        for way in ways
    ]
    print(
        f"{baskets.name}: {baskets.owner.max() + 1:,} people, {baskets.n_items:,} items, {len(baskets.owner):,} pairs"
    )
    header = ["", "threshold", "delta stated", "delta of new", "expected", "sampled", "± s.e."]
    title = f"epsilon {EPSILON:g}, delta {DELTA:g}, at most {max_queries} of each person, {runs} runs"
    print_table(header, [each.cells for each in outcomes], title=title)
    conclude(outcomes)


def conclude(outcomes: Sequence[Outcome]) -> None:
    """Print the automatic choice, and the best of ours in two rounds, beside the best library that keeps delta."""
    best = max(
        (each for each in outcomes if not each.way.is_ours and each.way.is_honest), key=lambda each: each.expected
    )
    twice = max((each for each in outcomes if each.way.is_ours and len(each.way.rounds) == 2), key=lambda e: e.expected)
    print(f"the best library that keeps delta: {best.way.name}, {best.expected:.1f} expected")
    for each in (outcomes[0], twice):
        print(f"{each.way.name}: {each.expected - best.expected:+.2f} expected")
    print()


def main(arguments: Sequence[str] | None = None) -> None:
    """Compare on every file, then show how time and memory grow."""
    parser = argparse.ArgumentParser()
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--max-queries", default="1,5,10")
    parser.add_argument("--rows", default="1000000,4000000,16000000")
    given = parser.parse_args(arguments)
    for path in ([BMS] if BMS.exists() else []) + given.files:
        baskets = Baskets.read(path)
        for max_queries in map(int, given.max_queries.split(",")):
            compare(baskets, max_queries=max_queries, runs=given.runs)
    if given.rows:
        growth([int(float(n)) for n in given.rows.split(",")])


if __name__ == "__main__":
    main()
