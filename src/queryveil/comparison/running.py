"""Run the missing runs of a plan on one log, here or in processes of their own, and return the comparison."""

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass, replace
from math import inf
from multiprocessing import connection, resource_tracker
from pathlib import Path
from typing import Any, Self

import msgspec
import polars as pl

from queryveil import progress
from queryveil.attacks import Person
from queryveil.attacks.limits import risk
from queryveil.attacks.names import label
from queryveil.comparison.comparison import Comparison, check_exposure
from queryveil.comparison.judged import ComparisonInput, Judged, judge, name_of
from queryveil.comparison.page import render_html
from queryveil.comparison.plan import ORIGINAL, Plan, Run, default_plan, left_out, plan_of, read_plan
from queryveil.data import QueryLog
from queryveil.errors import BadFile, BadInput, BadParameter, QueryveilError
from queryveil.formats import read_log
from queryveil.reports import write_whole
from queryveil.settings import parse_share


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """A folder that holds a comparison, or will."""

    path: Path

    @classmethod
    def at(cls, folder: str | Path) -> "Folder":
        """Make the folder, or take that of an earlier comparison; any other is refused."""
        path = Path(folder)
        if os.path.lexists(path) and not path.is_dir():
            raise BadParameter("output", str(folder), allowed="a folder, and this is a file")
        if path.is_dir() and any(path.iterdir()) and not (path / "results").is_dir():
            raise BadParameter("output", str(folder), allowed="a new folder, an empty one, or that of a comparison")
        try:
            (path / "results").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadFile(str(folder), f"the folder cannot be made: {error.strerror}") from None
        return cls(path=path)

    def result_of(self, run: Run | None, *, fingerprint: str) -> Judged | None:
        """Read a result, if it is there, whole, of the same log and settings, and no failure."""
        try:
            judged = msgspec.json.decode(self._file(run).read_bytes(), type=Judged)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError, QueryveilError):
            return None
        is_same = judged.fingerprint == fingerprint and not judged.failed
        # The name may have changed; what was done is the same.
        return msgspec.structs.replace(judged, run=run) if is_same else None

    def keep(self, judged: Judged) -> None:
        text = msgspec.json.format(msgspec.json.encode(judged), indent=1).decode()
        write_whole(f"{text}\n", self._file(judged.run))

    def write(self, comparison: Comparison, *, plan: Plan) -> None:
        write_whole(plan.to_toml(), self.path / "plan.toml")
        write_whole(table_of(comparison).write_csv(), self.path / "table.csv")
        write_whole(render_html(comparison), self.path / "compare.html")

    def _file(self, run: Run | None) -> Path:
        return self.path / "results" / f"{ORIGINAL if run is None else run.slug}.json"


def table_of(comparison: Comparison) -> pl.DataFrame:
    """Return all figures of all runs, one row each; what a run lacks is empty."""
    rows = []
    for row in comparison.rows:
        judged, binding = row.judged, row.ruling.binding
        plain: dict[str, str | float | bool | None] = {
            "run": row.name,
            "method": None if judged.run is None else judged.run.method,
            "standing": judged.standing,
            "outcome": row.outcome,
            "highest_risk": None if binding is None else row.ruling.risk,
            "binding": None if binding is None else label(binding),
            "rejected_by": ", ".join(map(label, row.ruling.over)) or None,
            "excepted": ", ".join(map(label, row.ruling.excepted)) or None,
            "utility": None if row.utility is None else row.utility.value,
            "on_frontier": row.is_on_frontier,
            "picked": row.is_picked,
            "seconds": round(row.seconds, 3),
        }
        for one in judged.exposures:
            low, high = one.interval
            name = f"attack {label(one)}"
            plain |= {name: one.share, f"{name} low": low, f"{name} high": high, f"{name} risk": risk(one)}
        rows.append(plain | {f"score {score.name}": score.value for score in judged.scores})
    return pl.concat([pl.DataFrame([row]) for row in rows], how="diagonal_relaxed")


def compare(
    log: QueryLog | Path | str,
    plan: Plan | Path | str | Iterable[str] | None = None,
    *,
    folder: Path | str | None = None,
    public: QueryLog | None = None,
    later: QueryLog | None = None,
    people: Sequence[Person] = (),
    values: pl.DataFrame | None = None,
    limit: float | str | None = None,
    purpose: str | None = None,
    utility: str | None = None,
    readers: Iterable[str] | None = None,
    exceptions: Mapping[str, str] | None = None,
    exposure: str | None = None,
    holdout: float | None = None,
    n_targets: int = 1000,
    jobs: int = 1,
    seed: int | None = None,
    again: bool = False,
) -> Comparison:
    """Put methods side by side: what each keeps, and what attackers find in it.

    Releases are made, judged and thrown away; no text and no id is kept.

    - plan: a value, the path of a TOML file, or methods with settings: `"km:k=5:m=2,clump"`; if none, every method
    - folder: where figures are kept, so that a second call does only what is missing
    - public: a log by other people in place of the users held out
    - later: a log of the same people, under the same ids, from another time
    - people, values: whom attackers look for by name, and what terms are worth
    - limit, purpose, utility, readers, exceptions, exposure, holdout: as in a plan, which they override
    - n_targets: people that each attacker looks for, at most
    - jobs: with more than 1, runs have processes of their own; a script must work below `if __name__ == "__main__":`
    - again: do everything again
    """
    changes: dict[str, Any] = {
        "limit": None if limit is None else parse_share(limit),
        "readers": None if readers is None else tuple(readers),
        "exceptions": None if exceptions is None else dict(exceptions),
        "exposure": exposure,
        "holdout": holdout,
    }
    given = {name: value for name, value in changes.items() if value is not None}
    if purpose is not None or utility is not None:
        # One takes the place of the other that a plan may name.
        given |= {"purpose": purpose, "utility": utility}
    wanted = msgspec.structs.replace(_plan(plan), **given)
    wanted.check(values=values)
    check_exposure(wanted.exposure)
    for name, value in (("jobs", jobs), ("targets", n_targets)):
        if value < 1:
            raise BadParameter(name, value, allowed="1 or more")
    home = None if folder is None else Folder.at(folder)
    whole = log if isinstance(log, QueryLog) else read_log(log)
    progress.step("parting the users")
    inputs = ComparisonInput(
        log=whole, public=public, later=later, people=people, values=values, n_targets=n_targets, seed=seed
    )
    inputs = inputs.with_holdout(wanted.holdout)
    if inputs.log.n_users == 0:
        raise BadInput("there is nobody to compare methods on; give a log with users, or a smaller holdout")
    original, *found = judge_all([None, *wanted.runs], inputs, home=home, jobs=jobs, again=again)
    comparison = Comparison.of(found, original=original, plan=wanted, inputs=inputs)
    if plan is None:
        comparison = replace(comparison, left_out=left_out())
    if home is not None:
        home.write(comparison, plan=wanted)
    return comparison


def judge_all(
    runs: Sequence[Run | None],
    inputs: ComparisonInput,
    *,
    home: Folder | None = None,
    jobs: int = 1,
    again: bool = False,
) -> list[Judged]:
    """Return the result of each run, in their order; those that a folder has are read from there."""
    results: dict[str, Judged] = {}
    if home is not None and not again:
        kept = (home.result_of(run, fingerprint=inputs.fingerprint_of(run)) for run in runs)
        results = {judged.name: judged for judged in kept if judged is not None}
    missing = [run for run in runs if name_of(run) not in results]
    # The first run of each method comes first: two at a time would both compile what one can read from the other.
    methods = ["" if run is None else run.method for run in missing]
    missing = [missing[i] for i in sorted(range(len(missing)), key=lambda i: methods[:i].count(methods[i]))]

    def on_result(judged: Judged) -> None:
        results[judged.name] = judged
        if home is not None:
            home.keep(judged)

    with Workers(jobs=min(jobs, len(missing))) as workers:
        workers.judge(missing, inputs, on_result=on_result, n_all=len(missing))
    return [results[name_of(run)] for run in runs]


def _plan(plan: Plan | Path | str | Iterable[str] | None) -> Plan:
    if plan is None:
        return default_plan()
    if isinstance(plan, Plan):
        return plan
    if isinstance(plan, Path) or (isinstance(plan, str) and plan.endswith(".toml")):
        return read_plan(plan)
    return plan_of(plan)


_THREADS = ("POLARS_MAX_THREADS", "NUMBA_NUM_THREADS")
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
