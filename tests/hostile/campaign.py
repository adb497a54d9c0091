"""Attack the program with malformed logs and tampered releases, and judge what it did by what is true of each."""

from __future__ import annotations

import random
import shutil
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeVar

from tests.hostile.malformed_logs import ROWS, SECRET, Log
from tests.hostile.releases import bases
from tests.hostile.tampered_folders import changed_bytes, changed_folders, changed_signatures
from tests.hostile.tampered_groups import edited_groups
from tests.hostile.tampered_manifests import Tampering, changed_promises, changed_texts, changed_values
from tests.hostile.tampered_rows import (
    edited_columns,
    edited_counts,
    edited_logs,
    edited_swaps,
    edited_transactions,
    odd_values,
)
from tests.hostile.workers import Job, Outcome, outcomes

_Case = TypeVar("_Case")
Result = Literal["refused", "held", "fault", "hang", "loss", "falsehood"]
RESULTS: dict[Result, str] = {
    "refused": "refused",
    "held": "held, and true",
    "fault": "faults",
    "hang": "hangs",
    "loss": "silent losses",
    "falsehood": "falsehoods",
}
WRONG: tuple[Result, ...] = ("fault", "hang", "loss", "falsehood")


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What came of one case, and why that is wrong, if it is."""

    kind: str
    case: str
    result: Result
    why: str = ""


@dataclass
class Table:
    """Counts the results of all cases by their kind."""

    counts: dict[str, dict[Result, int]] = field(default_factory=lambda: defaultdict(lambda: dict.fromkeys(RESULTS, 0)))
    wrong: list[Finding] = field(default_factory=list)

    def add(self, found: Finding) -> None:
        self.counts[found.kind][found.result] += 1
        if found.result in WRONG:
            self.wrong.append(found)

    def lines(self) -> Iterator[str]:
        """Yield the table for a terminal."""
        width = max(map(len, [*self.counts, "in all"])) + 2
        yield "".join(each.rjust(16) for each in ("cases", *RESULTS.values())).rjust(width + 16 * 7)
        total = {name: sum(row[name] for row in self.counts.values()) for name in RESULTS}
        for kind, row in [*sorted(self.counts.items()), ("in all", total)]:
            yield kind.ljust(width) + "".join(f"{n:,}".rjust(16) for n in (sum(row.values()), *row.values()))


def attack_with_logs(logs: Sequence[Log], folder: Path) -> Iterator[Finding]:
    """Read each log twice: with bad rows refused, and with bad rows skipped."""

    def jobs() -> Iterator[Job]:
        for number, log in enumerate(logs):
            place = folder / str(number)
            place.mkdir()
            (place / log.name).write_bytes(log.data)
            for policy in ("fail", "skip"):
                options = {"bad_rows": policy} | ({} if log.format is None else {"format": log.format})
                yield Job(verb="read", path=str(place / log.name), options=options)
            shutil.rmtree(place)

    done = outcomes(jobs())
    for log in logs:
        strict, lenient = next(done), next(done)
        case = f"{log.format or 'parquet'}: {log.kind}"
        yield _judged_log(log, case, strict, lenient)
    # The last folder is removed, and the worker ends.
    next(done, None)


def _judged_log(log: Log, case: str, strict: Outcome, lenient: Outcome) -> Finding:
    def finding(result: Result, why: str = "") -> Finding:
        kind = "log, " + ("parquet" if log.format is None else log.format)
        return Finding(kind=kind, case=case, result=result, why=why)

    for each in (strict, lenient):
        if each.fault:
            return finding("hang" if each.is_hang else "fault", each.fault)
        if any(text in each.said for text in (SECRET, *(row[1] for row in ROWS if row[1]))):
            return finding("fault", "a message quotes a row")
    if not log.is_whole:
        is_refused = strict.refusal and lenient.refusal
        return finding("refused") if is_refused else finding("falsehood", "a file that is none was read")
    why = _other_rows(log, lenient) or ("" if strict.refusal or log.n_bad else _other_rows(log, strict))
    if log.n_bad and not strict.refusal:
        return finding("loss", "bad rows were left out without being asked for")
    if strict.refusal and not (log.n_bad or log.may_refuse or lenient.counts[0]):
        return finding("loss", f"a sound file was refused: {strict.said[:150]}")
    if why:
        return finding("loss", why)
    return finding("refused" if strict.refusal else "held")


def _other_rows(log: Log, found: Outcome) -> str:
    """Return how the rows that were read differ from those that are there."""
    if found.refusal:
        return "" if log.may_refuse else f"the good rows were refused, too: {found.said[:150]}"
    if log.rows is None:
        n_there = len(ROWS) if log.format is None else len(found.rows) + found.counts[0]
        n_found = len(found.rows) + found.counts[0]
        return "" if n_found == n_there else f"{n_there} rows, and {n_found} read or counted as bad"
    if found.counts != (log.n_bad, log.n_foreign, log.n_latin1):
        return f"bad, foreign and Latin-1 rows counted {found.counts}, not {(log.n_bad, log.n_foreign, log.n_latin1)}"
    if len(found.rows) != len(log.rows):
        return f"{len(log.rows)} good rows, and {len(found.rows)} read"
    other = [i for i, (here, there) in enumerate(zip(found.rows, log.rows, strict=True)) if here != there]
    return f"{len(other)} rows have other values, the first is {other[0] + 1}" if other else ""


def spread(cases: Sequence[_Case], n: int | None) -> list[_Case]:
    """Return so many of the cases, from all of the list alike; all of them if no number is given."""
    n = len(cases) if n is None else min(n, len(cases))
    return [cases[i * len(cases) // n] for i in range(n)]


def tampered_releases(folder: Path, *, seed: int, only: Sequence[str] | None = None) -> list[Tampering]:
    """Make releases in a folder, and return all that is done to copies of them, always the same for a seed."""
    rng = random.Random(seed)
    found: list[Tampering] = []
    for base in bases(folder, only=only):
        found += [*changed_values(base), *changed_promises(base), *changed_texts(base)]
        found += [*edited_logs(base, rng, 4), *odd_values(base, rng), *edited_columns(base), *edited_counts(base)]
        found += [*edited_transactions(base, rng, 4), *edited_groups(base, rng), *edited_swaps(base)]
        found += [*changed_bytes(base, rng, 6), *changed_folders(base), *changed_signatures(base)]
    return found


def attack_with_releases(tamperings: Sequence[Tampering], folder: Path) -> Iterator[Finding]:
    """Verify each release that was tampered with, with the original or the maker's key where only these can tell."""

    def jobs() -> Iterator[Job]:
        for number, each in enumerate(tamperings):
            place = folder / str(number)
            place.mkdir()
            copy = shutil.copytree(each.base.folder, place / "release")
            options = dict(each.base.options)
            if each.truth == "original":
                options["original"] = str(each.base.original)
            if each.truth == "signature":
                (copy / "manifest.sig").write_bytes(each.base.signature)
                options["signed_by"] = str(each.base.public)
            each.apply(copy)
            yield Job(verb="verify", path=str(copy), options=options)
            shutil.rmtree(place)

    done = outcomes(jobs())
    for each in tamperings:
        yield _judged_release(each, next(done))
    next(done, None)


def _judged_release(each: Tampering, found: Outcome) -> Finding:
    result: Result = "held" if found.holds else "refused"
    why = found.fault
    if found.fault:
        result = "hang" if found.is_hang else "fault"
    elif SECRET in found.said.lower() or "persona" in found.said:
        result, why = "fault", "a message quotes a row"
    elif found.holds and each.truth != "true":
        result, why = "falsehood", f"it holds, and what it says is false ({each.truth})"
    return Finding(kind=f"release, {each.kind}", case=f"{each.base.name}: {each.name}", result=result, why=why)
