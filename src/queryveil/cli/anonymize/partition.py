"""`queryveil anonymize partition`."""

from __future__ import annotations

from typing import Annotated

import typer

from queryveil.cli.anonymize.making import Reading, make_release
from queryveil.cli.anonymize.options import ForceOption, OutputOption, SeedOption, TaxonomyOption, UnitOption
from queryveil.cli.engines import EngineOption, MasterOption
from queryveil.cli.options import BadRowsOption, ColumnsOption, FormatOption, JsonOption, LogArgument, load_taxonomy


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
    engine: EngineOption = "local",
    master: MasterOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say of each user what at least k say in common, from the top of a taxonomy down."""
    from queryveil.methods import Partition

    method = Partition(k=k, taxonomy=load_taxonomy(taxonomy), unit=unit, seed=seed)  # type: ignore[arg-type]
    reading = Reading(file_format=file_format, columns=columns, bad_rows=bad_rows)
    make_release(method, log, output, reading=reading, force=force, as_json=as_json, engine=engine, master=master)
