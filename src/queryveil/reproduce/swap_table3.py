"""Pàmies-Estrems et al., table 3: what the parts take in memory."""

from __future__ import annotations

from queryveil.progress import step
from queryveil.reproduce.swap_material import Order
from queryveil.reproduce.swap_memory import BATCH, PARTS, K, Peak, measure
from queryveil.reproduce.swap_runs import TIMED_ROWS, Run, Runs
from queryveil.reproduce.table import OURS, THEIRS, Table, claim

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


def build(runs: Runs) -> Table:
    """Give the peak of a process that runs one part, on all rows and on half of them."""
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
