"""Run a method from a log to a release folder, and print the summary."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import typer

from queryveil.cli.options import Engine, Reading

if TYPE_CHECKING:
    from queryveil.data import QueryLog
    from queryveil.release import ColumnReport, Manifest, Release


class Method(Protocol):
    """Whatever makes a release of a log."""

    def anonymize(self, log: QueryLog, /) -> Release:
        """Return a release of the log that keeps the promise."""


def make_release(
    method: Method,
    log: list[str],
    output: str,
    *,
    reading: Reading,
    force: bool,
    as_json: bool,
    engine: Engine | None = None,
) -> None:
    """Read the log, anonymize it, write the release and say what it is."""
    from queryveil.cli.output import progress_bar
    from queryveil.release import check_target

    spark = None if engine is None else engine.start(method=method)
    if spark is None:
        check_target(output, force=force)
        with progress_bar():
            release = method.anonymize(reading.read(log))
            release.save(output, force=force)
        manifest, options = release.manifest, ""
    else:
        spark.check_target(output, force=force)
        with progress_bar():
            manifest = spark.anonymize(method, reading.read_on(spark, log), output, force=force)
        options = on_spark(output)
    print_manifest(manifest, output, as_json=as_json, options=options)
    if manifest.counts.n_rows_before and not manifest.counts.n_rows_after:
        typer.echo("nothing leaves: not one row is left; weaker settings or more users would help", err=True)


def on_spark(folder: str) -> str:
    """Return the options to verify a release with that lies where only Spark reaches."""
    return " --engine spark" if "://" in folder else ""


def print_manifest(
    manifest: Manifest, folder: str | Path, *, as_json: bool, n_clicks: int | None = None, options: str = ""
) -> None:
    """Print what was released and what it cost; `n_clicks` if clicks were tallied, `options` to verify it with."""
    from queryveil.cli.output import print_facts, print_json
    from queryveil.release import sizes

    if as_json:
        print_json(manifest)
        return
    print_facts(
        {"promise": manifest.promise.in_words()}
        | {size.label: size.text for size in sizes(manifest, n_clicks=n_clicks)}
        | _noise(manifest)
        | {f"removed: {name.replace('_', ' ')}": n for name, n in manifest.removed.items() if n}
        | {f"changed: {name.replace('_', ' ')}": n for name, n in manifest.changed.items() if n}
        | {name.replace("_", " "): _figure(value) for name, value in manifest.measures.items()}
        | ({"columns dropped": _dropped(manifest.columns)} if _dropped(manifest.columns) else {})
    )
    for warning in manifest.warnings:
        typer.echo(f"warning: {warning}", err=True)
    check = "" if manifest.promise.promises_nothing else f"; check it with: queryveil verify {folder}{options}"
    if manifest.promise.needs_original:
        check += " --original LOG"
    typer.echo(f"\nwritten to {folder}{check}", err=True)


def _figure(value: float) -> int | float:
    return int(value) if value == int(value) and abs(value) >= 1 else value


def _noise(manifest: Manifest) -> dict[str, str]:
    """Return the noise of each round, and from which counts on queries were released."""
    found = {}
    for number, part in enumerate(manifest.noise, start=1):
        spent = f"epsilon {part.epsilon:.4g}, delta {part.delta:.4g}"
        found[f"noise {number}, {part.what}"] = (
            f"{part.mechanism}, scale {part.scale:.4g}; noisy counts of {part.threshold} and more leave ({spent})"
        )
    return found


def _dropped(report: ColumnReport) -> str:
    others = report.n_others_dropped
    return ", ".join([*report.dropped, *([f"{others} more" if report.dropped else str(others)] if others else [])])
