"""Runs in processes of their own, as many at once as there are jobs."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

import msgspec

from queryveil import progress
from queryveil.comparison.judged import Ground, Judged, judge, name_of
from queryveil.comparison.plan import Run
from queryveil.errors import BadParameter

_THREADS = ("POLARS_MAX_THREADS", "NUMBA_NUM_THREADS")
_PATIENCE_SECONDS = 5
_READY = b"ready"
_DIED = "its process was ended by the system, perhaps for want of memory; try --jobs 1"


class Worker:
    """A process that does one run after another; what it tells are figures, as JSON."""

    def __init__(self, ground: Ground, *, n_threads: int) -> None:
        # A fork of a process that has threads may hang.
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.run: Run | None = None
        self.is_ready = False
        self._process: BaseProcess = context.Process(target=_serve, args=(theirs,), daemon=True)
        with _few_threads(n_threads), _deaf_to_interrupts():
            self._process.start()
        theirs.close()
        # Not as an argument: starting would wait for ever for a process that dies before it has read a long one.
        self._say(ground)

    def begin(self, run: Run | None) -> None:
        """Return it a run to do."""
        self.run = run
        self._say(run)

    def _say(self, what: Ground | Run | None) -> None:
        # To one that has died nothing can be said; it is found out when it is listened to.
        with suppress(OSError):
            self.connection.send(what)

    def could_not_start(self) -> bool:
        """Whether it ended by itself before it said anything."""
        self._process.join(_PATIENCE_SECONDS)
        return not self.is_ready and (self._process.exitcode or 0) > 0

    def end(self) -> None:
        """Stop it, whatever it does."""
        self.connection.close()
        self._process.terminate()
        self._process.join(_PATIENCE_SECONDS)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()


def judge_in_processes(
    runs: Sequence[Run | None], ground: Ground, *, jobs: int, told: Callable[[Judged], None]
) -> None:
    """Do the runs; each result is `told` as soon as it is there. A process that dies costs its own run only."""
    waiting, n_all, n_done = list(runs), len(runs), 0
    n_threads = max(1, (os.cpu_count() or 1) // jobs)
    at_work = [Worker(ground, n_threads=n_threads) for _ in range(min(jobs, n_all))]
    resting: list[Worker] = []
    try:
        for worker in at_work:
            worker.begin(waiting.pop(0))
        while at_work:
            progress.step(_now(at_work, n_done, n_all), n_done / n_all)
            for connection in wait([worker.connection for worker in at_work]):
                worker = next(each for each in at_work if each.connection is connection)
                judged = _heard(worker, ground, jobs=jobs)
                if judged is None:
                    continue
                told(judged)
                n_done += 1
                at_work.remove(worker)
                if judged.failed == _DIED:
                    worker.end()
                    worker = Worker(ground, n_threads=n_threads) if waiting else worker
                if waiting:
                    worker.begin(waiting.pop(0))
                    at_work.append(worker)
                elif judged.failed != _DIED:
                    resting.append(worker)
    finally:
        for worker in (*at_work, *resting):
            worker.end()


def _heard(worker: Worker, ground: Ground, *, jobs: int) -> Judged | None:
    """Take what a worker says: its result, or None if it only says that it is there."""
    try:
        said: bytes = worker.connection.recv()
    except (EOFError, OSError):
        if worker.could_not_start():
            raise BadParameter(
                "jobs", jobs, allowed="1 in a script that does its work outside of `if __name__ == '__main__':`"
            ) from None
        fingerprint = ground.fingerprint_of(worker.run)
        return Judged(run=worker.run, fingerprint=fingerprint, standing="failed", failed=_DIED)
    if said == _READY:
        worker.is_ready = True
        return None
    return msgspec.json.decode(said, type=Judged)


def _now(at_work: Sequence[Worker], n_done: int, n_all: int) -> str:
    return f"{n_done} of {n_all}: {', '.join(name_of(worker.run) for worker in at_work)}"


def _serve(connection: Connection) -> None:
    connection.send(_READY)
    try:
        ground: Ground = connection.recv()
        while True:
            run: Run | None = connection.recv()
            connection.send(msgspec.json.encode(judge(run, ground)))
    except (EOFError, OSError):
        # Whoever asked has gone.
        return


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Let a process that starts in the block ignore Ctrl-C from its first moment on.

    It reaches all processes of a terminal, and the first one ends the others.
    """
    # Python starts this helper with the first process, and lets signals through again when it does.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _few_threads(n: int) -> Iterator[None]:
    """Let a process that starts in the block use n threads: libraries read this when they are loaded."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, str(n)))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
