"""Pàmies-Estrems et al.: time and memory of the parts (tables 2 and 3, figures 4 and 8).

`python -m queryveil.papers._swap_costs PART` measures memory: Arrow rows come in on stdin, two numbers of KiB go out.
"""

import io
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from math import ceil
from pathlib import Path
from statistics import fmean, stdev
from time import process_time
from typing import NamedTuple

import numpy as np
import polars as pl

from queryveil.attacks.swapped import EncodedLog
from queryveil.data import QueryLog
from queryveil.data.rows import sort_in_place
from queryveil.errors import BadInput
from queryveil.methods.settings import PoolSettings
from queryveil.methods.swap.pools import Pools
from queryveil.methods.swap.preparing import increments, prepare
from queryveil.papers import driver
from queryveil.papers._swap_runs import AT_GROWTHS, AT_KS, ATTACKERS, GROWTH, GROWTHS, KS, ORDER_NOTE, Order, Run, Runs
from queryveil.papers.driver import DRAWN_NOTE, OURS, THEIRS, Cells, Content, at_each, claim, ours_row, theirs_row
from queryveil.progress import step
from queryveil.text.classifier import Classifier

TIMED_ROWS = 200_000
BATCH = 10_000
N_TIMES = 5
K = 10
COUNTING = ("rebuild_2", "rebuild_4")  # the attackers that count how often a user waits
# Our limits for memory that does not grow, and for what else the paper says without a figure.
FLAT, MUCH, AFFECTED = 1.5, 0.25, 1.5
GOOGLE = 40_000  # queries a second that the paper gives for Google
# Paper: table 2, in microseconds.
THEIR_TIMES: dict[str, tuple[float, float, int, int]] = {
    "classifier": (1503, 24.0, 665, 60),
    "anonymizer": (22, 0.35, 45_454, 1),
    "profiler": (267, 4.73, 3745, 11),
}
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
_PEAK = re.compile(r"^VmHWM:\s+(\d+) kB$", re.MULTILINE)

SECONDS_NOTE = (
    "times are processor time of this machine, of all threads together, so other work on it hardly counts; they differ "
    "from run to run"
)


def classify(rows: pl.DataFrame, *, classifier: Classifier | None = None) -> None:
    """Remove identifiers and find categories, batch by batch."""
    classifier = classifier or Classifier()
    for batch in rows.iter_slices(BATCH):
        prepare(batch, classifier=classifier)


def anonymize(rows: pl.DataFrame, *, k: int = K, seed: int = 0) -> Iterator[pl.DataFrame]:
    """Swap rows, batch by batch, and return what each batch sets free."""
    pools = Pools(PoolSettings(k=k, repeats="all", shrink=False), seed=seed)
    for batch in rows.iter_slices(BATCH):
        yield pools.add(batch).released


def count(rows: pl.DataFrame) -> None:
    for batch in rows.iter_slices(BATCH):
        increments(batch)


def microseconds(
    name: str, work: Callable[[int], object], *, n_rows: int, turns: Iterable[int] = range(N_TIMES)
) -> list[float]:
    """Return the processor time per row of each turn."""
    found = []
    for i, turn in enumerate(turns):
        step(name, i / N_TIMES)
        start = process_time()
        work(turn)
        found.append(1e6 * (process_time() - start) / max(1, n_rows))
    return found


class Peak(NamedTuple):
    """KiB: the most the process had, and how much of that came on top of the rows and the libraries."""

    process: int
    part: int


def measure_memory(part: str, rows: pl.DataFrame) -> Peak:
    """Run a part on rows in a fresh process and return its peak."""
    # Privacy: rows go through a pipe, so that none of them touch a disk.
    data = io.BytesIO()
    rows.write_ipc(data)
    command = [sys.executable, "-m", "queryveil.papers._swap_costs", part]
    done = subprocess.run(command, input=data.getvalue(), capture_output=True, check=False)
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


def attack(rows: pl.DataFrame, *, number: int) -> None:
    """Guess with one of the paper's de-anonymizers whose the rows were."""
    encoded = EncodedLog.of(QueryLog(frame=rows.select("user", "query")), category=rows["category"].to_numpy())
    ATTACKERS[number - 1](k=K, seed=0).guess(encoded)


PARTS: dict[str, Callable[[pl.DataFrame], object]] = {
    "classifier": classify,
    # Nothing of what is released is kept: it is no part of the anonymizer.
    "anonymizer": lambda rows: sum(released.height for released in anonymize(rows)),
    "profiler": count,
    **{f"de-anonymizer {number}": partial(attack, number=number) for number in (1, 2, 3, 4)},
}


def main() -> None:
    """Read rows, run the part that was asked for, and write what it took."""
    rows = pl.read_ipc(io.BytesIO(sys.stdin.buffer.read()))
    # The first compiled function brings the compiler in, which all parts would be charged with.
    sort_in_place(np.zeros(2, np.int64))
    before = peak()
    PARTS[sys.argv[1]](rows)
    after = peak()
    sys.stdout.write(f"{after} {after - before}\n")


@driver.table
def table2(runs: Runs) -> Content:
    """Pàmies-Estrems et al., table 2: runtime cost."""
    times = _times_of_parts(runs)
    chain = sum(fmean(each) for each in times.values())
    theirs = sum(each[0] for each in THEIR_TIMES.values())

    def row(name: str, whose: str, mean: float, spread: float | None) -> Cells:
        sd = None if spread is None else round(spread, 3)
        return (name, whose, round(mean, 3), sd, int(1e6 / mean), ceil(GOOGLE / (1e6 / mean)))

    return Content(
        columns=("part", "whose", "microseconds a query", "sd", "queries a second", f"threads for {GOOGLE:,} a second"),
        rows=(
            *((name, THEIRS, *figures) for name, figures in THEIR_TIMES.items()),
            row("all three", THEIRS, theirs, None),
            *(row(name, OURS, fmean(each), stdev(each)) for name, each in times.items()),
            row("all three", OURS, chain, None),
        ),
        notes=(
            f"up to {TIMED_ROWS:,} rows in batches of {BATCH:,}; {SECONDS_NOTE}",
            f"classifier and profiler: mean and standard deviation over {N_TIMES} runs; anonymizer: over k = "
            + ", ".join(map(str, KS))
            + ", with l=k",
            "classifier: identifiers removed and the category found, as in the paper; profiler: the counts that a "
            "store adds up, without the store (theirs: MongoDB on a disk)",
            "all three, theirs: the sum of the paper's three, which it does not give itself",
            claim("one thread of the anonymizer is enough for Google", holds=1e6 / fmean(times["anonymizer"]) >= GOOGLE)
            + f"{1e6 / fmean(times['anonymizer']):,.0f} queries a second",
            claim(
                "the classifier is the slowest", holds=max(times, key=lambda name: fmean(times[name])) == "classifier"
            )
            + f"{fmean(times['classifier']) / chain:.0%} of the time",
        ),
    )


def _times_of_parts(runs: Runs) -> dict[str, list[float]]:
    """Return the microseconds a row of each part in each turn."""
    raw = runs.log.frame.select("user", "query").head(TIMED_ROWS)
    events = runs.events[runs.order].head(TIMED_ROWS)
    classifier = Classifier()
    # The first batch also compiles, which no later one does.
    prepare(raw.head(BATCH), classifier=classifier)
    for first in anonymize(events.head(BATCH)):
        increments(first)
    released: list[pl.DataFrame] = []

    def anonymized(k: int) -> None:
        released[:] = anonymize(events, k=k, seed=runs.seed)

    times = {
        "classifier": microseconds("classifier", lambda _: classify(raw, classifier=classifier), n_rows=raw.height),
        "anonymizer": microseconds("anonymizer", anonymized, n_rows=events.height, turns=KS),
    }
    rows = pl.concat(released)
    return times | {"profiler": microseconds("profiler", lambda _: count(rows), n_rows=rows.height)}


@driver.table
def table3(runs: Runs) -> Content:
    """Pàmies-Estrems et al., table 3: memory in KiB."""
    events = runs.events[runs.order].head(TIMED_ROWS)
    pooled = runs.pooled(Run(k=K, l=K, order=runs.order))
    released = pooled.released.frame.with_columns(pooled.category).head(TIMED_ROWS)
    whole, half = {}, {}
    for i, name in enumerate(PARTS):
        step(name, i / len(PARTS))
        rows = released if name.startswith(("profiler", "de-")) else events
        whole[name], half[name] = measure_memory(name, rows), measure_memory(name, rows.head(rows.height // 2))
    most = max(whole[name].part / max(1, half[name].part) for name in ("classifier", "anonymizer", "profiler"))
    return Content(
        columns=("part", "whose", "peak of the process", "sd", "of it the part", "the part on half the rows"),
        rows=(
            *((name, THEIRS, *figures, None, None) for name, figures in THEIR_PEAKS.items()),
            *((name, OURS, each.process, None, each.part, half[name].part) for name, each in whole.items()),
        ),
        notes=(
            f"each part runs in a process of its own on up to {TIMED_ROWS:,} rows, k={K}, in batches of {BATCH:,} (the "
            "de-anonymizers at once); its peak is the largest resident memory that the system saw",
            "before the part begins the process holds Python, its libraries, Numba's compiler and all rows; the part "
            "is what the peak rises by, its tables and compiled code included; it differs from run to run",
            "theirs: a plain Python process that reads a file row by row",
            claim(
                "classifier, anonymizer and profiler take no more memory, whatever the number of rows",
                holds=most < FLAT,
            )
            + f"up to {most:.2f} times as much for twice the rows; {FLAT} is our limit",
        ),
    )


@driver.table
def fig4(runs: Runs) -> Content:
    """Pàmies-Estrems et al., figure 4: time of the anonymizer against the growth of k (1 at 1.2), l=2."""
    middle = GROWTHS.index(GROWTH)
    seconds = {(k, order): _seconds(runs, k=k, order=order) for order in runs.events for k in KS}
    ratios = {each: [took / times[middle] for took in times] for each, times in seconds.items()}
    n_rows = min(runs.events[runs.order].height, TIMED_ROWS)
    apart = {
        order: max(abs(ratio - 1) for (_, each), row in ratios.items() if each is order for ratio in row)
        for order in runs.events
    }
    return Content(
        columns=("k", "order", "whose", *AT_GROWTHS, "microseconds a row, growth=1.2"),
        rows=(
            *(theirs_row(k, None, n=len(GROWTHS) + 1) for k in KS),
            *(
                ours_row(*each, figures=(*ratios[each], 1e6 * times[middle] / n_rows), digits=2)
                for each, times in seconds.items()
            ),
        ),
        notes=(
            f"{ORDER_NOTE}; there whole pools of one user are common, so k grows",
            f"{SECONDS_NOTE}; each is the least of {N_TIMES} runs of the pools alone, on up to {TIMED_ROWS:,} rows",
            DRAWN_NOTE,
            *(
                claim(f"the growth does not affect the running time (order {order})", holds=most <= MUCH)
                + f"up to {most:.0%} more or less than at {GROWTH}; {MUCH:.0%} is our limit"
                for order, most in apart.items()
            ),
        ),
    )


def _seconds(runs: Runs, *, k: int, order: Order) -> list[float]:
    # Turns are taken, so that a machine that is busy for a while slows all of them.
    found: list[list[float]] = [[] for _ in GROWTHS]
    for turn in range(N_TIMES):
        step(f"k={k}, order {order}", turn / N_TIMES)
        for growth, times in zip(GROWTHS, found, strict=True):
            times.append(runs.pooled(Run(k=k, l=2, growth=growth, order=order), at_most=TIMED_ROWS).seconds)
    return [min(times) for times in found]


@driver.table
def fig8(runs: Runs) -> Content:
    """Pàmies-Estrems et al., figure 8: microseconds a row of the de-anonymizers."""
    times: dict[str, list[float]] = {}
    for k in KS:
        pooled = runs.pooled(Run(k=k, l=2, order=runs.order))
        log = pooled.released.with_frame(pooled.released.frame.head(TIMED_ROWS))
        encoded = EncodedLog.of(log, category=pooled.category.head(TIMED_ROWS).to_numpy())
        for attacker in (each(k=k, seed=runs.seed) for each in ATTACKERS):
            attacker.guess(encoded)
            turns = microseconds(f"k={k}", lambda _: attacker.guess(encoded), n_rows=encoded.n_rows)  # noqa: B023
            times.setdefault(attacker.name, []).append(min(turns))
    growth = {name: row[-1] / row[0] for name, row in times.items()}
    at_last = {name: row[-1] for name, row in times.items()}
    return Content(
        columns=("attacker", "whose", *AT_KS),
        rows=(
            *(theirs_row(name, n=len(KS)) for name in times),
            *(ours_row(name, figures=row, digits=3) for name, row in times.items()),
        ),
        notes=(
            f"the first {TIMED_ROWS:,} rows of a release with l=2 at most, classified before; {SECONDS_NOTE}; each is "
            f"the least of {N_TIMES}",
            "ours count with two tables, so that a user's rows are never searched for; theirs is Python 2.7 on a "
            "1.8 GHz notebook",
            DRAWN_NOTE,
            claim(
                "those that count how often a user is in a pool are the slowest", holds=_counting_stand_above(at_last)
            )
            + at_each(at_last, at_last.values(), digits=3)
            + f" at {AT_KS[-1]}",
            claim("these are also more affected when k grows", holds=_counting_stand_above(growth))
            + at_each(growth, growth.values(), digits=2)
            + f" times from {AT_KS[0]} to {AT_KS[-1]}",
            claim("the one that goes by the rows so far is affected too", holds=growth["rebuild_3"] > AFFECTED)
            + f"{growth['rebuild_3']:.2f} times; {AFFECTED} is our limit",
        ),
    )


def _counting_stand_above(figures: dict[str, float]) -> bool:
    """Return whether all attackers that count have more than any that does not."""
    others = [figure for name, figure in figures.items() if name not in COUNTING]
    return min(figures[name] for name in COUNTING) > max(others)


if __name__ == "__main__":
    main()
