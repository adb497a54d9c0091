"""The whole way with a made-up log: what is in it, what a release of it promises, and whether that holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from queryveil.callable_package import make_callable
from queryveil.inspection import Inspection, inspect
from queryveil.log import QueryLog
from queryveil.methods import Km
from queryveil.release import Manifest, check_target, read_release
from queryveil.synth import Secret, synthesize, write_synthetic
from queryveil.verify import Verdict, verify


@dataclass(frozen=True, slots=True, kw_only=True)
class Demo:
    """What the demo found: the log before and after, the promise, its verdict, and the planted people."""

    before: Inspection
    after: Inspection
    manifest: Manifest
    verdict: Verdict
    n_planted: int
    n_found_before: int
    n_found_after: int


def demo(
    folder: str | Path, *, users: int = 4000, k: int = 5, m: int = 2, seed: int = 2006, force: bool = False
) -> Demo:
    """Make up a log, anonymize it into `folder`/release, verify the files and look for the planted people."""
    home = Path(folder)
    check_target(home / "release", force=force)
    made = synthesize(users=users, seed=seed)
    write_synthetic(made, home / "log.tsv", force=force)
    Km(k=k, m=m).anonymize(made.log).save(home / "release", force=force)
    release = read_release(home / "release")
    return Demo(
        before=inspect(made.log, m=m),
        after=inspect(release.log, m=m),
        manifest=release.manifest,
        verdict=verify(release),
        n_planted=len(made.secrets),
        n_found_before=n_found(made.log, made.secrets),
        n_found_after=n_found(release.log, made.secrets),
    )


def n_found(log: QueryLog, secrets: Sequence[Secret]) -> int:
    """Count the planted people whose name and town lead to exactly one user of the log."""
    found = 0
    for secret in secrets:
        users = pl.lit(value=True)
        for term in secret.terms:
            with_term = log.frame.filter(pl.col("query").str.to_lowercase().str.contains(rf"\b{term}\b"))[
                "user"
            ].unique()
            users = users & pl.col("user").is_in(with_term.implode())
        found += log.frame.filter(users)["user"].n_unique() == 1
    return found


make_callable(__name__, verb="demo")
