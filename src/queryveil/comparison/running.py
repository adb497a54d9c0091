"""Run the missing runs of a plan on one log, here or in processes of their own, and return the comparison."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from queryveil import progress
from queryveil.attacks import Person
from queryveil.attacks.limits import risk
from queryveil.attacks.names import label
from queryveil.comparison.comparison import Comparison, check_exposure
from queryveil.comparison.judged import ComparisonInput, Judged, name_of
from queryveil.comparison.page import render_html
from queryveil.comparison.plan import ORIGINAL, Plan, Run, default_plan, left_out, plan_of, read_plan
from queryveil.comparison.workers import Workers
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
