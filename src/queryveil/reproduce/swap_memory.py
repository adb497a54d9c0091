"""One part of the chain in a process of its own, to see how much memory it takes.

`python -m queryveil.reproduce.swap_memory PART`: rows come in as Arrow on stdin, two numbers of KiB go out.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from queryveil.attack import Rebuild1, Rebuild2, Rebuild3, Rebuild4, Seen
from queryveil.errors import BadInput
from queryveil.kernels.sorting import sort_in_place
from queryveil.log import QueryLog
from queryveil.stream.pools import Pools, PoolSettings
from queryveil.stream.preparing import prepare
from queryveil.stream.profiler import increments
from queryveil.text.classifier import Classifier

BATCH = 10_000
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
        [sys.executable, "-m", "queryveil.reproduce.swap_memory", part], input=data.getvalue(), capture_output=True,
        check=False,
    )  # fmt: skip
    if done.returncode:
        # Privacy: what the process said may quote rows, so it is dropped.
        raise BadInput(f"the process that measures the memory of the {part} ended with {done.returncode}; run it again")
    process, part_own = done.stdout.split()
    return Peak(int(process), int(part_own))


def peak() -> int:
    """Give the most memory that this process ever had, in KiB."""
    status = Path("/proc/self/status")
    found = _PEAK.search(status.read_text(encoding="ascii", errors="replace")) if status.exists() else None
    if found:
        return int(found.group(1))
    # Not on every system, hence here.
    import resource  # noqa: PLC0415

    # It counts bytes on macOS.
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most // 1024 if sys.platform == "darwin" else most


def _classifier(rows: pl.DataFrame) -> None:
    classifier = Classifier()
    for batch in rows.iter_slices(BATCH):
        prepare(batch, classifier=classifier)


def _anonymizer(rows: pl.DataFrame) -> None:
    pools = Pools(PoolSettings(k=K), seed=0)
    for batch in rows.iter_slices(BATCH):
        pools.add(batch)


def _profiler(rows: pl.DataFrame) -> None:
    for batch in rows.iter_slices(BATCH):
        increments(batch)


def _attacker(attacker: Rebuild1 | Rebuild2 | Rebuild3 | Rebuild4) -> Callable[[pl.DataFrame], None]:
    def work(rows: pl.DataFrame) -> None:
        seen = Seen.of(QueryLog(frame=rows.select("user", "query")), category=rows["category"].to_numpy())
        attacker.guess(seen)

    return work


PARTS: dict[str, Callable[[pl.DataFrame], None]] = {
    "classifier": _classifier,
    "anonymizer": _anonymizer,
    "profiler": _profiler,
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
