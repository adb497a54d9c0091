"""From a log to a release folder, and what is said about it."""

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
    """Return what was released and what it cost; `n_clicks` if clicks were tallied, `options` to verify it with."""
    from queryveil.cli.output import print_facts, print_json
    from queryveil.guarantees import NoPromise, SwapAnonymity

    if as_json:
        print_json(manifest)
        return
    print_facts(
        {"promise": manifest.promise.in_words()}
        | _sizes(manifest, n_clicks=n_clicks)
        | {f"removed: {name.replace('_', ' ')}": n for name, n in manifest.removed.items() if n}
        | {f"changed: {name.replace('_', ' ')}": n for name, n in manifest.changed.items() if n}
        | {name.replace("_", " "): _figure(value) for name, value in manifest.measures.items()}
        | ({"columns dropped": _dropped(manifest.columns)} if _dropped(manifest.columns) else {})
    )
    for warning in manifest.warnings:
        typer.echo(f"warning: {warning}", err=True)
    check = "" if isinstance(manifest.promise, NoPromise) else f"; check it with: queryveil verify {folder}{options}"
    if isinstance(manifest.promise, SwapAnonymity):
        check += " --original LOG"
    typer.echo(f"\nwritten to {folder}{check}", err=True)


def _figure(value: float) -> int | float:
    return int(value) if value == int(value) and abs(value) >= 1 else value


def _sizes(manifest: Manifest, *, n_clicks: int | None) -> dict[str, object]:
    from queryveil.cli.output import share
    from queryveil.guarantees import DifferentialPrivacy, Linkability, TransactionAnonymity

    counts = manifest.counts
    if isinstance(manifest.promise, DifferentialPrivacy):
        return _noisy_sizes(manifest, n_clicks=n_clicks)
    users = f"{counts.n_users_after:,} of {counts.n_users_before:,} kept"
    if isinstance(manifest.promise, Linkability):
        return {"groups": counts.n_rows_after, "people in them": users}
    if isinstance(manifest.promise, TransactionAnonymity):
        return {
            "transactions": counts.n_rows_after,
            "made from": f"{counts.n_rows_before:,} rows of {counts.n_users_before:,} users",
        }
    if getattr(manifest.promise, "window", None):
        users = f"{counts.n_users_after:,} ids, one per user and window; {counts.n_users_before:,} users before"
    else:
        users += f" ({share(counts.n_users_after, counts.n_users_before)})"
    n_added = manifest.changed.get("rows_added", 0)
    n_kept = counts.n_rows_after - n_added
    rows = f"{n_kept:,} of {counts.n_rows_before:,} kept ({share(n_kept, counts.n_rows_before)})"
    if n_added:
        rows = f"{counts.n_rows_after:,}: {rows}, {n_added:,} made up"
    return {"rows": rows, "users": users}


def _noisy_sizes(manifest: Manifest, *, n_clicks: int | None) -> dict[str, object]:
    """Return what left, and from which counts on; how large the log was is not told."""
    counts = manifest.counts
    sizes: dict[str, object] = {"queries": counts.n_rows_after}
    if n_clicks is not None:
        sizes["clicks"] = f"{n_clicks:,} {'pair' if n_clicks == 1 else 'pairs'} of a query and a URL"
    if manifest.parameters.get("synthesized"):
        sizes = {"rows": f"{counts.n_rows_after:,}, all made up", "users": f"{counts.n_users_after:,}, all made up"}
    for number, part in enumerate(manifest.noise, start=1):
        spent = f"epsilon {part.epsilon:.4g}, delta {part.delta:.4g}"
        sizes[f"noise {number}, {part.what}"] = (
            f"{part.mechanism}, scale {part.scale:.4g}; noisy counts of {part.threshold} and more leave ({spent})"
        )
    return sizes


def _dropped(report: ColumnReport) -> str:
    others = report.n_others_dropped
    return ", ".join([*report.dropped, *([f"{others} more" if report.dropped else str(others)] if others else [])])
