"""`queryveil anonymize token-hash`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from queryveil.cli.anonymize.making import Reading, make_release
from queryveil.cli.anonymize.options import (
    ForceOption,
    IdsOption,
    KeepOption,
    OutputOption,
    SeedOption,
    TimeOption,
    column_policy,
    read_key,
)
from queryveil.cli.options import BadRowsOption, ColumnsOption, FormatOption, JsonOption, LogArgument


def token_hash(
    log: LogArgument,
    output: OutputOption,
    key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Secret of hashes and keyed ids; if none, a new one in DIR.key.")
    ] = None,
    ids: IdsOption = "fresh",
    time: TimeOption = "day",
    keep: KeepOption = None,
    force: ForceOption = False,
    seed: SeedOption = None,
    file_format: FormatOption = None,
    columns: ColumnsOption = None,
    bad_rows: BadRowsOption = "fail",
    as_json: JsonOption = False,
) -> None:
    """Replace every term by a keyed hash. Promises nothing."""
    from queryveil.cli.anonymize.fresh_keys import fresh_key, key_beside
    from queryveil.methods import TokenHash
    from queryveil.release import check_target

    check_target(output, force=force)
    with fresh_key(Path(output), wanted=key is None, force=force) as made:
        secret = made or key
        policy = column_policy(ids=ids, key=secret if ids == "keyed" else None, time=time, keep=keep)
        method = TokenHash(key=read_key(secret), columns=policy, seed=seed)
        reading = Reading(file_format=file_format, columns=columns, bad_rows=bad_rows)
        make_release(method, log, output, reading=reading, force=force, as_json=as_json)
    if made is not None:
        typer.echo(f"key of the hashes: {key_beside(Path(output))}; it undoes them, keep it to yourself", err=True)
