"""Run a method from a log to a release folder, and print the summary."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import typer

from queryveil.cli.options import parse_columns, read

if TYPE_CHECKING:
    from queryveil.data import QueryLog
    from queryveil.release import ColumnReport, Manifest, Release


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The options that say how to read the log."""

    file_format: str | None
    columns: str | None
    bad_rows: str


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
    engine: str = "local",
    master: str | None = None,
) -> None:
    """Read the log, anonymize it, write the release and say what it is."""
    from queryveil.cli.engines import spark_of
    from queryveil.cli.output import progress_bar
    from queryveil.release import check_target

    spark = spark_of(engine, master, method=method)
    if spark is None:
        check_target(output, force=force)
        with progress_bar():
            release = method.anonymize(
                read(log, file_format=reading.file_format, columns=reading.columns, bad_rows=reading.bad_rows)
            )
            release.save(output, force=force)
        manifest, options = release.manifest, ""
    else:
        spark.check_target(output, force=force)
        with progress_bar():
            there = spark.read_log(
                log, format=reading.file_format, columns=parse_columns(reading.columns), bad_rows=reading.bad_rows
            )
            manifest = spark.anonymize(method, there, output, force=force)
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
