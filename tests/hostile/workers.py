"""Run the program on one hostile input after another in a process of its own, so that a hang or a crash is seen."""

from __future__ import annotations

import multiprocessing
import time
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from typing import Any

from tests.support.waiting import patience

LIMIT_SECONDS = 20.0
_COLUMNS = ("user", "query", "time", "rank", "url")


@dataclass(frozen=True, kw_only=True)
class Job:
    """What the program is to do: read a log, or verify a release."""

    verb: str
    path: str
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What the program did.

    - `refusal`: the message of the error that it raised, if it is one of its own.
    - `fault`: any other error, or how its process ended; `is_hang` if it had to be ended.
    - `said`: all that it tells, to be searched for texts of rows.
    - `holds`: its verdict on a release.
    - `rows`, `counts`: the rows of a log, and what was counted beside them: bad, foreign, Latin-1.
    """

    refusal: str = ""
    fault: str = ""
    is_hang: bool = False
    said: str = ""
    holds: bool = False
    rows: tuple[Any, ...] = ()
    counts: tuple[int, int, int] = (0, 0, 0)
    seconds: float = 0.0


def outcomes(jobs: Iterable[Job], *, seconds: float = LIMIT_SECONDS) -> Iterator[Outcome]:
    """Yield what came of each job; a worker that hangs or dies is replaced."""
    worker: _Worker | None = None
    try:
        for job in jobs:
            worker = worker or _Worker(seconds)
            found = worker.run(job)
            if found.is_hang or found.fault.startswith("the process"):
                worker.end()
                worker = None
            yield found
    finally:
        if worker is not None:
            worker.end()


class _Worker:
    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        context = multiprocessing.get_context("spawn")
        self._here, there = context.Pipe()
        self._process = context.Process(target=_serve, args=(there,), daemon=True)
        self._process.start()
        there.close()
        # What is imported and loaded for the first job is no part of its time.
        self._ready = self._here.poll(patience(120)) and self._here.recv() == "ready"

    def run(self, job: Job) -> Outcome:
        assert self._ready, "the worker did not start"
        try:
            self._here.send(job)
            if not self._here.poll(patience(self._seconds)):
                return Outcome(fault="no answer", is_hang=True)
            found: Outcome = self._here.recv()
        except (EOFError, OSError):
            self._process.join()
            return Outcome(fault=f"the process ended with exit code {self._process.exitcode}")
        # By the processor's clock: a machine that is busy with others is no hang.
        return replace(found, fault="too slow", is_hang=True) if found.seconds > self._seconds else found

    def end(self) -> None:
        self._process.kill()
        self._process.join()
        self._here.close()


def _serve(pipe: Connection) -> None:
    import queryveil  # noqa: F401 - loaded before the first job

    pipe.send("ready")
    while True:
        try:
            job = pipe.recv()
        except (EOFError, OSError):
            return
        pipe.send(attempt(job))


def attempt(job: Job) -> Outcome:
    """Do it here, and return what came of it, whatever that is."""
    from queryveil.errors import QueryveilError

    began = time.process_time()
    try:
        found = _verified(job) if job.verb == "verify" else _read(job)
    except QueryveilError as error:
        found = {"refusal": type(error).__name__, "said": _all_said(error)}
    except BaseException as error:  # a panic of Polars is no Exception
        place = traceback.extract_tb(error.__traceback__)[-1]
        found = {"fault": f"{type(error).__name__} in {place.name}: {str(error)[:200]}"}
    return Outcome(**found, seconds=time.process_time() - began)


def _all_said(error: BaseException | None) -> str:
    """Return the messages of an error and of what would be printed with it."""
    told = []
    while error is not None:
        told.append(f"{error!s} {error!r}")
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return "\n".join(told)


def _verified(job: Job) -> dict[str, Any]:
    import queryveil

    options = dict(job.options)
    if "original" in options:
        # As the command does: whatever the promise is about, it was made from this log.
        options["original"] = queryveil.read_log(options["original"])
    verdict = queryveil.verify(job.path, **options)
    return {"holds": verdict.holds, "said": f"{verdict.in_words()} {verdict.to_dict()} {verdict!r}"}


def _read(job: Job) -> dict[str, Any]:
    import queryveil

    log = queryveil.read_log(job.path, **job.options)
    frame, reading = log.with_clicks_as_rows().frame, log.reading
    columns = [frame[name].to_list() if name in frame.columns else [None] * frame.height for name in _COLUMNS]
    columns[2] = [None if each is None else each.isoformat() for each in columns[2]]
    counts = (reading.n_bad_rows_skipped, reading.n_foreign_documents, reading.n_latin1_rows)
    return {"rows": tuple(zip(*columns, strict=True)), "counts": counts, "said": repr(log)}
