"""Processes that do runs of a comparison side by side."""

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import copy_context
from math import inf
from multiprocessing import connection, resource_tracker
from typing import Any, Self

import msgspec

from queryveil import progress
from queryveil.comparison.judged import ComparisonInput, Judged, judge, name_of
from queryveil.comparison.plan import Run
from queryveil.errors import BadParameter

_THREADS = ("POLARS_MAX_THREADS", "NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS")
_PATIENCE_SECONDS = 5
_READY = b"ready"
_NO_MORE: Any = object()
_DIED = "its process was ended by the system, perhaps for want of memory; try --jobs 1"


class Worker:
    """A process that does one run after another, and sends the results as JSON."""

    def __init__(self, *, n_threads: int) -> None:
        # A fork of a process that has threads may hang.
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.run: Run | None = None
        self.is_ready = False
        self._inputs: ComparisonInput | None = None
        self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
        with _few_threads(n_threads), _ignore_interrupts():
            self._process.start()
        theirs.close()

    def begin(self, run: Run | None, inputs: ComparisonInput) -> None:
        """Give it a run to do; inputs are sent once."""
        self.run = run
        # Not as an argument: starting would wait for ever for a process that dies before it has read a long one.
        if inputs is not self._inputs:
            self._send(inputs)
            self._inputs = inputs
        self._send(run)

    def _send(self, what: ComparisonInput | Run | None) -> None:
        # That a process has died shows when its result is received.
        with suppress(OSError):
            self.pipe.send(what)

    def could_not_start(self) -> bool:
        """Whether it ended by itself before it sent anything."""
        self._process.join(_PATIENCE_SECONDS)
        return not self.is_ready and (self._process.exitcode or 0) > 0

    def end(self) -> None:
        self.pipe.close()
        self._process.terminate()
        self._process.join(_PATIENCE_SECONDS)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()


class Workers:
    """Processes that do runs side by side; with one job they are done in this process.

    - `jobs`: how many runs at a time.
    """

    def __init__(self, *, jobs: int) -> None:
        self.jobs = jobs
        self._idle: list[Worker] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._idle:
            worker.end()
        self._idle = []

    def judge(
        self,
        runs: Iterable[Run | None],
        inputs: ComparisonInput,
        *,
        on_result: Callable[[Judged], None],
        n_all: int,
        until: float = inf,
    ) -> None:
        """Do runs, each taken when somebody is free to do it; `on_result` is called with each result as it arrives.

        If a process dies, only its run fails.

        - `n_all`: how many there may be, for whoever watches.
        - `until`: when, by the monotonic clock, processes are ended that are still at it; their runs have no result.
        """
        if self.jobs > 1:
            self._judge_there(iter(runs), inputs, on_result=on_result, n_all=n_all, until=until)
        else:
            _judge_here(runs, inputs, on_result, n_all=n_all)

    def _judge_there(
        self,
        waiting: Iterator[Run | None],
        inputs: ComparisonInput,
        *,
        on_result: Callable[[Judged], None],
        n_all: int,
        until: float,
    ) -> None:
        at_work: list[Worker] = []
        n_done = 0
        try:
            while True:
                while len(at_work) < self.jobs:
                    run = next(waiting, _NO_MORE)
                    if run is _NO_MORE:
                        break
                    at_work.append(self._idle.pop() if self._idle else Worker(n_threads=self._n_threads))
                    at_work[-1].begin(run, inputs)
                left = until - time.monotonic()
                if not at_work or left <= 0:
                    return
                names = ", ".join(name_of(each.run) for each in at_work)
                progress.step(f"{n_done} of {n_all}: {names}", min(1.0, n_done / max(1, n_all)))
                for pipe in connection.wait([worker.pipe for worker in at_work], None if left == inf else left):
                    worker = next(each for each in at_work if each.pipe is pipe)
                    judged = _receive(worker, inputs, jobs=self.jobs)
                    if judged is None:
                        continue
                    n_done += 1
                    at_work.remove(worker)
                    if judged.failed == _DIED:
                        worker.end()
                    else:
                        self._idle.append(worker)
                    on_result(judged)
        finally:
            for worker in at_work:
                worker.end()

    @property
    def _n_threads(self) -> int:
        return max(1, (os.cpu_count() or 1) // self.jobs)


def _judge_here(
    runs: Iterable[Run | None], inputs: ComparisonInput, on_result: Callable[[Judged], None], *, n_all: int
) -> None:
    outside = copy_context()
    for i, run in enumerate(runs):

        def tell(name: str, _share: float, i: int = i, run: Run | None = run) -> None:
            # Whoever watches from outside is told which run it is.
            outside.run(progress.step, f"{i} of {n_all}: {name_of(run)} ({name})", min(1.0, i / max(1, n_all)))

        tell("starting", 0.0)
        with progress.watch(tell):
            judged = judge(run, inputs)
        on_result(judged)


def _receive(worker: Worker, inputs: ComparisonInput, *, jobs: int) -> Judged | None:
    """Return the result that a worker sends, None if it only reports that it is ready."""
    try:
        sent: bytes = worker.pipe.recv()
    except (EOFError, OSError):
        if worker.could_not_start():
            raise BadParameter(
                "jobs", jobs, allowed="1 in a script that does its work outside of `if __name__ == '__main__':`"
            ) from None
        fingerprint = inputs.fingerprint_of(worker.run)
        return Judged(run=worker.run, fingerprint=fingerprint, standing="failed", failed=_DIED)
    if sent == _READY:
        worker.is_ready = True
        return None
    return msgspec.json.decode(sent, type=Judged)


def _serve(pipe: connection.Connection) -> None:
    progress.ignore_notices()
    pipe.send(_READY)
    inputs: ComparisonInput | None = None
    try:
        while True:
            what: ComparisonInput | Run | None = pipe.recv()
            if isinstance(what, ComparisonInput):
                inputs = what
            elif inputs is not None:
                pipe.send(msgspec.json.encode(judge(what, inputs)))
    except (EOFError, OSError):
        # The parent process has ended.
        return


@contextmanager
def _ignore_interrupts() -> Iterator[None]:
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
    before = {name: os.environ[name] for name in _THREADS if name in os.environ}
    os.environ.update(dict.fromkeys(_THREADS, str(n)))
    try:
        yield
    finally:
        for name in _THREADS:
            del os.environ[name]
        os.environ.update(before)
