"""`queryveil anonymize kdelta`."""

from __future__ import annotations

from typing import Annotated

import typer

from queryveil.cli.anonymize.making import Reading, make_release
from queryveil.cli.anonymize.options import (
    BotsOption,
    ForceOption,
    IdsOption,
    KeepOption,
    KeyOption,
    OutputOption,
    SeedOption,
    TimeOption,
    column_policy,
)
from queryveil.cli.engines import EngineOption, MasterOption
from queryveil.cli.options import BadRowsOption, ColumnsOption, FormatOption, JsonOption, LogArgument


def kdelta(
    log: LogArgument,
    output: OutputOption,
    k: Annotated[int, typer.Option(help="Users with equal shares.")] = 5,
    delta: Annotated[float, typer.Option(help="How far like queries may differ.")] = 0.5,
    mode: Annotated[str, typer.Option(help="exact, or paper: no promise.")] = "exact",
    no_additions: Annotated[bool, typer.Option("--no-additions", help="Only leave rows out, add none.")] = False,
    same_texts: Annotated[bool, typer.Option("--same-texts", help="Give k users the same texts, too.")] = False,
    centroids: Annotated[str, typer.Option(help="best: least change; or paper.")] = "best",
    min_cluster_users: Annotated[int, typer.Option(help="Leave out rarer kinds of queries.")] = 2,
    min_query_users: Annotated[int, typer.Option(help="Leave out queries of fewer.")] = 1,
    bots: BotsOption = 100,
    ids: IdsOption = "fresh",
    key: KeyOption = None,
    time: TimeOption = "day",
    keep: KeepOption = None,
    force: ForceOption = False,
    seed: SeedOption = None,
    file_format: FormatOption = None,
    columns: ColumnsOption = None,
    bad_rows: BadRowsOption = "fail",
    engine: EngineOption = "local",
    master: MasterOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add and leave out queries until k users have the same shares of queries and clicks."""
    from queryveil.methods import Kdelta

    method = Kdelta(
        k=k,
        delta=delta,
        mode=mode,
        additions=not no_additions,
        same_texts=same_texts,
        centroids=centroids,
        min_cluster_users=min_cluster_users,
        min_query_users=min_query_users,
        bot_threshold=bots or None,
        columns=column_policy(ids=ids, key=key, time=time, keep=keep),
        seed=seed,
    )
    reading = Reading(file_format=file_format, columns=columns, bad_rows=bad_rows)
    make_release(method, log, output, reading=reading, force=force, as_json=as_json, engine=engine, master=master)
