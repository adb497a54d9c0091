"""`queryveil anonymize clump`."""

from __future__ import annotations

from typing import Annotated

import typer

from queryveil.cli.anonymize.making import Reading, make_release
from queryveil.cli.anonymize.options import ForceOption, OutputOption, SeedOption, TaxonomyOption, UnitOption
from queryveil.cli.engines import EngineOption, MasterOption
from queryveil.cli.options import BadRowsOption, ColumnsOption, FormatOption, JsonOption, LogArgument, load_taxonomy


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
    engine: EngineOption = "local",
    master: MasterOption = None,
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
    make_release(method, log, output, reading=reading, force=force, as_json=as_json, engine=engine, master=master)
