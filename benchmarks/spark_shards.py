"""What it costs to do a method in shards of users, as Spark does: more shards, fewer people who could be alike.

    python -m benchmarks.spark_shards [--users N] [--shards N,N,..] [--master URL]

Each method runs on Spark over the same made-up log, in more and more shards. In one shard it is the method of one
machine. The figures are those of the manifests.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from queryveil import Clump, Kdelta, Partition, Plink, synth
from queryveil.cli.output import print_table
from queryveil.release import Manifest
from queryveil.spark import start_spark

SEED = 1
Figures = Mapping[str, Callable[[Manifest], str]]


def measure(name: str) -> Callable[[Manifest], str]:
    """Return how a measure of a manifest is shown."""
    return lambda manifest: f"{manifest.measures[name]:,.3f}"


ROWS: Figures = {"rows released": lambda manifest: f"{manifest.counts.n_rows_after:,}"}
LOST: Figures = {"information lost (ncp)": measure("ncp"), "ggd": measure("ggd")}
CASES: Mapping[str, tuple[Any, Figures]] = {
    "clump k=5": (Clump(k=5, seed=SEED), LOST),
    "partition k=5": (Partition(k=5, seed=SEED), LOST),
    "plink p=0.4": (Plink(p=0.4, seed=SEED), {"similarity to the group": measure("mean_similarity_to_group")}),
    "kdelta k=5, same texts": (Kdelta(k=5, same_texts=True, seed=SEED), ROWS),
    "kdelta k=5, same texts, no additions": (Kdelta(k=5, same_texts=True, additions=False, seed=SEED), ROWS),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run every method in every number of shards."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--users", type=float, default=20_000)
    parser.add_argument("--shards", default="1,2,4,8,16")
    parser.add_argument("--master", default="local[2]")
    given = parser.parse_args(arguments)
    shards = [int(n) for n in given.shards.split(",")]
    engine = start_spark(given.master)
    rows: list[tuple[str, ...]] = []
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "log.parquet"
        synth(users=int(given.users), seed=SEED).log.frame.write_parquet(path)
        log = engine.read_log(str(path))
        for name, (method, figures) in CASES.items():
            found = [engine.anonymize(method, log, f"{scratch}/release", force=True, shards=n) for n in shards]
            rows += [(f"{name}: {what}", *map(show, found)) for what, show in figures.items()]
    engine.session.stop()
    print_table(("shards", *map(str, shards)), rows, title=f"{int(given.users):,} users, synth --seed {SEED}")


if __name__ == "__main__":
    main()
