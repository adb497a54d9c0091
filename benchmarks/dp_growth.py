"""Time and memory of dp on made-up logs of AOL's shape, each size in a process of its own.

python -m benchmarks.dp_growth [ROWS ..]
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
import polars as pl

from queryveil.cli.output import print_table
from queryveil.data import QueryLog
from queryveil.methods import Dp

SEED = 0
ROWS_A_USER = 55
DAYS = 92
"""About as in AOL's log."""
SETTINGS = (1, 5, 10)


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What a process saw."""

    max_queries: int
    n_users: int
    n_distinct: int
    n_released: int
    rounds: str
    seconds: float
    work: float
    log: float
    peak: float


def made_up(n_rows: int) -> QueryLog:
    """Make up a log: few users ask most, and the rank of a query is log-uniform, so that a quarter are distinct."""
    rng = np.random.default_rng(SEED)
    activity = np.cumsum(rng.lognormal(0, 1.2, max(1, n_rows // ROWS_A_USER)))
    user = np.searchsorted(activity / activity[-1], rng.random(n_rows))
    query = (np.exp(rng.random(n_rows) * np.log(2 * n_rows)) - 1).astype(np.int64)
    second = rng.integers(0, DAYS * 86_400, n_rows)
    frame = pl.DataFrame({"user": user, "query": query, "second": second}).select(
        pl.format("u{}", "user").alias("user"),
        pl.format("words of query {}", "query").alias("query"),
        (pl.datetime(2006, 3, 1) + pl.duration(seconds="second")).cast(pl.Datetime("us")).alias("time"),
    )
    return QueryLog.from_frame(frame)


def _megabytes(name: str) -> float:
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status[name].split()[0]) / 1024


def look(n_rows: int, *, max_queries: int) -> Seen:
    """Anonymize one log, and see how long it took and how much memory there was at the most."""
    Dp(max_queries=max_queries).anonymize(made_up(1000))
    log = made_up(n_rows)
    held = _megabytes("VmRSS")
    # The making of the log may have needed more than what follows.
    Path("/proc/self/clear_refs").write_text("5")
    started, worked = time.perf_counter(), time.process_time()
    release = Dp(max_queries=max_queries).anonymize(log)
    seconds, work = time.perf_counter() - started, time.process_time() - worked
    peak = _megabytes("VmHWM")
    return Seen(
        max_queries=max_queries,
        n_users=log.n_users,
        n_distinct=log.frame["query"].n_unique(),
        n_released=release.tallies.n_queries,
        rounds=", ".join(each.mechanism for each in release.manifest.noise),
        seconds=seconds,
        work=work,
        log=held,
        peak=peak,
    )


def growth(sizes: Sequence[int]) -> None:
    """Print time and memory as a log grows."""
    for max_queries in SETTINGS:
        rows = []
        for n_rows in sizes:
            command = [sys.executable, "-m", "benchmarks.dp_growth", "--one", str(n_rows), str(max_queries)]
            root = Path(__file__).resolve().parents[1]
            done = subprocess.run(command, stdout=subprocess.PIPE, check=True, cwd=root)
            seen = msgspec.json.decode(done.stdout, type=Seen)
            each = f"{seen.seconds / n_rows * 1e6:.2f} µs"
            rows.append(
                (
                    n_rows, seen.n_users, seen.n_distinct, seen.n_released, f"{seen.seconds:.1f} s",
                    f"{seen.work:.1f} s", each, f"{seen.log:,.0f} MB", f"{seen.peak:,.0f} MB",
                )
            )  # fmt: skip
        titles = ["rows", "users", "distinct queries", "released", "time", "work", "a row", "with the log", "peak"]
        print_table(titles, rows, title=f"at most {max_queries} of each person, epsilon 1, delta 1e-5: {seen.rounds}")
        print()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        found = look(int(sys.argv[2]), max_queries=int(sys.argv[3]))
        sys.stdout.write(msgspec.json.encode(found).decode())
    else:
        growth([int(float(n)) for n in sys.argv[1:]] or [1_000_000])
