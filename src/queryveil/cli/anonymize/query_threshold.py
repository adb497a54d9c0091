"""`queryveil anonymize query-threshold`."""

from __future__ import annotations

from typing import Annotated

import typer

from queryveil.cli.anonymize.making import Reading, make_release
from queryveil.cli.anonymize.options import (
    ForceOption,
    IdsOption,
    KeepOption,
    KeyOption,
    OutputOption,
    SeedOption,
    TimeOption,
    column_policy,
)
from queryveil.cli.options import BadRowsOption, ColumnsOption, FormatOption, JsonOption, LogArgument


def query_threshold(
    log: LogArgument,
    output: OutputOption,
    k: Annotated[int, typer.Option(help="Users who must have asked a query.")] = 5,
    ids: IdsOption = "fresh",
    key: KeyOption = None,
    time: TimeOption = "day",
    keep: KeepOption = None,
    force: ForceOption = False,
    seed: SeedOption = None,
    file_format: FormatOption = None,
    columns: ColumnsOption = None,
    bad_rows: BadRowsOption = "fail",
    as_json: JsonOption = False,
) -> None:
    """Keep queries that k users asked, drop the rest. Promises nothing."""
    from queryveil.methods import QueryThreshold

    method = QueryThreshold(k=k, columns=column_policy(ids=ids, key=key, time=time, keep=keep), seed=seed)
    reading = Reading(file_format=file_format, columns=columns, bad_rows=bad_rows)
    make_release(method, log, output, reading=reading, force=force, as_json=as_json)
