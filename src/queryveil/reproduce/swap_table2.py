"""Pàmies-Estrems et al., table 2: what a query costs in time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import ceil
from statistics import fmean, stdev
from time import process_time

import polars as pl

from queryveil.progress import step
from queryveil.reproduce.swap_material import Order
from queryveil.reproduce.swap_runs import KS, N_TIMES, SECONDS_NOTE, TIMED_ROWS, Runs
from queryveil.reproduce.table import OURS, THEIRS, Cell, Table, claim
from queryveil.stream.pools import Pools, PoolSettings
from queryveil.stream.preparing import prepare
from queryveil.stream.profiler import increments
from queryveil.text.classifier import Classifier

GOOGLE = 40_000
"""Queries a second that the paper gives for Google."""
BATCH = 10_000
# Paper: table 2, in microseconds.
THEIR_TIMES: dict[str, tuple[float, float, int, int]] = {
    "classifier": (1503, 24.0, 665, 60),
    "anonymizer": (22, 0.35, 45_454, 1),
    "profiler": (267, 4.73, 3745, 11),
}


def build(runs: Runs) -> Table:
    """Give the microseconds a query of the classifier, the anonymizer and the profiler, and what that is a second."""
    raw = runs.material.log.frame.select("user", "query").head(TIMED_ROWS)
    classifier = Classifier()
    # The first batch also compiles, which no later one does.
    prepare(raw.head(BATCH), classifier=classifier)
    times = {"classifier": _classifier(raw, classifier)}
    events = runs.events(Order.TIME if runs.has_times else Order.FILE).head(TIMED_ROWS)
    increments(Pools(PoolSettings(), seed=0).add(events.head(BATCH)).released)
    times["anonymizer"], released = _anonymizer(events, seed=runs.seed)
    times["profiler"] = _profiler(released)
    chain = sum(fmean(each) for each in times.values())
    theirs = sum(each[0] for each in THEIR_TIMES.values())
    return Table(
        name="swap-table2",
        title="Pàmies-Estrems et al., table 2: runtime cost",
        columns=("part", "whose", "microseconds a query", "sd", "queries a second", f"threads for {GOOGLE:,} a second"),
        rows=(
            *((name, THEIRS, *figures) for name, figures in THEIR_TIMES.items()),
            _row("all three", THEIRS, theirs, None),
            *(_row(name, OURS, fmean(each), stdev(each)) for name, each in times.items()),
            _row("all three", OURS, chain, None),
        ),
        notes=(
            *runs.material.notes,
            f"up to {TIMED_ROWS:,} rows in batches of {BATCH:,}; {SECONDS_NOTE}",
            f"classifier and profiler: mean and standard deviation over {N_TIMES} runs; anonymizer: over k = "
            + ", ".join(map(str, KS))
            + ", with l=k",
            "classifier: identifiers removed and the category found, as in the paper; profiler: the counts that a "
            "store adds up, without the store (theirs: MongoDB on a disk)",
            "all three, theirs: the sum of the paper's three, which it does not give itself",
            claim(
                "one thread of the anonymizer is enough for Google",
                holds=1e6 / fmean(times["anonymizer"]) >= GOOGLE,
                figures=f"{1e6 / fmean(times['anonymizer']):,.0f} queries a second",
            ),
            claim(
                "the classifier is the slowest",
                holds=max(times, key=lambda name: fmean(times[name])) == "classifier",
                figures=f"{fmean(times['classifier']) / chain:.0%} of the time",
            ),
        ),
    )


def batches(rows: pl.DataFrame) -> Iterable[pl.DataFrame]:
    """Cut rows into batches."""
    return rows.iter_slices(BATCH)


def _timed(work: Callable[[], object], *, n_rows: int) -> float:
    start = process_time()
    work()
    return 1e6 * (process_time() - start) / max(1, n_rows)


def _classifier(raw: pl.DataFrame, classifier: Classifier) -> list[float]:
    def work() -> None:
        for batch in batches(raw):
            prepare(batch, classifier=classifier)

    return [_turn("classifier", i, work, n_rows=raw.height) for i in range(N_TIMES)]


def _anonymizer(events: pl.DataFrame, *, seed: int) -> tuple[list[float], pl.DataFrame]:
    times, released = [], [events.clear().with_columns(arrival=pl.lit(0, pl.Int64))]
    for i, k in enumerate(KS):
        pools = Pools(PoolSettings(k=k), seed=seed)
        found: list[pl.DataFrame] = []

        def work(pools: Pools = pools, found: list[pl.DataFrame] = found) -> None:
            found += [pools.add(batch).released for batch in batches(events)]

        times.append(_turn("anonymizer", i, work, n_rows=events.height))
        released = found or released
    return times, pl.concat(released)


def _profiler(released: pl.DataFrame) -> list[float]:
    def work() -> None:
        for batch in batches(released):
            increments(batch)

    return [_turn("profiler", i, work, n_rows=released.height) for i in range(N_TIMES)]


def _turn(name: str, i: int, work: Callable[[], object], *, n_rows: int) -> float:
    step(name, i / N_TIMES)
    return _timed(work, n_rows=n_rows)


def _row(name: str, whose: str, mean: float, spread: float | None) -> tuple[Cell, ...]:
    a_second = 1e6 / mean
    sd = None if spread is None else round(spread, 3)
    return (name, whose, round(mean, 3), sd, int(a_second), ceil(GOOGLE / a_second))
