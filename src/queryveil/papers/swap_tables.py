"""Tables of Pàmies-Estrems et al., compared with ours.

`python -m queryveil.papers.swap_tables PART`: rows come in as Arrow on stdin, two numbers of KiB go out.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from importlib import resources
from math import ceil
from pathlib import Path
from statistics import fmean, stdev
from time import process_time
from typing import NamedTuple

import numpy as np
import polars as pl

from queryveil.attacks import Rebuild1, Rebuild2, Rebuild3, Rebuild4, Seen
from queryveil.data import QueryLog
from queryveil.data.rows import sort_in_place
from queryveil.errors import BadInput
from queryveil.methods.settings import PoolSettings
from queryveil.methods.swap.pools import Pools
from queryveil.methods.swap.preparing import increments, prepare
from queryveil.papers.swap_runs import KS, N_TIMES, SECONDS_NOTE, TIMED_ROWS, Order, Run, Runs
from queryveil.papers.table import OURS, THEIRS, Cell, Table, claim
from queryveil.progress import step
from queryveil.text.classifier import CATEGORIES, Classifier, Kind

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
    """Return the microseconds a query of the classifier, the anonymizer and the profiler, and what that is a second."""
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


K = 10
_PEAK = re.compile(r"^VmHWM:\s+(\d+) kB$", re.MULTILINE)


class Peak(NamedTuple):
    """KiB: the most the process had, and how much of that came on top of the rows and the libraries."""

    process: int
    part: int


def measure(part: str, rows: pl.DataFrame) -> Peak:
    """Run a part on rows in a fresh process and give its peak."""
    # Privacy: rows go through a pipe, so that none of them touch a disk.
    data = io.BytesIO()
    rows.write_ipc(data)
    done = subprocess.run(
        [sys.executable, "-m", "queryveil.papers.swap_tables", part], input=data.getvalue(), capture_output=True,
        check=False,
    )  # fmt: skip
    if done.returncode:
        # Privacy: what the process said may quote rows, so it is dropped.
        raise BadInput(f"the process that measures the memory of the {part} ended with {done.returncode}; run it again")
    process, part_own = done.stdout.split()
    return Peak(int(process), int(part_own))


def peak() -> int:
    """Return the most memory that this process ever had, in KiB."""
    status = Path("/proc/self/status")
    found = _PEAK.search(status.read_text(encoding="ascii", errors="replace")) if status.exists() else None
    if found:
        return int(found.group(1))
    # Not on every system, hence here.
    import resource  # noqa: PLC0415

    # It counts bytes on macOS.
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most // 1024 if sys.platform == "darwin" else most


def _classifier_swap_memory(rows: pl.DataFrame) -> None:
    classifier = Classifier()
    for batch in rows.iter_slices(BATCH):
        prepare(batch, classifier=classifier)


def _anonymizer_swap_memory(rows: pl.DataFrame) -> None:
    pools = Pools(PoolSettings(k=K), seed=0)
    for batch in rows.iter_slices(BATCH):
        pools.add(batch)


def _profiler_swap_memory(rows: pl.DataFrame) -> None:
    for batch in rows.iter_slices(BATCH):
        increments(batch)


def _attacker(attacker: Rebuild1 | Rebuild2 | Rebuild3 | Rebuild4) -> Callable[[pl.DataFrame], None]:
    def work(rows: pl.DataFrame) -> None:
        seen = Seen.of(QueryLog(frame=rows.select("user", "query")), category=rows["category"].to_numpy())
        attacker.guess(seen)

    return work


PARTS: dict[str, Callable[[pl.DataFrame], None]] = {
    "classifier": _classifier_swap_memory,
    "anonymizer": _anonymizer_swap_memory,
    "profiler": _profiler_swap_memory,
    "de-anonymizer 1": _attacker(Rebuild1(k=K, seed=0)),
    "de-anonymizer 2": _attacker(Rebuild2(k=K, seed=0)),
    "de-anonymizer 3": _attacker(Rebuild3(k=K, seed=0)),
    "de-anonymizer 4": _attacker(Rebuild4(k=K, seed=0)),
}


def main() -> None:
    """Read rows, run the part that was asked for, and say what it took."""
    rows = pl.read_ipc(io.BytesIO(sys.stdin.buffer.read()))
    # The first compiled function brings the compiler in, which all parts would be charged with.
    sort_in_place(np.zeros(2, np.int64))
    before = peak()
    PARTS[sys.argv[1]](rows)
    after = peak()
    sys.stdout.write(f"{after} {after - before}\n")


if __name__ == "__main__":
    main()


# Paper: table 3, in KiB, mean and standard deviation.
THEIR_PEAKS = {
    "classifier": (111_581, 145),
    "anonymizer": (10_347, 72),
    "profiler": (12_120, 94),
    "de-anonymizer 1": (9_316, 640),
    "de-anonymizer 2": (9_375, 687),
    "de-anonymizer 3": (312_273, 4_620),
    "de-anonymizer 4": (311_782, 2_945),
}
FLAT = 1.5


def build_swap_table3(runs: Runs) -> Table:
    """Return the peak of a process that runs one part, on all rows and on half of them."""
    order = Order.TIME if runs.has_times else Order.FILE
    events = runs.events(order).head(TIMED_ROWS)
    pooled = runs.pooled(Run(k=K, l=K, order=order))
    released = pooled.released.frame.with_columns(pooled.category).head(TIMED_ROWS)
    rows = {name: released if name.startswith(("profiler", "de-")) else events for name in PARTS}
    whole, half = {}, {}
    for i, (name, frame) in enumerate(rows.items()):
        step(name, i / len(rows))
        whole[name], half[name] = measure(name, frame), measure(name, frame.head(frame.height // 2))
    return Table(
        name="swap-table3",
        title="Pàmies-Estrems et al., table 3: memory in KiB",
        columns=("part", "whose", "peak of the process", "sd", "of it the part", "the part on half the rows"),
        rows=(
            *((name, THEIRS, *figures, None, None) for name, figures in THEIR_PEAKS.items()),
            *((name, OURS, each.process, None, each.part, half[name].part) for name, each in whole.items()),
        ),
        notes=(
            *runs.material.notes,
            f"each part runs in a process of its own on up to {TIMED_ROWS:,} rows, k={K}, in batches of {BATCH:,} (the "
            "de-anonymizers at once); its peak is the largest resident memory that the system saw",
            "before the part begins the process holds Python, its libraries, Numba's compiler and all rows; the part "
            "is what the peak rises by, its tables and compiled code included; it differs from run to run",
            "theirs: a plain Python process that reads a file row by row",
            _flat(whole, half),
        ),
    )


def _flat(whole: dict[str, Peak], half: dict[str, Peak]) -> str:
    most = max(whole[name].part / max(1, half[name].part) for name in ("classifier", "anonymizer", "profiler"))
    return claim(
        "classifier, anonymizer and profiler take no more memory, whatever the number of rows",
        holds=most < FLAT,
        figures=f"up to {most:.2f} times as much for twice the rows; {FLAT} is our limit",
    )


# Paper: table 4 and section 4.5, in %.
THEIR_SHARES = (
    *(57.23, 77.39, 64.79, 56.25, 88.10, 81.48, 37.65, 16.67),
    *(55.22, 69.23, 69.08, 47.22, 69.64, 56.76, 40.48, 30.77),
)
THEIR_RIGHT, THEIR_COVERED, THEIR_QUERIES = 58.99, 85, 1068
RIGHT, COVERED = "all, right", "all, with a category"


def build_swap_table4() -> Table:
    """Return the share of queries with a right category, for each category and as a whole."""
    labelled = read_labelled()
    found = {kind: judged(labelled, kind=kind) for kind in (Kind.PAPER, Kind.EVIDENCE)}
    theirs: dict[str, float] = dict(zip(CATEGORIES, THEIR_SHARES, strict=True))
    theirs |= {RIGHT: THEIR_RIGHT, COVERED: THEIR_COVERED}
    best, worst = (choose(CATEGORIES, key=found[Kind.EVIDENCE].__getitem__) for choose in (max, min))
    return Table(
        name="swap-table4",
        title="Pàmies-Estrems et al., table 4: queries that get a right category, in %",
        columns=("category", THEIRS, f"{OURS}, as in the paper", f"{OURS}, by all units"),
        rows=tuple(_row_swap_table4(name, theirs, found) for name in (*CATEGORIES, COVERED, RIGHT)),
        notes=(
            f"ours: {labelled.height} made-up queries of one to five words, {labelled.height // len(CATEGORIES)} a "
            "category, each with the one category it was written for; a person would often accept another one too, "
            "which counts as wrong here",
            "the queries were written before the classifier had seen them, and nothing was tuned to them; but who "
            "writes for a category writes plainly, so real queries get a right one less often",
            f"theirs: {THEIR_QUERIES:,} rows of AOL's log, judged by hand; how many of each category is not said, and "
            "there is no log here to compare with, so the two differ by their queries too",
            "as in the paper: the rarest unit alone decides; by all units: our default",
            claim(
                "very specific terms, as in Health, do best and generic ones, as in News, worst",
                holds=(best, worst) == ("Health", "News"),
                figures=f"best {best}, worst {worst}, by all units",
            ),
            claim(
                "the words of a query together would be right more often than one alone",
                holds=found[Kind.EVIDENCE][RIGHT] > found[Kind.PAPER][RIGHT],
                figures=f"{found[Kind.EVIDENCE][RIGHT]:.2f} % against {found[Kind.PAPER][RIGHT]:.2f} %",
            ),
        ),
    )


def read_labelled() -> pl.DataFrame:
    """Read the made-up queries and the category that each was written for."""
    with (resources.files("queryveil.papers") / "data" / "labelled_queries.tsv").open("rb") as file:
        return pl.read_csv(file.read(), separator="\t", quote_char=None)


def judged(labelled: pl.DataFrame, *, kind: Kind) -> dict[str, float]:
    """Return the percentages of right answers."""
    found = Classifier(kind=kind).classify(labelled["query"])
    table = labelled.with_columns(right=found.names == labelled["category"], has=pl.Series(found.category >= 0))
    by_category = table.group_by("category").agg(100 * pl.col("right").mean()).rows()
    has, right = (100 * table[name].cast(pl.Float64).sum() / table.height for name in ("has", "right"))
    return {**dict(by_category), COVERED: has, RIGHT: right}


def _row_swap_table4(name: str, theirs: dict[str, float], found: dict[Kind, dict[str, float]]) -> tuple[Cell, ...]:
    return (name, theirs[name], *(round(each[name], 2) for each in found.values()))
