"""`queryveil anonymize swap`."""

from __future__ import annotations

from pathlib import Path
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
from queryveil.cli.engines import EngineOption, MasterOption, check_engine
from queryveil.cli.options import (
    BadRowsOption,
    CategoriesOption,
    ColumnsOption,
    FormatOption,
    FrequenciesOption,
    JsonOption,
    LogArgument,
    RecommendationsOption,
)
from queryveil.cli.stream_options import GrowthOption, KOption, MaxPoolOption
from queryveil.errors import NotYet


def swap(
    log: LogArgument,
    output: OutputOption,
    k: KOption = 10,
    l: Annotated[int | None, typer.Option(help="Users in it; k if not given, 2 in the paper.")] = None,  # noqa: E741
    growth: GrowthOption = 1.2,
    max_pool: MaxPoolOption = 10_000,
    drain: Annotated[str, typer.Option(help="suppress or release what waits at the end.")] = "suppress",
    unclassified: Annotated[str, typer.Option(help="pool or drop queries of no category.")] = "pool",
    order: Annotated[str, typer.Option(help="Rows arrive by time, or as in the file.")] = "time",
    classifier: Annotated[str, typer.Option(help="evidence or paper.")] = "evidence",
    frequencies: FrequenciesOption = None,
    recommendations: RecommendationsOption = None,
    categories: CategoriesOption = None,
    ids: IdsOption = "keyed",
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
    """Return each query to somebody else who asked for the same kind of thing."""
    from queryveil.cli.anonymize.fresh_keys import fresh_key, key_beside
    from queryveil.methods import Swap
    from queryveil.release import check_target
    from queryveil.text.classifier import Classifier

    check_engine(engine, master)
    if engine != "local":
        raise NotYet(
            "swap of a whole log on Spark",
            "its pools see every arrival in turn",
            instead="see queryveil.spark.streaming for live events, or leave out --engine",
        )
    folder = Path(output)
    tables = {"frequencies": frequencies, "recommendations": recommendations, "categories": categories}
    check_target(output, force=force)
    with fresh_key(folder, wanted=ids == "keyed" and key is None, force=force) as made:
        method = Swap(
            k=k,
            l=l,
            growth=growth,
            max_pool=max_pool,
            drain=drain,
            unclassified=unclassified,
            order=order,
            classifier=Classifier.from_tables(**tables, kind=classifier),
            columns=column_policy(ids=ids, key=made or key, time=time, keep=keep),
            seed=seed,
        )
        reading = Reading(file_format=file_format, columns=columns, bad_rows=bad_rows)
        make_release(method, log, output, reading=reading, force=force, as_json=as_json)
    if made is not None:
        typer.echo(f"key of the user ids: {key_beside(folder)}; verify needs it, keep it to yourself", err=True)
