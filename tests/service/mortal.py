"""A service that is killed again and again, and then runs to its end; run as a script.

mortal.py FOLDER LOG DEATH... [-- FOLDER LOG DEATH...]...: each DEATH is one process that dies by SIGKILL, either
`MOMENT@N`, at the Nth time of that moment, or `SECONDS` after it began to read. A last process runs to the end and
writes FOLDER/stats.json. A line says how the processes of one FOLDER ended.
"""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

import msgspec
from numba.core.registry import cpu_target
from tests.support.streams import keyed_settings, small_tables

from queryveil.service.connectors.file_sinks import ReleaseSink
from queryveil.service.connectors.file_sources import FilesSource
from queryveil.service.pipeline.service import Service
from queryveil.service.ports import Commit, Outgoing
from queryveil.service.stores.sqlite import SqliteStore

_BATCH_BYTES = 1500


class Death:
    """Kills this process at a moment, the Nth time it comes."""

    def __init__(self, text: str) -> None:
        self.moment, _, times = text.partition("@")
        self.n_left = int(times or 0)

    def at(self, moment: str) -> None:
        """Die, if this is the moment."""
        if moment == self.moment:
            self.n_left -= 1
            if not self.n_left:
                os.kill(os.getpid(), signal.SIGKILL)


class MortalStore(SqliteStore):
    """A store around whose commits a process may die."""

    death = Death("")

    def commit(self, commit: Commit) -> None:
        self.death.at("before commit")
        super().commit(commit)
        self.death.at("after commit")


class MortalSink(ReleaseSink):
    """A sink around and in whose deliveries a process may die."""

    death = Death("")

    def deliver(self, outgoing: Outgoing) -> None:
        self.death.at("before delivery")
        if self.death.moment == "in delivery" and self.death.n_left == 1:
            half = Outgoing(
                number=outgoing.number,
                offset=outgoing.offset,
                data=outgoing.data[: len(outgoing.data) // 2],
                n_rows=0,
            )
            super().deliver(half)
        self.death.at("in delivery")
        super().deliver(outgoing)
        self.death.at("after delivery")


class ReadySource(FilesSource):
    """A source that closes a descriptor once it is open, as sink and store are by then."""

    ready = -1

    def open(self, *, position: str | None, keys: Sequence[str]) -> None:
        super().open(position=position, keys=keys)
        os.close(self.ready)


def live(folder: Path, log: Path, *, death: str, ready: int) -> None:
    """Run the service in this process."""
    store, sink = MortalStore(folder / "state.db"), MortalSink(folder / "release")
    store.death = sink.death = Death(death)
    source = ReadySource(log, batch_bytes=_BATCH_BYTES)
    source.ready = ready
    stats = Service(keyed_settings(tables=small_tables(folder)), source=source, sink=sink, store=store).run()
    (folder / "stats.json").write_bytes(msgspec.json.encode(stats))


def one_life(folder: Path, log: Path, death: str) -> int:
    """Run the service in a process of its own; give how it ended, negative for a signal."""
    # Nothing heavy has run in this process yet, so there are no threads that a fork would lose. What Numba imports
    # before its first kernel starts none, and each life finds it here.
    cpu_target.target_context.refresh()
    begun, ready = os.pipe()
    child = os.fork()
    if not child:
        os.close(begun)
        try:
            live(folder, log, death=death if "@" in death else "", ready=ready)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    os.close(ready)
    os.read(begun, 1)
    os.close(begun)
    if death and "@" not in death:
        time.sleep(float(death))
        os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    words = iter(sys.argv[1:])
    while run := list(iter(lambda: next(words, "--"), "--")):
        place, original, *deaths = run
        codes = [one_life(Path(place), Path(original), death) for death in (*deaths, "")]
        sys.stdout.write(" ".join(map(str, codes)) + "\n")
        sys.stdout.flush()
