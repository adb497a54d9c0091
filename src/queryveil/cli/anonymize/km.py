"""`queryveil anonymize km`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
from queryveil.cli.options import BadRowsOption, ColumnsOption, FormatOption, JsonOption, LogArgument, load_taxonomy
from queryveil.errors import BadFile, BadParameter

if TYPE_CHECKING:
    import polars as pl


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
    """Delete terms until any m terms of a user are shared by k users."""
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
        columns=column_policy(ids=ids, key=key, time=time, keep=keep),
        seed=seed,
    )
    reading = Reading(file_format=file_format, columns=columns, bad_rows=bad_rows)
    make_release(method, log, output, reading=reading, force=force, as_json=as_json, engine=engine, master=master)


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
