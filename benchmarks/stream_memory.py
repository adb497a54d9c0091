"""Memory of the live anonymizer does not grow with the stream: resident memory, a million events after the other.

    python -m benchmarks.stream_memory [--events N] [--users N] [--remembered N]

Events are made up on the way: few of up to two million users ask most, and most queries are new. They go through the
service with its state in SQLite, to a sink that counts. The memory of pairs is small by default, so that its
generations change many times. Profiles grow with the users, on disk; in memory, SQLite's cache fills up to its limit of
64 MB, and changes wait for their place in the profiles, the more of them the more users there are, up to a limit.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from queryveil.cli.output import print_table
from queryveil.release import ColumnPolicy, Ids
from queryveil.service.pipeline.service import Service
from queryveil.service.ports import Batch, Outgoing, Sink, Source
from queryveil.service.settings import StreamSettings
from queryveil.service.stores.sqlite import SqliteStore
from queryveil.synthesis import synthesize

MILLION = 1_000_000
SETTLED = 2 * MILLION
"""From here on growth counts: tables are read, kernels loaded, pools full and both generations of pairs there."""
BATCH = 20_000


def resident() -> tuple[float, float]:
    """Return resident memory in megabytes: all, and that part which no file is behind."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    all_of_it, own = (int(status[name].split()[0]) / 1024 for name in ("VmRSS", "RssAnon"))
    return all_of_it, own


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """How it was after so many events."""

    n_events: int
    seconds: float
    work: float
    resident: float
    own: float
    on_disk: float


class MadeUp(Source):
    """A source that makes up its lines when they are taken, and looks at the process after every million."""

    def __init__(self, n_events: int, *, n_users: int, state: Path) -> None:
        self._n_events, self._n_users, self._state = n_events, n_users, state
        self._rng = np.random.default_rng(0)
        self._texts = synthesize(users=2_000, like="aol", seed=0).log.frame["query"].unique()
        self._texts = self._texts.filter(self._texts.str.contains("[a-z]")).sort()
        self._started, self._worked = time.perf_counter(), time.process_time()
        self.n_given = 0
        self.seen: list[Seen] = []

    def open(self, *, position: str | None, keys: Sequence[str]) -> None:
        assert position is None
        assert not keys

    def take(self, *, timeout: float) -> Batch | None:  # noqa: ARG002 - part of the port
        if self.n_given // MILLION > len(self.seen):
            self.look()
        if self.is_finished:
            return None
        header = b"" if self.n_given else b"user\tquery\n"
        self.n_given += BATCH
        return Batch(data=header + self._lines(BATCH), position=str(self.n_given))

    def _lines(self, n: int) -> bytes:
        user = np.exp(self._rng.random(n) * np.log(self._n_users)).astype(np.int64)
        one, other = (self._texts.gather(self._rng.integers(0, len(self._texts), n)) for _ in range(2))
        lines = pl.DataFrame({"user": user, "one": one, "other": other})
        return lines.select(pl.format("u{}\t{} {}\n", "user", "one", "other").str.join("")).item().encode()  # type: ignore[no-any-return]

    @property
    def is_finished(self) -> bool:
        return self.n_given >= self._n_events

    def acknowledge(self, batch: Batch, *, bad_lines: Sequence[int]) -> None:  # noqa: ARG002 - part of the port
        assert not bad_lines

    def close(self) -> None:
        pass

    def look(self) -> None:
        all_of_it, own = resident()
        now = Seen(
            n_events=self.n_given,
            seconds=time.perf_counter() - self._started,
            work=time.process_time() - self._worked,
            resident=all_of_it,
            own=own,
            on_disk=self._state.stat().st_size / 1e6,
        )
        self.seen.append(now)


class Counting(Sink):
    """A sink that keeps nothing."""

    def __init__(self) -> None:
        self.n_rows = 0

    def open(self, *, delivered: int, n_bytes: int) -> None:
        assert delivered == n_bytes == 0

    def deliver(self, outgoing: Outgoing) -> None:
        self.n_rows += outgoing.n_rows

    def close(self) -> None:
        pass


def run(n_events: int, *, n_users: int, remembered: int) -> None:
    columns = ColumnPolicy(ids=Ids.KEYED, key=b"k" * 32)
    settings = StreamSettings(columns=columns, remembered=remembered, format="tsv", is_finite=True)
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder) / "state.db"
        source, sink = MadeUp(n_events, n_users=n_users, state=state), Counting()
        stats = Service(settings, source=source, sink=sink, store=SqliteStore(state)).run()
    assert stats.n_read == source.n_given
    assert stats.n_released == sink.n_rows > 0.9 * stats.n_read
    show(source.seen, remembered=remembered)


def show(seen: Sequence[Seen], *, remembered: int) -> None:
    titles = ["events", "resident MB", "of it no file", "state MB on disk", "µs of work", "µs by the clock"]
    rows, before = [], Seen(n_events=0, seconds=0, work=0, resident=0, own=0, on_disk=0)
    for now in seen:
        n = now.n_events - before.n_events
        each = [f"{took / n * 1e6:.2f}" for took in (now.work - before.work, now.seconds - before.seconds)]
        rows.append((now.n_events, f"{now.resident:.0f}", f"{now.own:.0f}", f"{now.on_disk:.0f}", *each))
        before = now
    print_table(titles, rows, title=f"{remembered:,} pairs a generation; the making up of events included")
    settled = [now.resident for now in seen if now.n_events >= SETTLED]
    if settled:
        last, most = settled[-1] - settled[0], max(settled) - settled[0]
        print(f"growth after {SETTLED:,} events: {last:+.0f} MB, at most {most:+.0f} MB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--events", type=int, default=20 * MILLION)
    parser.add_argument("--users", type=int, default=2 * MILLION)
    parser.add_argument("--remembered", type=int, default=MILLION)
    given = parser.parse_args()
    run(given.events, n_users=given.users, remembered=given.remembered)
