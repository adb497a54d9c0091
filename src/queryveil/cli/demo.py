"""`queryveil demo`."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from queryveil.cli.options import JsonOption


def demo(
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="DIR", help="Keep the log and the release here.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace what an earlier demo left in DIR.")] = False,
    users: Annotated[int, typer.Option(help="How many made-up users.")] = 4000,
    as_json: JsonOption = False,
) -> None:
    """Take a made-up log through everything, in a minute."""
    from queryveil.cli.output import print_json, progress_bar
    from queryveil.demo import demo as run

    with TemporaryDirectory(prefix="queryveil-demo-") as scratch, progress_bar():
        if output is not None:
            output.mkdir(parents=True, exist_ok=True)
        done = run(output or scratch, users=users, force=force)
    code = 0 if done.verdict.holds and done.n_found_after == 0 else 1
    if as_json:
        print_json(done)
        raise typer.Exit(code)
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
        f"Next    queryveil inspect YOUR_LOG, then queryveil anonymize km YOUR_LOG -o DIR"
    )
    raise typer.Exit(code)
