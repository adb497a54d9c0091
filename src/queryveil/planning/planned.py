"""What was asked of a search, what came of it, and the files that say both."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from queryveil.attacks.limits import Limit, n_targets_needed, risk
from queryveil.attacks.names import base_name
from queryveil.attacks.readers import READERS
from queryveil.comparison.judged import Judged
from queryveil.comparison.methods import command
from queryveil.comparison.plan import Plan, Run, read_toml, runs_of, toml
from queryveil.errors import BadFile, BadParameter
from queryveil.html_tables import percent
from queryveil.planning.deciding import Decision, Finding, Relaxation, in_words, targets_in_words
from queryveil.reports import write_whole
from queryveil.settings import is_number
from queryveil.utility.purposes import PURPOSES, Purpose

PLAN_FILE, FIGURES, TABLE = "plan.toml", "search.json", "table.csv"


class Wanted(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is asked of a search.

    - `purpose`: what the release is for, by name.
    - `limit`: the most that an attacker may find.
    - `readers`: who will read it, by name.
    - `exceptions`: attackers that are left out although they apply, each with the reason that somebody gave.
    - `minutes`: how long the search may take.
    - `targets_seed`: repeats who is drawn for samples and as targets; nothing of the release.
    - `run`: what is tried, if not everything: the runs that a search judged on the whole log.
    """

    purpose: str
    limit: float = 0.05
    readers: tuple[str, ...] = tuple(READERS)
    exceptions: dict[str, str] = {}
    minutes: float = 10.0
    targets_seed: int | None = None
    run: tuple[Run, ...] = ()

    def __post_init__(self) -> None:
        if self.purpose not in PURPOSES:
            raise BadParameter("for", self.purpose, allowed=f"one of {', '.join(PURPOSES)}")
        if not is_number(self.minutes) or not 0 < self.minutes <= 100_000:
            raise BadParameter("minutes", self.minutes, allowed="above 0")
        n_targets_needed(self.limit)
        _ = self.as_limit

    @property
    def as_limit(self) -> Limit:
        """The limit with its readers and exceptions."""
        return Limit(share=self.limit, readers=self.readers, exceptions=self.exceptions)

    @property
    def for_purpose(self) -> Purpose:
        """What the release is for."""
        return PURPOSES[self.purpose]

    def to_toml(self) -> str:
        """Return the plan file that repeats the search."""
        fields = [name for name in self.__struct_fields__ if name not in ("exceptions", "run")]
        values = {name: getattr(self, name) for name in fields}
        lines = [f"{name} = {toml(value)}" for name, value in values.items() if value is not None]
        if self.exceptions:
            lines += ["", "[exceptions]", *(f"{toml(name)} = {toml(why)}" for name, why in self.exceptions.items())]
        return "\n".join([*lines, *(line for run in self.run for line in run.to_toml())]) + "\n"


def read_wanted(path: str | Path) -> Wanted:
    """Read a plan file that a search has written."""
    content = read_toml(path)
    try:
        tables = msgspec.convert(content.pop("run", []), list[dict[str, Any]])
        runs = tuple(run for table in tables for run in runs_of(table))
        if runs:
            # Names and settings are checked as those of `compare` are.
            Plan(runs=runs).check()
        return msgspec.structs.replace(msgspec.convert(content, Wanted), run=runs)
    except msgspec.ValidationError as error:
        fields = ", ".join(Wanted.__struct_fields__)
        wrong = BadParameter("a plan", str(error), allowed=f"as queryveil plan writes it, with {fields}")
        raise BadFile(str(path), str(wrong)) from None
    except BadParameter as error:
        raise BadFile(str(path), str(error)) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """The runs that were judged on so many users.

    - `n_users`: how many users there were.
    - `is_whole`: whether these are all users of the log.
    - `judged`: what came of the runs.
    - `n_left`: how many runs there was no time for.
    """

    n_users: int
    is_whole: bool
    judged: tuple[Judged, ...]
    n_left: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """The release that was chosen for a purpose, what it keeps and exposes, and why not more.

    - `wanted`: what was asked.
    - `decision`: what follows from the runs on the whole log.
    - `rungs`: all that was tried, on samples of users and on the whole log.
    - `confirmed`: the release that was written, judged on fresh targets; None if there is none.
    - `refused`: releases that were made but found to be above the limit on fresh targets.
    - `seconds`: how long it took.
    - `notes`: what else there is to say.
    """

    wanted: Wanted
    decision: Decision
    rungs: tuple[Rung, ...]
    confirmed: Finding | None = None
    refused: tuple[Finding, ...] = ()
    seconds: float = 0.0
    notes: tuple[str, ...] = ()

    @property
    def command(self) -> str:
        """What to type to make such a release."""
        run = None if self.confirmed is None else self.confirmed.judged.run
        return "" if run is None else command(run.method, run.settings)

    @property
    def next_best(self) -> Finding | None:
        """The most useful of the other runs that may be released."""
        out = {one.name for one in (*self.refused, *((self.confirmed,) if self.confirmed else ()))}
        return next((one for one in self.decision.qualified if one.name not in out), None)

    def relaxations(self) -> tuple[Relaxation, ...]:
        """Return what would let a run through; nothing if one was written."""
        # A run that was refused is no better than what was found in it last.
        return () if self.confirmed is not None else self.decision.but(self.refused).relaxations()

    def in_words(self) -> str:
        """Say what was chosen, or that nothing was, and why."""
        asked = self.wanted
        who = "any reader" if asked.readers == tuple(READERS) else " or ".join(asked.readers)
        what = f"for {asked.purpose}, exposing at most {percent(asked.limit)} to {who}"
        if self.confirmed is None:
            return f"No release {what}."
        return f"The most useful release {what}: {self.confirmed.name}"

    def lines(self) -> tuple[str, ...]:
        """Return all that there is to say, a line each."""
        return (
            self.in_words(),
            *(_of_the_release(self) if self.confirmed is not None else _of_none(self)),
            *_exceptions(self),
            *_why_not_more(self),
            *_unpromised(self),
            *(f"note: {note}" for note in self.notes),
            _tried(self),
        )

    def to_dict(self) -> dict[str, object]:
        """Return all figures, for machines."""
        confirmed, other = self.confirmed, self.next_best
        return {
            "wanted": msgspec.to_builtins(self.wanted),
            "chosen": None if confirmed is None else _figures(confirmed),
            "command": self.command or None,
            "next_best": None if other is None else _figures(other),
            "refused_on_fresh_targets": [_figures(one) for one in self.refused],
            "why_not_more": [_figures(one) for one in self.decision.more_useful()],
            "promise_nothing": [_figures(one) for one in self.decision.unpromised],
            "relaxations": [
                {"option": one.option, "run": one.finding.name, "utility": one.finding.useful}
                for one in self.relaxations()
            ],
            "too_few_targets": [found.to_dict() for found in self.decision.too_few()],
            "n_targets_needed": n_targets_needed(self.wanted.limit),
            "rungs": [
                {"n_users": rung.n_users, "whole": rung.is_whole, "runs": len(rung.judged), "no_time_for": rung.n_left}
                for rung in self.rungs
            ],
            "notes": list(self.notes),
            "seconds": round(self.seconds, 1),
        }

    def table(self) -> pl.DataFrame:
        """Return the figures of all runs at all sizes, one row each."""
        limit, measure = self.wanted.as_limit, self.wanted.for_purpose.measure
        rows = [
            {"n_users": rung.n_users, **_row(Finding.of(judged, limit=limit, measure=measure)), "on": on}
            for on, rung in ((("whole log" if rung.is_whole else "sample"), rung) for rung in self.rungs)
            for judged in rung.judged
        ]
        return pl.DataFrame(rows, infer_schema_length=None)

    def write(self, folder: Path) -> None:
        """Write the plan file, all figures as JSON, and a table of them."""
        whole = [rung for rung in self.rungs if rung.is_whole]
        runs = tuple(judged.run for rung in whole for judged in rung.judged if judged.run is not None)
        again = msgspec.structs.replace(self.wanted, run=runs)
        write_whole(again.to_toml(), folder / PLAN_FILE)
        write_whole(self.table().write_csv(), folder / TABLE)
        figures = msgspec.json.format(msgspec.json.encode(self.to_dict(), enc_hook=str), indent=1).decode()
        write_whole(f"{figures}\n", folder / FIGURES)


def _row(finding: Finding) -> dict[str, Any]:
    judged, binding = finding.judged, finding.ruling.binding
    low, high = (None, None) if binding is None else binding.interval
    return {
        "run": finding.name,
        "standing": judged.standing,
        "qualifies": finding.qualifies,
        "utility": None if finding.utility is None else finding.utility.value,
        "risk": finding.ruling.risk,
        "attacker": None if binding is None else binding.title,
        "found": None if binding is None else binding.share,
        "found_low": low,
        "found_high": high,
        "targets": None if binding is None else binding.n_targets,
        "stopped_by": judged.stopped_by or None,
        "why_not": finding.why_not or None,
        "seconds": round(sum(judged.seconds.values()), 3),
    }


def _figures(finding: Finding) -> Mapping[str, object]:
    run = finding.judged.run
    attacks = finding.judged.attacks
    return {
        **_row(finding),
        "method": None if run is None else run.method,
        "settings": {} if run is None else run.settings,
        "scores": [score.to_dict() for score in finding.judged.scores],
        "attacks": None if attacks is None else attacks.to_dict(),
    }


def _of_the_release(planned: Planned) -> list[str]:
    found, other = planned.confirmed, planned.next_best
    assert found is not None
    binding = found.ruling.binding
    lines = ["", f"    {planned.command}", ""]
    lines.append(f"Keeps     {found.keeps}" + (f"; the next best, {other.name}: {other.keeps}" if other else ""))
    counts, promise = found.judged.counts, found.judged.promise
    if counts is not None and promise is not None and not promise.is_noisy:
        lines.append(f"Leaves    {counts.n_rows_after:,} rows of {counts.n_rows_before:,}")
    if binding is not None:
        lines.append(f"Exposure  {in_words(binding)}; this is the most of any attacker that counts, on fresh targets")
    for one in planned.refused:
        lines.append(f"Refused   {one.name}, on fresh targets: {one.why_not}")
    return lines


def _of_none(planned: Planned) -> list[str]:
    decision, limit = planned.decision, planned.wanted.limit
    lines = []
    for one in planned.refused:
        lines.append(f"Refused   {one.name}, on fresh targets: {one.why_not}")
    few = decision.too_few()
    if few:
        lines.append(
            f"Too few   the log is too small for {percent(limit)}: {targets_in_words(few, limit=limit)}. Ask for a "
            "larger limit, or say why they do not matter: "
            + " ".join(f"--except {base_name(found.attacker)}=REASON" for found in few)
        )
    refused = {one.name for one in planned.refused}
    nearest = [
        one
        for one in decision.findings
        if one.is_promised and one.ruling.binding is not None and one.name not in refused
    ]
    nearest.sort(key=lambda one: (not one.is_whole, one.ruling.risk))
    for one in nearest[:3]:
        lines.append(f"Binding   {one.name} ({one.keeps}): {one.why_not}")
    relaxed = planned.relaxations()
    lines += [f"Instead   {one.in_words()}" for one in sorted(relaxed, key=_is_other_limit)[:_MOST_TOLD]]
    if not decision.findings:
        lines.append("Time      no run could be judged on the whole log in time; give more --minutes")
    elif not relaxed:
        lines.append("Instead   no run that keeps its promise and something for the purpose was judged to the end")
    return lines


_MOST_TOLD = 4


def _is_other_limit(one: Relaxation) -> tuple[bool, float]:
    return not one.option.startswith("--limit"), -one.finding.useful


def _exceptions(planned: Planned) -> list[str]:
    asked = planned.wanted.exceptions
    excepted = () if planned.confirmed is None else planned.confirmed.ruling.excepted
    # Of several settings of an attacker the one that finds most is told.
    most = {base_name(one.attacker): one for one in sorted(excepted, key=risk)}
    return [
        f"Excepted  {name}: {why}" + (f"; {in_words(most[name])}" if name in most else "")
        for name, why in asked.items()
    ]


def _why_not_more(planned: Planned) -> list[str]:
    more = planned.decision.more_useful()
    if planned.confirmed is None or not more:
        return []
    told = [f"    {one.name} ({one.keeps}): {one.why_not}" for one in more[:_MOST_TOLD]]
    return ["Why not more", *told]


def _unpromised(planned: Planned) -> list[str]:
    return [
        f"Beside    {one.name} promises nothing, and is never chosen: {one.keeps}"
        + (f"; {in_words(one.ruling.binding)}" if one.ruling.binding else "")
        for one in planned.decision.unpromised[:_MOST_TOLD]
    ]


def _tried(planned: Planned) -> str:
    parts = [
        f"{len(rung.judged)} on {'all ' if rung.is_whole else ''}{rung.n_users:,} users"
        + (f" ({rung.n_left} left for want of time)" if rung.n_left else "")
        for rung in planned.rungs
    ]
    needed = n_targets_needed(planned.wanted.limit)
    half = n_targets_needed(planned.wanted.limit, chance_share=0.5)
    return (
        f"Tried     {', '.join(parts)}, in {planned.seconds:,.0f} seconds. {percent(planned.wanted.limit)} needs "
        f"{needed:,} targets of an attacker, {half:,} where blind guessing finds half."
    )
