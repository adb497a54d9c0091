"""`queryveil demo`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from queryveil.cli.options import JsonOption

if TYPE_CHECKING:
    from queryveil.comparison.demo import Demo


def demo(
    output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="Where the files go.")] = Path(
        "queryveil-demo"
    ),
    force: Annotated[bool, typer.Option("--force", help="Replace what an earlier demo left in DIR.")] = False,
    users: Annotated[int, typer.Option(help="How many made-up users.")] = 4000,
    as_json: JsonOption = False,
) -> None:
    """Take a made-up log through everything, in two minutes."""
    from queryveil.cli.output import print_json, progress_bar
    from queryveil.comparison.demo import demo as run

    with progress_bar():
        output.mkdir(parents=True, exist_ok=True)
        done = run(output, users=users, jobs=os.cpu_count() or 1, force=force)
    if as_json:
        print_json(done.to_dict())
    else:
        _print(done, output)
    is_well = done.verdict.holds and done.n_found_after == 0 and not done.comparison.broken
    raise typer.Exit(0 if is_well else 1)


def _print(done: Demo, folder: Path) -> None:
    from queryveil.cli.output import print_table

    before, after, promise = done.before, done.after, done.manifest.promise
    size = max(before.alone)
    counts = done.manifest.counts
    typer.echo(
        f"A made-up search log: {before.n_rows:,} queries of {before.n_users:,} people.\n"
        f"\n"
        f"Before  {before.alone[size]:,} of {before.n_users:,} people stood alone: "
        f"{size} of their own search terms were enough to pick them out.\n"
        f"        {done.n_found_before} of {done.n_planted} people whose name and town we know were found.\n"
        f"After   {after.alone[size]:,} of {after.n_users:,} people stand alone.\n"
        f"        {done.n_found_after} of {done.n_planted} people whose name and town we know were found.\n"
        f"\n"
        f"Promise {promise.in_words()}\n"
        f"Verdict {done.verdict.in_words()} (checked on the written files)\n"
        f"Cost    {counts.n_rows_after:,} of {counts.n_rows_before:,} queries and "
        f"{counts.n_users_after:,} of {counts.n_users_before:,} people are left.\n"
        f"\n"
        f"All methods side by side: what each keeps, and how many people are found by 4 of their terms\n"
    )
    print_table(*done.comparison.table())
    typer.echo(
        "\n".join(["", done.comparison.in_words(), *done.comparison.cautions(), *done.comparison.left_out]) + "\n"
        f"\n"
        f"Look    {folder / 'release' / 'report.html'} (the report on the release)\n"
        f"        {folder / 'comparison' / 'compare.html'} (the frontier between the methods)\n"
        f"Next    queryveil inspect YOUR_LOG, then queryveil compare YOUR_LOG -o DIR"
    )
