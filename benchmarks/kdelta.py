"""kdelta against plain Python, its groups against the paper's, and itself at larger sizes."""

from __future__ import annotations

import time
from collections import defaultdict
from fractions import Fraction
from itertools import pairwise

from tests.support.plain_kdelta import plain_clusters, plain_groups

from benchmarks.timing import print_ratios, take_turns
from queryveil.cli.output import print_table
from queryveil.data import QueryLog
from queryveil.methods.kdelta import Kdelta
from queryveil.methods.kdelta._clusters import cluster_queries
from queryveil.methods.kdelta._equal import Table
from queryveil.methods.kdelta._groups import form
from queryveil.methods.kdelta._objects import read_objects
from queryveil.progress import watch
from queryveil.synthesis import synthesize

SEED = 0
STAGES = {
    "reading": ("reading queries", "looking for bots"),
    "clustering": ("clustering queries",),
    "grouping": ("grouping users", "swapping users"),
    "rewriting": ("adding and suppressing rows", "suppressing rows", "clustering what is released", "writing rows"),
}


def made_up(users: int, *, like: str = "aol") -> QueryLog:
    return synthesize(users=users, like=like, seed=SEED).log


def stages(method: Kdelta, log: QueryLog) -> dict[str, float]:
    """The processor's seconds of each stage, which other programs on the machine change less than the clock's."""
    spent: dict[str, float] = defaultdict(float)
    name, started = "", time.process_time()

    def note(step: str, _: float) -> None:
        nonlocal name, started
        now = time.process_time()
        spent[name] += now - started
        name, started = step, now

    with watch(note):
        method.anonymize(log)
    note("", 0.0)
    return {stage: sum(spent[step] for step in steps) for stage, steps in STAGES.items()}


def growth(method: Kdelta, *, sizes: tuple[int, ...]) -> None:
    """Show the time per user as they become more."""
    rows, first = [], 0.0
    for n in sizes:
        log = made_up(n)
        seconds = stages(method, log)
        whole = sum(seconds.values())
        first = first or whole / n
        each = [f"{took / n * 1e6:.0f} µs" for took in seconds.values()]
        rows.append((f"{n:,}", f"{log.n_rows:,}", *each, f"{whole:.1f} s", f"{whole / n / first:.2f}"))
    title = f"processor time per user, k={method.k}" + ("" if method.additions else ", no additions")
    print_table(["users", "rows", *STAGES, "in all", "per user / first"], rows, title=title)
    print()


def quality(*, users: int) -> None:
    """Show the rows added and suppressed with the paper's centroids, which are users, and with ours, which are not."""
    rows = []
    for like in ("aol", "web"):
        log = made_up(users, like=like)
        for k in (5, 10):
            manifest = Kdelta(k=k, seed=SEED).anonymize(log).manifest
            added, suppressed = manifest.changed["rows_added"], manifest.removed["rows_suppressed"]
            before = (manifest.measures["additions_paper_centroids"], manifest.measures["suppressions_paper_centroids"])
            alone = Kdelta(k=k, seed=SEED, additions=False).anonymize(log).manifest
            rows.append((
                like, k, f"{before[0]:,.0f}", f"{before[1]:,.0f}", f"{added:,}", f"{suppressed:,}",
                f"{(added + suppressed) / sum(before):.3f}", f"{alone.counts.n_rows_after / log.n_rows:.3f}",
                f"{alone.counts.n_users_after / log.n_users:.3f}",
            ))  # fmt: skip
    header = ["like", "k", "paper adds", "suppresses", "best adds", "suppresses", "best / paper",
              "rows kept without additions", "users kept"]  # fmt: skip
    print_table(header, rows, title=f"{users:,} users")
    print()


def against_plain_python(*, users: int = 100, k: int = 5) -> None:
    """Compare clusters and the paper's groups with plain Python on a small log."""
    objects = read_objects(made_up(users, like="web").frame)
    pairs = [(str(q), None if u < 0 else str(u)) for q, u in zip(objects.query, objects.url, strict=True)]
    n_queries = len(objects.texts)
    seconds = take_turns(
        {
            "arrays": lambda: cluster_queries(objects.query, objects.url, n_queries=n_queries, delta=0.5),
            "plain Python": lambda: plain_clusters(pairs, delta=Fraction(1, 2)),
        }
    )
    print_ratios(f"clusters of {n_queries:,} queries", seconds, ours="arrays")
    table = Table(objects, cluster_queries(objects.query, objects.url, n_queries=n_queries, delta=0.5))
    have = table.hold()
    counts = [
        dict(zip(have.cells[a:b].tolist(), have.counts[a:b].tolist(), strict=True))
        for a, b in pairwise(have.owner_cells.ptr)
    ]
    seconds = take_turns({"arrays": lambda: form(have, k=k), "plain Python": lambda: plain_groups(counts, k=k)})
    print_ratios(f"groups of {have.n_owners} users, k={k}", seconds, ours="arrays")


def compile_all() -> None:
    """Run everything once, so that no time below holds the compiling."""
    for additions in (True, False):
        Kdelta(k=5, additions=additions).anonymize(made_up(200))


if __name__ == "__main__":
    compile_all()
    against_plain_python()
    quality(users=1_000)
    quality(users=20_000)
    growth(Kdelta(k=5, seed=SEED), sizes=(10_000, 20_000, 50_000, 100_000))
    growth(Kdelta(k=5, seed=SEED, additions=False), sizes=(10_000, 20_000, 50_000, 100_000))
