"""`queryveil compare LOG -o DIR`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from queryveil.cli._commands import read_values
from queryveil.cli.options import JsonOption, LogArgument, Reading
from queryveil.errors import BadInput, BadParameter

if TYPE_CHECKING:
    from queryveil.comparison import Comparison, Plan

_JUDGING = "What they are judged by"


def compare(
    log: LogArgument,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="Folder for figures; no release.")],
    *,
    methods: Annotated[
        str | None, typer.Option(metavar="NAME,..", help="km,clump or km:k=5:m=2; all if not given.")
    ] = None,
    plan: Annotated[Path | None, typer.Option(metavar="FILE", help="Runs as TOML, in place of --methods.")] = None,
    exposure: Annotated[
        str | None,
        typer.Option(metavar="NAME[:N]", help="Attacker, or worst; likely_terms:4.", rich_help_panel=_JUDGING),
    ] = None,
    utility: Annotated[
        str | None, typer.Option(metavar="NAME", help="Measure; log_size_kept.", rich_help_panel=_JUDGING)
    ] = None,
    limit: Annotated[
        float | None, typer.Option(help="Most that may be found, 0 to 1; 0.05.", rich_help_panel=_JUDGING)
    ] = None,
    holdout: Annotated[
        float | None, typer.Option(help="Users left out as the public; 0.25.", rich_help_panel=_JUDGING)
    ] = None,
    public: Annotated[
        str | None, typer.Option(metavar="FILE", help="A public log in their place.", rich_help_panel=_JUDGING)
    ] = None,
    people: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Names and towns to look for.", rich_help_panel=_JUDGING)
    ] = None,
    values: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Table of term values.", rich_help_panel=_JUDGING)
    ] = None,
    targets: Annotated[int, typer.Option(help="People an attacker seeks.", rich_help_panel=_JUDGING)] = 1000,
    jobs: Annotated[int | None, typer.Option(help="Runs at a time; one per core.")] = None,
    seed: Annotated[int | None, typer.Option(help="Repeat a comparison.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Do again what DIR has already.")] = False,
    reading: Reading,
    as_json: JsonOption = False,
) -> None:
    """Put methods side by side on one log: what each keeps, what attackers find. Exit 1 if a promise is broken."""
    from queryveil.attacks.attacker import read_people
    from queryveil.cli.output import print_json, progress_bar
    from queryveil.comparison import compare as run

    chosen = _plan(methods, plan)
    if jobs is not None and jobs < 1:
        raise BadParameter("jobs", jobs, allowed="1 or more")
    with progress_bar():
        found = run(
            reading.read(log),
            chosen,
            folder=output,
            public=None if public is None else reading.read(public),
            people=() if people is None else read_people(people),
            values=None if values is None else read_values(values),
            exposure=exposure,
            utility=utility,
            limit=limit,
            holdout=holdout,
            n_targets=targets,
            jobs=jobs or os.cpu_count() or 1,
            seed=seed,
            again=force,
        )
    if as_json:
        print_json(found.to_dict())
    else:
        _print(found, output)
    for row in found.broken:
        typer.echo(f"BROKEN: {row.name}: {row.judged.verdict}", err=True)
    if all(row.judged.failed for row in found.rows):
        raise BadInput("no run came to an end; the notes say why")
    raise typer.Exit(1 if found.broken else 0)


def _plan(methods: str | None, plan: Path | None) -> Plan | None:
    from queryveil.comparison.plan import plan_of, read_plan

    if methods is not None and plan is not None:
        raise BadParameter("methods", methods, allowed="left out with --plan")
    if plan is not None:
        return read_plan(plan)
    return None if methods is None else plan_of(methods)


def _print(found: Comparison, folder: Path) -> None:
    from queryveil.cli.output import print_table

    columns, rows = found.table()
    print_table(columns, rows)
    typer.echo(f"\n{found.in_words()}")
    for caution in found.cautions():
        typer.echo(caution)
    if found.picked is not None:
        typer.echo(f"\n    {found.picked.command}\n")
    for note in found.notes():
        typer.echo(f"note: {note}", err=True)
    typer.echo(f"written to {folder}: compare.html, table.csv, plan.toml, results", err=True)
