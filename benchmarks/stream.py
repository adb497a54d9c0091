"""The live anonymizer on one core, step by step and whole: microseconds of work an event, and events a second.

    python -m benchmarks.stream [--users N] [--file LOG] [--workers N] [--rounds N]

As table 2 of the paper (Pamies-Estrems et al.), and end to end: a file of AOL's columns and one of JSON lines go
through the service into a file, with the state in SQLite. The floor reads the same lines and writes them again. Work is
what keeps a core busy; the clock also has the waiting for the disk, and whatever else the machine does.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.stream_steps import IN_PAPER, WHOLE, Steps, settings_for
from queryveil.cli.output import print_table
from queryveil.data import QueryLog
from queryveil.formats import layout_for, write_log
from queryveil.service.connectors.file_sinks import FileSink
from queryveil.service.connectors.file_sources import FilesSource
from queryveil.service.pipeline.service import Service
from queryveil.service.ports import Batch, Outgoing
from queryveil.service.stores.sqlite import SqliteStore
from queryveil.synthesis import synthesize

MIB = 1 << 20
ALL_CORES = os.sched_getaffinity(0)
ONE_CORE = {max(ALL_CORES)}
ONE_THREAD = {"POLARS_MAX_THREADS": "1", "NUMBA_NUM_THREADS": "1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
    """Seconds of work of this process, and seconds by the clock."""

    work: float
    clock: float

    def cells(self, n: int) -> tuple[str, str, str]:
        return f"{self.work / n * 1e6:.2f}", f"{self.clock / n * 1e6:.2f}", f"{n / self.work:,.0f}"


def best(run: Callable[[], object], *, rounds: int) -> Took:
    """Run several times; the least of each counts."""
    found = []
    for _ in range(rounds):
        clock, work = time.perf_counter(), time.process_time()
        run()
        found.append((time.process_time() - work, time.perf_counter() - clock))
    return Took(work=min(work for work, _ in found), clock=min(clock for _, clock in found))


def read_and_write(source: Path, folder: Path) -> None:
    """Do nothing with the lines but what source and sink do."""
    lines, sink = FilesSource(source), FileSink(folder / "floor")
    lines.open(position=None, keys=())
    sink.open(delivered=0, n_bytes=0)
    number = n_bytes = 0
    while (batch := lines.take(timeout=1)) is not None:
        number += 1
        sink.deliver(Outgoing(number=number, offset=n_bytes, data=batch.data, n_rows=batch.data.count(b"\n")))
        n_bytes += len(batch.data)
    sink.close()
    (folder / "floor").unlink()


class Watched(FilesSource):
    """A file that notes when each of its batches is committed."""

    def __init__(self, source: Path, *, batch_bytes: int) -> None:
        super().__init__(source, batch_bytes=batch_bytes)
        self.committed: list[tuple[float, int]] = []

    def acknowledge(self, batch: Batch, *, bad_lines: Sequence[int]) -> None:
        assert not bad_lines
        self.committed.append((time.perf_counter(), batch.data.count(b"\n")))

    def a_second(self) -> float:
        """Return events a second behind the first batch, when everything is loaded and every process started."""
        (first, _), *_, (last, _) = self.committed
        return sum(n for _, n in self.committed[1:]) / (last - first)


def serve(source: Path, folder: Path, *, workers: int = 1, batch_bytes: int = MIB) -> Watched:
    """Run the whole service over a file, from a first start to its end."""
    sink, state = folder / "released", folder / "state.db"
    for path in (sink, *folder.glob(f"{state.name}*")):
        path.unlink(missing_ok=True)
    watched = Watched(source, batch_bytes=batch_bytes)
    settings = settings_for(source, workers=workers)
    stats = Service(settings, source=watched, sink=FileSink(sink), store=SqliteStore(state)).run()
    assert stats.n_released > 0.9 * (stats.n_read - stats.n_empty - stats.n_emptied)
    return watched


def made_up(users: int, folder: Path) -> list[Path]:
    """Make up a log of AOL's shape, in the order of its times, in both formats."""
    log = synthesize(users=users, like="aol", seed=0).log
    log = QueryLog(frame=log.frame.sort("time"), layout=log.layout)
    paths = [folder / "searches.tsv", folder / "searches.jsonl"]
    for path in paths:
        write_log(log, path, layout=layout_for(path))
    return paths


def by_step(source: Path, folder: Path, *, rounds: int) -> int:
    """Show each step alone, the whole, and the floor; give the number of events."""
    serve(source, folder)
    steps = Steps(source, folder)
    n = steps.n_events
    candidates: dict[str, Callable[[], object]] = {
        **steps.in_order(),
        WHOLE: lambda: serve(source, folder),
        "floor: lines read and written": lambda: read_and_write(source, folder),
    }
    rows = [(name, *best(run, rounds=rounds).cells(n), IN_PAPER.get(name, "")) for name, run in candidates.items()]
    titles = ["", "µs of work", "µs by the clock", "events per second of work", "µs in the paper"]
    print_table(titles, rows, title=f"{source.suffix[1:]}: {n:,} events, batches of 1 MiB, k=10, one core")
    print()
    return n


def by_batch(source: Path, folder: Path, *, n: int, rounds: int) -> None:
    """Show the whole with smaller batches, each of which is a commit."""
    rows = []
    for size in (MIB // 16, MIB // 4, MIB):
        took = best(lambda size=size: serve(source, folder, batch_bytes=size), rounds=rounds)  # type: ignore[misc]
        n_batches = -(-source.stat().st_size // size)
        rows.append((f"{size // 1024} KiB", f"{n // n_batches:,}", *took.cells(n)))
    titles = ["batches of", "about events", "µs of work", "µs by the clock", "events per second of work"]
    print_table(titles, rows, title=f"{source.suffix[1:]}: the whole by size of batch, one core")
    print()


def by_workers(source: Path, folder: Path, *, counts: Sequence[int], rounds: int) -> None:
    """Show the whole with processes that parse and prepare, on all cores."""
    os.sched_setaffinity(0, ALL_CORES)
    rows = []
    for workers in counts:
        runs = [serve(source, folder, workers=workers) for _ in range(rounds)]
        rows.append((workers, f"{max(run.a_second() for run in runs):,.0f}"))
    title = f"{source.suffix[1:]}: the whole on {len(ALL_CORES)} cores, once started"
    print_table(["workers", "events a second by the clock"], rows, title=title)
    print()
    os.sched_setaffinity(0, ONE_CORE)


def main() -> None:
    if not ONE_THREAD.items() <= os.environ.items():
        # Polars counts its threads when it is loaded, so begin again.
        os.execve(sys.executable, [sys.executable, "-m", "benchmarks.stream", *sys.argv[1:]], os.environ | ONE_THREAD)
    os.sched_setaffinity(0, ONE_CORE)
    parser = argparse.ArgumentParser()
    parser.add_argument("--users", type=int, default=4_000, help="of the made-up log, about 55 events each")
    parser.add_argument("--file", type=Path, help="a log of your own instead")
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=2)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for source in [given.file] if given.file else made_up(given.users, folder):
            n = by_step(source, folder, rounds=given.rounds)
            by_batch(source, folder, n=n, rounds=given.rounds)
            by_workers(source, folder, counts=given.workers, rounds=given.rounds)


if __name__ == "__main__":
    main()
