"""km on Spark beside km on one machine: time and work, and how many bytes are shuffled as the log doubles.

    python -m benchmarks.spark [--users N,N,..] [--master URL]

The executors are processes of their own. Both engines read the same Parquet file and write a release; each has run once
before on a small log, so that nothing is compiled or started inside the times. *Work* is the processor time of all
processes. What is shuffled is what Spark's event log says was written for shuffles.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from queryveil import Km, progress, read_log, synth, verify
from queryveil.cli.output import print_table
from queryveil.spark import Spark, start_spark

SEED = 1
METHOD = Km(k=10, m=3)
MASTER = "local-cluster[2,1,2048]"


def start(master: str, events: Path) -> Spark:
    """Start Spark with a log of its events."""
    settings = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": events.as_uri(),
        "spark.executor.memory": "2g",
    }
    given = " ".join(f"--conf {name}={value}" for name, value in settings.items())
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"{given} pyspark-shell"
    return start_spark(master)


def shuffled(events: Path) -> int:
    """Add up the bytes that were written for shuffles so far."""
    return sum(
        event["Task Metrics"]["Shuffle Write Metrics"]["Shuffle Bytes Written"]
        for file in events.rglob("*")
        if file.is_file() and not file.name.startswith(".")
        for event in _events(file)
        if event.get("Event") == "SparkListenerTaskEnd" and event.get("Task Metrics")
    )


def _events(file: Path) -> Iterator[dict[str, Any]]:
    with file.open() as lines:
        for line in lines:
            if line.startswith("{") and line.endswith("}\n"):
                yield json.loads(line)


def work_of_all() -> float:
    """Return the processor time of this process and of all that it has started, also of those that still run."""
    mine = resource.getrusage(resource.RUSAGE_SELF)
    total = mine.ru_utime + mine.ru_stime
    ticks = os.sysconf("SC_CLK_TCK")
    for process in _descendants(os.getpid()):
        try:
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += sum(int(fields[place]) for place in (11, 12, 13, 14)) / ticks
    return total


def _descendants(pid: int) -> Iterator[int]:
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = task.read_text().split()
        except OSError:
            continue
        for child in children:
            yield int(child)
            yield from _descendants(int(child))


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Return how long it took, and how much work it was."""
    begin, before = time.monotonic(), work_of_all()
    work()
    return time.monotonic() - begin, work_of_all() - before


def main(arguments: Sequence[str] | None = None) -> None:
    """Compare on logs that double."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--users", default="50000,100000,200000,400000")
    parser.add_argument("--master", default=MASTER)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as scratch:
        folder, events = Path(scratch), Path(scratch) / "events"
        events.mkdir()
        spark = start(given.master, events)
        compare(spark, 5000, folder=folder, events=events)
        sizes = [int(float(n)) for n in given.users.split(",")]
        rows = [compare(spark, users, folder=folder, events=events) for users in sizes]
        spark.session.stop()
    header = (
        "users",
        "rows",
        "here s",
        "work s",
        "Spark s",
        "work s",
        "ratio",
        "rounds",
        "shuffled MB",
        "MB a million",
    )
    title = f"km k={METHOD.k} m={METHOD.m} on {given.master} and on one machine"
    print_table((*header, "verify here s", "verify Spark s"), rows, title=title)


def compare(spark: Spark, users: int, *, folder: Path, events: Path) -> tuple[object, ...]:
    """Run both on one log, and give a row of the table."""
    path = folder / f"{users}.parquet"
    synth(users=users, seed=SEED).log.frame.write_parquet(path)
    here, there = folder / f"here-{users}", folder / f"there-{users}"
    local = timed(lambda: METHOD.anonymize(read_log(path)).save(here))
    steps: list[str] = []
    before = shuffled(events)

    def on_spark() -> None:
        with progress.watch(lambda name, _: steps.append(name)):
            spark.anonymize(METHOD, spark.read_log(str(path)), str(there))

    cluster = timed(on_spark)
    n_bytes = shuffled(events) - before
    n_rows = read_log(path).n_rows
    verdicts = [timed(lambda: _assert_holds(verify(there))), timed(lambda: _assert_holds(spark.verify(str(there))))]
    return (
        users,
        n_rows,
        f"{local[0]:.1f}",
        f"{local[1]:.1f}",
        f"{cluster[0]:.1f}",
        f"{cluster[1]:.1f}",
        f"{cluster[1] / local[1]:.1f}",
        sum(step.startswith("counting, round") for step in steps),
        f"{n_bytes / 1e6:.1f}",
        f"{n_bytes / n_rows:.1f}",
        *(f"{seconds:.1f}" for seconds, _ in verdicts),
    )


def _assert_holds(verdict: object) -> None:
    assert getattr(verdict, "holds", False)


if __name__ == "__main__":
    main()
