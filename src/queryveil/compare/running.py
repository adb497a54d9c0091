"""The verb: do all runs of a plan on one log, those that are missing, and put them side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextvars import copy_context
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from queryveil import progress
from queryveil.attack.people import Person
from queryveil.compare.comparison import Comparison
from queryveil.compare.figures import check_exposure
from queryveil.compare.folder import Folder
from queryveil.compare.ground import Ground, lay
from queryveil.compare.judged import Judged, judge, name_of
from queryveil.compare.plan import Plan, Run, default_plan, left_out, plan_of, read_plan
from queryveil.compare.workers import judge_in_processes
from queryveil.errors import BadInput, BadParameter
from queryveil.formats import read_log
from queryveil.log import QueryLog


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
    """Give the result of each run, in their order; those that a folder has are read from there."""
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
    """Give the plan with what is not None changed."""
    return msgspec.structs.replace(plan, **{name: value for name, value in changes.items() if value is not None})
