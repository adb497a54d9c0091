"""Run a method from a log to a release folder, make its key, and print the summary."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from queryveil.cli.options import Engine, Reading, key_beside
from queryveil.cli.output import echo, print_facts, print_json, progress_bar
from queryveil.errors import BadFile

if TYPE_CHECKING:
    from queryveil.comparison.methods import Method
    from queryveil.release import Manifest


@contextmanager
def fresh_key(folder: Path, *, wanted: bool, force: bool) -> Iterator[Path | None]:
    """Yield a new key for its owner only, or None; it is gone in the end, unless it got its name with the release."""
    from queryveil.formats.atomic_folders import claimed, new_file, tidy
    from queryveil.release import new_key

    if not wanted:
        yield None
        return
    path = key_beside(folder)
    partial = path.with_name(f".{path.name}.partial")
    with claimed(folder):
        tidy(folder, path)
        if os.path.lexists(path) and not (force and path.is_file()):
            raise BadFile(str(path), "is already there; use it with --key, or replace it with --force")
        try:
            with new_file(partial, replace=True, so="nothing was released") as file:
                file.write(new_key())
            yield partial
        finally:
            with suppress(OSError):
                partial.unlink(missing_ok=True)


def make_release(
    method: Method,
    log: list[str],
    output: str,
    *,
    reading: Reading,
    engine: Engine | None = None,
    key: Path | None = None,
    force: bool,
    as_json: bool,
) -> None:
    """Read the log, anonymize it, write the release, with a new key beside it if there is one, and say what it is."""
    from queryveil.release import reserved

    spark, n_clicks = None if engine is None else engine.start(method=method), None
    if spark is None:
        with reserved(output, force=force), progress_bar():
            release = method.anonymize(reading.read(log))
            beside = {} if key is None else {key: key_beside(Path(output))}
            release.save(output, force=force, beside=beside)
            manifest = release.as_written
            if manifest.promise.released == "queries" and release.tallies.clicks is not None:
                n_clicks = release.tallies.n_clicks
    else:
        spark.check_target(output, force=force)
        with progress_bar():
            manifest = spark.anonymize(method, reading.read_on(spark, log), output, force=force)
    print_manifest(manifest, output, as_json=as_json, n_clicks=n_clicks)
    _tell_little(manifest)


_LITTLE = 0.25
_KEEPING_MORE = {
    "km": "a smaller --k or --m",
    "kdelta": "a smaller --k or --min-cluster-users 1",
    "swap": "a smaller --k or --min-query-users, or with it a longer --window",
    "clump": "a smaller --k",
    "partition": "a smaller --k",
    "query_threshold": "a smaller --k",
    "ec_2026": "a smaller --n-users or --cell-users",
}
"""By method, what makes a release larger."""


def _tell_little(manifest: Manifest) -> None:
    """Warn if nothing or hardly anything was released, and name the setting that would keep more."""
    counts, is_of_users = manifest.counts, manifest.parameters.get("unit") == "user"
    n_left, n_all, noun = counts.n_rows_after - manifest.changed.get("rows_added", 0), counts.n_rows_before, "rows"
    if is_of_users:
        # A transaction is a user, made of many rows.
        n_left, n_all, noun = counts.n_users_after, counts.n_users_before, "users"
    if n_all and not counts.n_rows_after:
        echo("nothing was released: no row is left; weaker settings or more users would help", err=True)
    elif n_left < _LITTLE * n_all and manifest.method in _KEEPING_MORE:
        settings = ", ".join(
            f"{name}={manifest.parameters[name]}"
            for name in ("k", "m", "n_users", "cell_users")
            if name in manifest.parameters
        )
        whose = "" if is_of_users else f" of {counts.n_users_before:,} users"
        echo(
            f"little was released: {n_left:,} of {n_all:,} {noun}{whose} with {settings}; "
            f"{_KEEPING_MORE[manifest.method]}, or a log of more users, keeps more",
            err=True,
        )


def print_manifest(manifest: Manifest, folder: str, *, as_json: bool, n_clicks: int | None = None) -> None:
    """Print what was released and what it cost; `n_clicks` if clicks were tallied."""
    from queryveil.release import event_facts, sizes, text_facts

    if as_json:
        print_json(manifest)
        return
    dropped, n_others = list(manifest.columns.dropped), manifest.columns.n_others_dropped
    if n_others:
        dropped.append(f"{n_others} more" if dropped else str(n_others))
    print_facts(
        {"promise": manifest.promise.in_words()}
        | {size.label: size.text for size in sizes(manifest, n_clicks=n_clicks)}
        | text_facts(manifest)
        | event_facts(manifest)
        | _noise(manifest)
        | {f"removed: {name.replace('_', ' ')}": n for name, n in manifest.removed.items() if n}
        | {f"changed: {name.replace('_', ' ')}": n for name, n in manifest.changed.items() if n}
        | {
            name.replace("_", " "): int(value) if value == int(value) and abs(value) >= 1 else value
            for name, value in manifest.measures.items()
        }
        | ({"columns dropped": ", ".join(dropped)} if dropped else {})
    )
    echo(*(f"warning: {warning}" for warning in manifest.warnings), err=True)
    check = "" if manifest.promise.promises_nothing else f"; check it with: queryveil verify {folder}"
    if "://" in folder:
        # Only Spark reaches such a place.
        check += " --engine spark"
    if manifest.promise.needs_original:
        check += " --original LOG"
    echo("", f"written to {folder}{check}", err=True)


def _noise(manifest: Manifest) -> dict[str, str]:
    return {
        f"noise {number}, {part.what}": f"{part.mechanism}, scale {part.scale:.4g}; noisy counts of {part.threshold} "
        f"and more are released (epsilon {part.epsilon:.4g}, delta {part.delta:.4g})"
        for number, part in enumerate(manifest.noise, start=1)
    }
