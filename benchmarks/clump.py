"""Clump against the paper's algorithm, against Partition, against plain Python, and against itself at larger sizes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl
from tests.support.plain_clump import plain_clump

from benchmarks.timing import print_ratios, take_turns
from queryveil.cli.output import print_table
from queryveil.data.rows import Rows, pointers
from queryveil.methods.clump._clustering import Algorithm, Clustering, clump, cost, without_duplicates
from queryveil.methods.clump._partition import partition
from queryveil.text.taxonomy import Taxonomy

SEED = 0
BMS = Path(__file__).resolve().parents[1] / ".." / "shared" / "data" / "bms-webview-1.txt"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Transactions:
    """The items of transactions, and their taxonomy."""

    items: Rows[np.int32]
    tree: Taxonomy

    @property
    def n(self) -> int:
        return self.items.n_rows

    def clump(self, k: int, *, refine: bool = True) -> Clustering:
        tree = self.tree
        rng = np.random.default_rng(SEED)
        return clump(self.items, tree.parent, tree.loss, k=k, algorithm=Algorithm(refine=refine), rng=rng)

    def paper(self, k: int) -> Clustering:
        tree, rng = self.tree, np.random.default_rng(SEED)
        papers = Algorithm(carry=False, by_rise=False, refine=False)
        return clump(self.items, tree.parent, tree.loss, k=k, algorithm=papers, rng=rng)

    def partition(self, k: int) -> Clustering:
        return partition(self.items, self.tree.parent, self.tree.loss, k=k)


def made_up(n_rows: int, *, mean_length: float) -> Transactions:
    """Make up transactions over WordNet: lengths of long tail, 40 % of each from a few subtrees, the rest by Zipf."""
    tree = Taxonomy.wordnet()
    rng = np.random.default_rng(SEED)
    length = np.clip(rng.lognormal(np.log(mean_length) - 0.5, 1.0, n_rows).round(), 1, 400).astype(np.int64)
    row = np.repeat(np.arange(n_rows), length)
    rank = (np.exp(rng.random(len(row)) * np.log(tree.n_nodes / 20 + 1)) - 1) * 20
    common = rng.permutation(tree.n_nodes)[rank.astype(np.int64)]
    below = tree.last - np.arange(tree.n_nodes) + 1
    topics = rng.permutation(np.flatnonzero((below >= 30) & (below <= 600)))
    n_topics = 1 + length // 12
    first_topic = np.concatenate([[0], np.cumsum(n_topics)])
    topic_rank = np.exp(rng.random(first_topic[-1]) * np.log(len(topics) / 5 + 1)) * 5 - 5
    drawn = first_topic[row] + (rng.random(len(row)) * n_topics[row]).astype(np.int64)
    topic = topics[topic_rank.astype(np.int64)][drawn]
    topical = topic + (below[topic] * rng.random(len(row)) ** 2).astype(np.int64)
    node = np.where(rng.random(len(row)) < 0.4, topical, common)
    row_node = np.unique(row * tree.n_nodes + node)
    ptr = np.searchsorted(row_node, np.arange(n_rows + 1) * tree.n_nodes)
    return Transactions(items=Rows(ptr, (row_node % tree.n_nodes).astype(np.int32)), tree=tree)


def bms() -> Transactions:
    """Read BMS-WebView-1 under a balanced tree of fan-out 5."""
    baskets = pl.Series(BMS.read_text().splitlines()).str.split(" ")
    names = baskets.explode()
    tree = Taxonomy.balanced(names, fan_out=5)
    return Transactions(items=Rows(pointers(baskets.list.len().to_numpy()), tree.find_all(names)), tree=tree)


def against_plain_python(*, n_rows: int = 100, k: int = 5) -> None:
    """Compare algorithm 1 with plain Python on few transactions, over only their nouns and what is above."""
    some = made_up(n_rows, mean_length=21)
    tree, number = some.tree.restricted_to(np.unique(some.items.values))
    small = Transactions(items=Rows(some.items.ptr, number[some.items.values].astype(np.int32)), tree=tree)
    bags = [tuple(items) for items in small.items.to_lists()]
    parent = tree.parent.tolist()
    seconds = take_turns({"algorithm 1": lambda: small.paper(k), "default": lambda: small.clump(k)}, rounds=5)
    seconds |= take_turns(
        {"plain Python": lambda: plain_clump(bags, parent, k=k, r=10, carry=False, by_rise=False)}, rounds=1
    )
    print_ratios(f"{n_rows} transactions, {tree.n_nodes:,} nodes, k={k}", seconds, ours="algorithm 1")


def growth(*, k: int = 5) -> None:
    """Show the time per transaction as they become more."""
    rows = []
    for n in (10_000, 53_058, 200_000):
        data = made_up(n, mean_length=22)
        runs: dict[str, Callable[[], object]] = {
            "default": lambda data=data: data.clump(k),  # type: ignore[misc]
            "paper": lambda data=data: data.paper(k),  # type: ignore[misc]
            "partition": lambda data=data: data.partition(k),  # type: ignore[misc]
        }
        seconds = take_turns(runs, rounds=2)
        per_row = [f"{took / n * 1e6:.0f} µs" for took in seconds.values()]
        rows.append((n, f"{len(data.items.values) / n:.1f}", *per_row))
    print_table(["transactions", "length", "default", "paper", "partition"], rows, title=f"time each at k={k}")
    print()


def quality(name: str, data: Transactions, *, ks: tuple[int, ...]) -> None:
    """Show what each way costs."""
    rows = []
    for k in ks:
        papers = cost(data.paper(k), data.items, loss=data.tree.loss, level=data.tree.level).distortion
        ways: dict[str, Callable[[int], Clustering]] = {
            "paper": data.paper,
            "carry and rise": lambda k: data.clump(k, refine=False),
            "default": data.clump,
            "partition": data.partition,
        }
        for way, run in ways.items():
            started = time.perf_counter()
            found = run(k)
            took = time.perf_counter() - started
            rows.append((k, way, *_measures(data, found, papers), f"{took:.2f} s"))
            if way in ("paper", "default"):
                rows.append((k, f"{way}, no duplicates", *_measures(data, _deduplicated(found), papers), ""))
    header = ["k", "", "GGD", "of paper", "NCP", "length", "level", "time"]
    print_table(header, rows, title=f"{name}: {data.n:,} transactions of {len(data.items.values) / data.n:.1f}")
    print()


def _deduplicated(found: Clustering) -> Clustering:
    return replace(found, released=without_duplicates(found.released))


def _measures(data: Transactions, found: Clustering, papers: float) -> tuple[str, ...]:
    tree = data.tree
    c = cost(found, data.items, loss=tree.loss, level=tree.level)
    return (
        f"{c.distortion:,.0f}", f"{c.distortion / papers:.3f}", f"{c.ncp:.4f}",
        f"{c.average_length:.2f}", f"{c.average_level:.2f}",
    )  # fmt: skip


def compile_all() -> None:
    """Run everything once, so that no time below holds the compiling."""
    few = made_up(100, mean_length=21)
    few.clump(5), few.paper(5), few.partition(5)


if __name__ == "__main__":
    compile_all()
    against_plain_python()
    quality("few long ones", made_up(1_000, mean_length=48), ks=(5, 10))
    quality("the paper's size", made_up(53_058, mean_length=22), ks=(5, 10))
    growth()
    if BMS.exists():
        quality("BMS-WebView-1", bms(), ks=(5, 10, 50))
