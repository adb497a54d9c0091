"""`queryveil anonymize METHOD LOG -o DIR`: one subcommand per method."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from queryveil.cli.options import (
    BadRowsOption,
    ColumnsOption,
    FormatOption,
    JsonOption,
    LogArgument,
    load_taxonomy,
    parse_list,
    read,
)
from queryveil.errors import BadFile, BadParameter

if TYPE_CHECKING:
    import polars as pl

    from queryveil.columns import ColumnReport
    from queryveil.methods import Clump, Km, Partition
    from queryveil.release import Manifest

app = typer.Typer(no_args_is_help=True, help="Anonymize a log; each method has its own --help.")

OutputOption = Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="Release folder to make.")]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace DIR.")]
SeedOption = Annotated[int | None, typer.Option(help="Repeat a run; not for releases.")]
_RELEASE = "What leaves beside the queries"


@app.callback()
def _methods() -> None:
    pass


@app.command("km")
def km(
    log: LogArgument,
    output: OutputOption,
    k: Annotated[int, typer.Option(help="Users who must share terms, 2 or more.")] = 10,
    m: Annotated[str, typer.Option(help="Terms that may be known, or none: all.")] = "3",
    target: Annotated[
        str, typer.Option(help="Keep most log_size, users, bid, clicks, impressions, revenue; or random, fis.")
    ] = "log_size",
    values: Annotated[Path | None, typer.Option(metavar="FILE", help="Table of term,bid,clicks,impressions.")] = None,
    taxonomy: Annotated[
        str | None, typer.Option(metavar="wordnet|FILE", help="Move terms up in it before deleting.")
    ] = None,
    window: Annotated[str | None, typer.Option(help="Cut histories by time: 12h, 1d, 7d.")] = None,
    no_restore: Annotated[bool, typer.Option("--no-restore", help="Only delete, as the paper does.")] = False,
    bots: Annotated[int, typer.Option(help="A bot asks more in a session; 0: no bots.")] = 100,
    ids: Annotated[str, typer.Option(help="fresh, keyed or keep.", rich_help_panel=_RELEASE)] = "fresh",
    key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Secret for keyed ids.", rich_help_panel=_RELEASE)
    ] = None,
    time: Annotated[str, typer.Option(help="day, hour, keep or drop.", rich_help_panel=_RELEASE)] = "day",
    keep: Annotated[
        str | None, typer.Option(metavar="NAME,..", help="Other columns to keep.", rich_help_panel=_RELEASE)
    ] = None,
    force: ForceOption = False,
    seed: SeedOption = None,
    file_format: FormatOption = None,
    columns: ColumnsOption = None,
    bad_rows: BadRowsOption = "fail",
    as_json: JsonOption = False,
) -> None:
    """Delete terms until any m terms of a user are shared by k users."""
    from queryveil.columns import ColumnPolicy
    from queryveil.methods import Km, Target

    method = Km(
        k=k,
        m=parse_m(m),
        target=Target(target) if target in list(Target) else target,  # type: ignore[arg-type]
        values=read_values(values) if values else None,
        restore=not no_restore,
        taxonomy=load_taxonomy(taxonomy),
        window=window,
        bot_threshold=bots or None,
        columns=ColumnPolicy(ids=ids, time=time, keep=parse_list(keep), key=read_key(key)),  # type: ignore[arg-type]
        seed=seed,
    )
    reading = Reading(file_format=file_format, columns=columns, bad_rows=bad_rows)
    _make_release(method, log, output, reading=reading, force=force, as_json=as_json)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The options that say how to read the log."""

    file_format: str | None
    columns: str | None
    bad_rows: str


TaxonomyOption = Annotated[str, typer.Option(metavar="wordnet|FILE", help="WordNet's nouns, or a CSV of child,parent.")]
UnitOption = Annotated[str, typer.Option(help="A transaction is a user, or a query.")]


@app.command("clump")
def clump(
    log: LogArgument,
    output: OutputOption,
    k: Annotated[int, typer.Option(help="Transactions that must be identical, 2 or more.")] = 5,
    taxonomy: TaxonomyOption = "wordnet",
    unit: UnitOption = "user",
    distinct: Annotated[bool, typer.Option("--distinct", help="Take each item of a transaction once.")] = False,
    dedupe: Annotated[bool, typer.Option("--dedupe", help="Release each item of a cluster once (Clump2).")] = False,
    paper: Annotated[bool, typer.Option("--paper", help="The paper's algorithm to the letter.")] = False,
    r: Annotated[int, typer.Option(help="Open clusters that are compared.")] = 10,
    force: ForceOption = False,
    seed: SeedOption = None,
    file_format: FormatOption = None,
    columns: ColumnsOption = None,
    bad_rows: BadRowsOption = "fail",
    as_json: JsonOption = False,
) -> None:
    """Put similar users together and release what all of a cluster have in common."""
    from queryveil.methods import Clump

    method = Clump(
        k=k,
        r=r,
        taxonomy=load_taxonomy(taxonomy),
        unit=unit,  # type: ignore[arg-type]
        distinct=distinct,
        dedupe=dedupe,
        paper=paper,
        seed=seed,
    )
    reading = Reading(file_format=file_format, columns=columns, bad_rows=bad_rows)
    _make_release(method, log, output, reading=reading, force=force, as_json=as_json)


@app.command("partition")
def partition(
    log: LogArgument,
    output: OutputOption,
    k: Annotated[int, typer.Option(help="Transactions that must be identical, 2 or more.")] = 5,
    taxonomy: TaxonomyOption = "wordnet",
    unit: UnitOption = "user",
    force: ForceOption = False,
    seed: SeedOption = None,
    file_format: FormatOption = None,
    columns: ColumnsOption = None,
    bad_rows: BadRowsOption = "fail",
    as_json: JsonOption = False,
) -> None:
    """Say of each user what at least k say in common, from the top of a taxonomy down."""
    from queryveil.methods import Partition

    method = Partition(k=k, taxonomy=load_taxonomy(taxonomy), unit=unit, seed=seed)  # type: ignore[arg-type]
    reading = Reading(file_format=file_format, columns=columns, bad_rows=bad_rows)
    _make_release(method, log, output, reading=reading, force=force, as_json=as_json)


def parse_m(text: str) -> int | None:
    """Read `3` or `none`.

    >>> parse_m("none") is None, parse_m("3")
    (True, 3)
    """
    if text.lower() == "none":
        return None
    try:
        return int(text)
    except ValueError:
        raise BadParameter("m", text, allowed="1 or more, or none for whole histories") from None


def read_key(path: Path | None) -> bytes | None:
    """Read the secret for keyed ids."""
    if path is None:
        return None
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadFile(str(path), f"the key cannot be read: {error.strerror}") from None


def read_values(path: Path) -> pl.DataFrame:
    """Read a table of term values."""
    import polars as pl

    try:
        return pl.read_parquet(path) if path.suffix == ".parquet" else pl.read_csv(path)
    except OSError as error:
        raise BadFile(
            str(path), f"the table of term values cannot be read: {error.strerror or 'no such file'}"
        ) from None
    except pl.exceptions.PolarsError:
        # Privacy: the cause would quote the rows, so it is dropped.
        raise BadFile(str(path), "not a CSV or Parquet table with the columns term,bid,clicks,impressions") from None


def _make_release(
    method: Clump | Km | Partition, log: list[str], output: Path, *, reading: Reading, force: bool, as_json: bool
) -> None:
    from queryveil.cli.output import progress_bar
    from queryveil.release import check_target

    check_target(output, force=force)
    with progress_bar():
        release = method.anonymize(
            read(log, file_format=reading.file_format, columns=reading.columns, bad_rows=reading.bad_rows)
        )
        release.save(output, force=force)
    _print_manifest(release.manifest, output, as_json=as_json)


def _print_manifest(manifest: Manifest, folder: Path, *, as_json: bool) -> None:
    from queryveil.cli.output import print_facts, print_json

    if as_json:
        print_json(manifest)
        return
    print_facts(
        {"promise": manifest.promise.in_words()}
        | _sizes(manifest)
        | {f"removed: {name.replace('_', ' ')}": n for name, n in manifest.removed.items() if n}
        | {f"changed: {name.replace('_', ' ')}": n for name, n in manifest.changed.items() if n}
        | {name.replace("_", " "): value for name, value in manifest.measures.items()}
        | ({"columns dropped": _dropped(manifest.columns)} if _dropped(manifest.columns) else {})
    )
    for warning in manifest.warnings:
        typer.echo(f"warning: {warning}", err=True)
    typer.echo(f"\nwritten to {folder}; check it with: queryveil verify {folder}", err=True)


def _sizes(manifest: Manifest) -> dict[str, object]:
    from queryveil.cli.output import share
    from queryveil.guarantees import TransactionAnonymity

    counts = manifest.counts
    users = f"{counts.n_users_after:,} of {counts.n_users_before:,} kept"
    if isinstance(manifest.promise, TransactionAnonymity):
        return {
            "transactions": counts.n_rows_after,
            "made from": f"{counts.n_rows_before:,} rows of {counts.n_users_before:,} users",
        }
    if getattr(manifest.promise, "window", None):
        users = f"{counts.n_users_after:,} ids, one per user and window; {counts.n_users_before:,} users before"
    else:
        users += f" ({share(counts.n_users_after, counts.n_users_before)})"
    rows = f"{counts.n_rows_after:,} of {counts.n_rows_before:,} kept"
    return {"rows": f"{rows} ({share(counts.n_rows_after, counts.n_rows_before)})", "users": users}


def _dropped(report: ColumnReport) -> str:
    others = report.n_others_dropped
    return ", ".join([*report.dropped, *([f"{others} more" if report.dropped else str(others)] if others else [])])
