"""`queryveil anonymize pseudonymise`."""

from __future__ import annotations

from typing import Annotated

import typer

from queryveil.cli.anonymize.making import Reading, make_release
from queryveil.cli.anonymize.options import (
    ForceOption,
    IdsOption,
    KeyOption,
    OutputOption,
    SeedOption,
    TimeOption,
    column_policy,
)
from queryveil.cli.options import BadRowsOption, ColumnsOption, FormatOption, JsonOption, LogArgument


def pseudonymise(
    log: LogArgument,
    output: OutputOption,
    ids: IdsOption = "fresh",
    key: KeyOption = None,
    time: TimeOption = "keep",
    keep: Annotated[
        str,
        typer.Option(
            metavar="NAME,..", help="Other columns to keep.", rich_help_panel="What leaves beside the queries"
        ),
    ] = "rank,url",
    force: ForceOption = False,
    seed: SeedOption = None,
    file_format: FormatOption = None,
    columns: ColumnsOption = None,
    bad_rows: BadRowsOption = "fail",
    as_json: JsonOption = False,
) -> None:
    """Change the user ids and nothing else, as AOL did. Promises nothing."""
    from queryveil.methods import Pseudonymise

    method = Pseudonymise(columns=column_policy(ids=ids, key=key, time=time, keep=keep), seed=seed)
    reading = Reading(file_format=file_format, columns=columns, bad_rows=bad_rows)
    make_release(method, log, output, reading=reading, force=force, as_json=as_json)
