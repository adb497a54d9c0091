"""The demo: a synthetic log, a release with its report, and a comparison of all methods."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from queryveil.attacks import Person
from queryveil.checks import Verdict, verify
from queryveil.comparison import Comparison, compare
from queryveil.data import QueryLog
from queryveil.methods import Km
from queryveil.release import Manifest, check_target, read_release
from queryveil.reports import Report, render, report, write_whole
from queryveil.reports.inspection import Inspection, inspect
from queryveil.synthesis import Secret, synthesize, write_synthetic

READERS_SHOWN = ("recipient", "site-owner")
"""For whom methods are compared: others need a larger log than a demo has time for, to be under the limit at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demo:
    """What the demo found: the log before and after, the promise, its verdict, the planted people, all methods."""

    before: Inspection
    after: Inspection
    manifest: Manifest
    verdict: Verdict
    n_planted: int
    n_found_before: int
    n_found_after: int
    report: Report
    comparison: Comparison

    def to_dict(self) -> dict[str, Any]:
        """Return all figures, for machines."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value.to_dict() if hasattr(value, "to_dict") else value for name, value in values.items()}


def demo(
    folder: str | Path,
    *,
    users: int = 4000,
    k: int = 5,
    m: int = 2,
    seed: int = 2006,
    jobs: int = 1,
    force: bool = False,
) -> Demo:
    """Make up a log, release and verify it, look for the planted people, and compare all methods.

    In `folder` are the log, the `release` with its report, and the `comparison`, for which `jobs` processes are used.
    """
    home = Path(folder)
    check_target(home / "release", force=force)
    made = synthesize(users=users, seed=seed)
    write_synthetic(made, home / "log.tsv", force=force)
    people = [Person(name=secret.name, town=secret.town, user=secret.user) for secret in made.secrets]
    # First, since with several processes it also compiles what the rest needs in half the time.
    target = home / "comparison"
    comparison = compare(made.log, folder=target, people=people, readers=READERS_SHOWN, jobs=jobs, again=force)
    method = Km(k=k, m=m)
    method.anonymize(made.log).save(home / "release", force=force)
    release = read_release(home / "release")
    told = report(home / "release", original=made.log, people=people, remake=method.anonymize)
    write_whole(render(told), home / "release" / "report.html")
    return Demo(
        before=inspect(made.log, m=m),
        after=inspect(release.log, m=m),
        manifest=release.manifest,
        verdict=verify(release),
        n_planted=len(made.secrets),
        n_found_before=n_found(made.log, made.secrets),
        n_found_after=n_found(release.log, made.secrets),
        report=told,
        comparison=comparison,
    )


def n_found(log: QueryLog, secrets: Sequence[Secret]) -> int:
    """Count the planted people whose name and town lead to exactly one user of the log."""
    found, queries = 0, log.frame["query"].str.to_lowercase()
    for secret in secrets:
        has_terms = [queries.str.contains(rf"\b{term}\b") for term in secret.terms]
        users = [set(log.frame["user"].filter(has_term)) for has_term in has_terms]
        found += len(set.intersection(*users)) == 1
    return found
