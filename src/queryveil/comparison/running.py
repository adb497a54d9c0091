"""Run the missing runs of a plan on one log, and return the comparison."""

from __future__ import annotations

import os
import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextvars import copy_context
from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from queryveil import progress
from queryveil.attacks.attacker import Person
from queryveil.comparison.comparison import Comparison, check_exposure, label
from queryveil.comparison.judged import Ground, Judged, judge, lay, name_of
from queryveil.comparison.page import render_html
from queryveil.comparison.plan import ORIGINAL, Plan, Run, default_plan, left_out, plan_of, read_plan
from queryveil.comparison.workers import judge_in_processes
from queryveil.data import QueryLog
from queryveil.errors import BadFile, BadInput, BadParameter, QueryveilError
from queryveil.formats import read_log

PAGE, TABLE, PLAN = "compare.html", "table.csv", "plan.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """A folder that holds a comparison, or will."""

    path: Path

    @classmethod
    def at(cls, folder: str | Path) -> Folder:
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
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError, QueryveilError):
            return None
        is_same = judged.fingerprint == fingerprint and not judged.failed
        # The name may have changed; what was done is the same.
        return msgspec.structs.replace(judged, run=run) if is_same else None

    def keep(self, judged: Judged) -> None:
        """Write a result."""
        self._write(self._file(judged.run), msgspec.json.format(msgspec.json.encode(judged), indent=1) + b"\n")

    def write(self, comparison: Comparison, *, plan: Plan) -> None:
        """Write the plan, the table and the page."""
        self._write(self.path / PLAN, plan.to_toml().encode())
        self._write(self.path / TABLE, table_of(comparison).write_csv().encode())
        self._write(self.path / PAGE, render_html(comparison).encode())

    def _file(self, run: Run | None) -> Path:
        return self.path / "results" / f"{ORIGINAL if run is None else run.slug}.json"

    def _write(self, path: Path, data: bytes) -> None:
        """Write a file whole or not at all."""
        partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        try:
            partial.write_bytes(data)
            partial.replace(path)
        except OSError as error:
            raise BadFile(str(path), f"could not be written: {error.strerror}") from None
        finally:
            partial.unlink(missing_ok=True)


def table_of(comparison: Comparison) -> pl.DataFrame:
    """Return all figures of all runs, one row each; what a run lacks is empty."""
    rows = []
    for row in comparison.rows:
        judged, found = row.judged, row.exposure
        low, high = (None, None) if found is None else found.interval
        plain: dict[str, str | float | bool | None] = {
            "run": row.name,
            "method": None if judged.run is None else judged.run.method,
            "standing": judged.standing,
            "exposure": None if found is None else found.share,
            "exposure_low": low,
            "exposure_high": high,
            "exposure_by_chance": None if found is None else found.chance_share,
            "utility": None if row.utility is None else row.utility.value,
            "on_frontier": row.is_on_frontier,
            "picked": row.is_picked,
            "seconds": round(row.seconds, 3),
        }
        attempts = () if judged.attacks is None else judged.attacks.attempts
        plain |= {f"attack {label(attempt.after)}": attempt.after.share for attempt in attempts}
        rows.append(plain | {f"score {score.name}": score.value for score in judged.scores})
    names = list(dict.fromkeys(name for row in rows for name in row))
    return pl.DataFrame([{name: row.get(name) for name in names} for row in rows], infer_schema_length=None)


def compare(
    log: QueryLog | Path | str,
    plan: Plan | Path | str | Iterable[str] | None = None,
    *,
    folder: Path | str | None = None,
    public: QueryLog | None = None,
    people: Sequence[Person] = (),
    values: pl.DataFrame | None = None,
    exposure: str | None = None,
    utility: str | None = None,
    limit: float | None = None,
    holdout: float | None = None,
    n_targets: int = 1000,
    jobs: int = 1,
    seed: int | None = None,
    again: bool = False,
) -> Comparison:
    """Put methods side by side: what each keeps, and what attackers find in it.

    A `plan` is a value, the path of a TOML file, or methods with settings as words: `"km:k=5:m=2,clump"`; without one
    every method is run with a few settings. `exposure`, `utility`, `limit` and `holdout` override the plan's. The share
    `holdout` of the users is left out of all releases to stand for the public, unless a `public` log is given. In a
    `folder` figures are kept, so that a second call does only what is missing, or with `again` everything. With more
    than 1 of `jobs`, runs have processes of their own, and a script must work below `if __name__ == "__main__":`.
    Releases are made, judged and thrown away; no text and no id is kept.
    """
    wanted = _changed(_plan(plan), exposure=exposure, utility=utility, limit=limit, holdout=holdout)
    wanted.check(values=values)
    check_exposure(wanted.exposure)
    for name, value in (("jobs", jobs), ("targets", n_targets)):
        if value < 1:
            raise BadParameter(name, value, allowed="1 or more")
    home = None if folder is None else Folder.at(folder)
    whole = log if isinstance(log, QueryLog) else read_log(log)
    progress.step("parting the users")
    ground = lay(
        whole, holdout=wanted.holdout, public=public, people=people, values=values, n_targets=n_targets, seed=seed
    )
    if ground.log.n_users == 0:
        raise BadInput("there is nobody to compare methods on; give a log with users, or a smaller holdout")
    original, *found = judge_all([None, *wanted.runs], ground, home=home, jobs=jobs, again=again)
    comparison = replace(
        Comparison.of(found, original=original, plan=wanted, ground=ground), left_out=left_out() if plan is None else ()
    )
    if home is not None:
        home.write(comparison, plan=wanted)
    return comparison


def judge_all(
    runs: Sequence[Run | None], ground: Ground, *, home: Folder | None = None, jobs: int = 1, again: bool = False
) -> list[Judged]:
    """Return the result of each run, in their order; those that a folder has are read from there."""
    results: dict[str, Judged] = {}
    if home is not None and not again:
        for run in runs:
            kept = home.result_of(run, fingerprint=ground.fingerprint_of(run))
            if kept is not None:
                results[kept.name] = kept
    missing = _one_of_each_first([run for run in runs if name_of(run) not in results])

    def told(judged: Judged) -> None:
        results[judged.name] = judged
        if home is not None:
            home.keep(judged)

    if min(jobs, len(missing)) > 1:
        judge_in_processes(missing, ground, jobs=jobs, told=told)
    else:
        _judge_here(missing, ground, told)
    return [results[name_of(run)] for run in runs]


def _one_of_each_first(runs: Sequence[Run | None]) -> list[Run | None]:
    """Put the first run of each method first: two at a time would both compile what one can read from the other."""
    n_before: Counter[str] = Counter()
    rounds: list[tuple[int, Run | None]] = []
    for run in runs:
        method = "" if run is None else run.method
        rounds.append((n_before[method], run))
        n_before[method] += 1
    return [run for _, run in sorted(rounds, key=itemgetter(0))]


def _judge_here(runs: Sequence[Run | None], ground: Ground, told: Callable[[Judged], None]) -> None:
    outside = copy_context()
    for i, run in enumerate(runs):

        def tell(name: str, _share: float, i: int = i, run: Run | None = run) -> None:
            # Whoever watches from outside is told which run it is.
            outside.run(progress.step, f"{i} of {len(runs)}: {name_of(run)} ({name})", i / len(runs))

        tell("starting", 0.0)
        with progress.watch(tell):
            judged = judge(run, ground)
        told(judged)


def _plan(plan: Plan | Path | str | Iterable[str] | None) -> Plan:
    if plan is None:
        return default_plan()
    if isinstance(plan, Plan):
        return plan
    if isinstance(plan, Path) or (isinstance(plan, str) and plan.endswith(".toml")):
        return read_plan(plan)
    return plan_of(plan)


def _changed(plan: Plan, **changes: Any) -> Plan:
    """Return the plan with what is not None changed."""
    return msgspec.structs.replace(plan, **{name: value for name, value in changes.items() if value is not None})
