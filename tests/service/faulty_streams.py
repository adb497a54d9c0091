"""Streams to files, with their state in SQLite, on a failing disk; run as a script where `disk_faults.so` is loaded.

faulty_streams.py HOME commits|service: prints a line for each fault after which something is wrong. `commits` are made
up and go to a store and a file; `service` is the whole service, from a log to a release folder.
"""

from __future__ import annotations

import sys
from pathlib import Path

from numba.core.registry import cpu_target
from tests.support.commits import SETTINGS, check_profiles, check_saved, numbered_commit
from tests.support.disk_faults import NO_MEMORY, Ended, Trial
from tests.support.streams import adds_up, event_lines, keyed_settings, small_tables, write_lines

from queryveil.errors import QueryveilError
from queryveil.release import read_release
from queryveil.service.connectors.file_sinks import FileSink, ReleaseSink
from queryveil.service.connectors.file_sources import FilesSource
from queryveil.service.pipeline.service import Service
from queryveil.service.ports import Stats
from queryveil.service.settings import Tables
from queryveil.service.stores.sqlite import SqliteStore

N_BEFORE, N_FAULTY, N_AFTER = 2, 5, 7
N_LINES = 120


def commit_and_deliver(home: Path, *, last: int) -> None:
    """Go on after the last commit, and hand over what each releases, as the service does."""
    store, sink = SqliteStore(home / "state.db"), FileSink(home / "out.txt")
    try:
        saved = store.open(settings=SETTINGS)
        first = saved.outgoing[0].offset if saved.outgoing else saved.n_bytes_out
        sink.open(delivered=saved.delivered, n_bytes=first)
        for outgoing in saved.outgoing:
            sink.deliver(outgoing)
        for number in range(saved.number + 1, last + 1):
            commit = numbered_commit(number)
            store.commit(commit)
            assert commit.outgoing is not None
            sink.deliver(commit.outgoing)
    finally:
        sink.close()
        store.close()


def check_commits(home: Path, ended: Ended) -> None:
    """Check that whole commits are there, and that the stream goes on with nothing lost and nothing twice."""
    check_error(ended)
    store = SqliteStore(home / "state.db")
    saved = store.open(settings=SETTINGS)
    assert N_BEFORE <= saved.number <= N_FAULTY
    assert ended.code or saved.number == N_FAULTY, "it was said to be committed, and is not"
    check_saved(saved, number=saved.number)
    store.close()
    commit_and_deliver(home, last=N_AFTER)
    released = [numbered_commit(number).outgoing for number in range(1, N_AFTER + 1)]
    assert (home / "out.txt").read_bytes() == b"".join(each.data for each in released if each is not None)
    check_profiles(home / "state.db", number=N_AFTER)


def serve(home: Path, log: Path, *, tables: Tables) -> Stats:
    """Run the service to the end of the log."""
    service = Service(
        keyed_settings(tables=tables, patience=0.05),
        source=FilesSource(log, batch_bytes=1500),
        sink=ReleaseSink(home / "release"),
        store=SqliteStore(home / "state.db"),
    )
    return service.run()


def check_release(home: Path, stats: Stats, ended: Ended) -> None:
    """Check that all that was read is accounted for, and released once."""
    check_error(ended)
    assert adds_up(stats)
    assert (stats.n_read, stats.n_waiting, stats.n_outbox_rows) == (N_LINES, 0, 0)
    queries = read_release(home / "release").log.frame["query"].to_list()
    assert len(queries) == len(set(queries)) == stats.n_released == stats.n_delivered


def check_error(ended: Ended) -> None:
    """Check that a failure is told in a line of ours, which quotes nothing."""
    kind, _, told = ended.told.partition("\n")[0].partition(": ")
    if ended.code == 1 and not ended.lacked_memory:
        assert kind in names_of_errors(), "the error is none of ours"
        assert not any(word in told for word in ("racket", "guitar", "walnut", "member"))


def names_of_errors(root: type[BaseException] = QueryveilError) -> set[str]:
    """Return the names of all our errors, and of those that the service waits for."""
    return {"OSError", root.__name__}.union(*(names_of_errors(each) for each in root.__subclasses__()))


def trial(home: Path, kind: str) -> Trial:
    """Return the trial of a kind."""
    if kind == "commits":
        return Trial(
            home=home,
            prepare=lambda: commit_and_deliver(home, last=N_BEFORE),
            work=lambda: commit_and_deliver(home, last=N_FAULTY),
            check=lambda ended: check_commits(home, ended),
            modes={"kill": 10, "fail once": 6, "fail from then on": 4, "write half": 2, NO_MEMORY: 2},
        )
    beside = home.with_name("beside")
    beside.mkdir()
    tables, log = small_tables(beside), write_lines(beside / "log.tsv", event_lines(N_LINES, seed=3))
    return Trial(
        home=home,
        prepare=lambda: None,
        work=lambda: serve(home, log, tables=tables),
        check=lambda ended: check_release(home, serve(home, log, tables=tables), ended),
        modes={"kill": 4, "fail once": 3, "fail from then on": 2, "write half": 1},
    )


if __name__ == "__main__":
    # What Numba loads before its first kernel; it starts no threads, which a fork would lose.
    cpu_target.target_context.refresh()
    for line in trial(Path(sys.argv[1]), sys.argv[2]).run():
        print(line.replace("\n", " | "), flush=True)
