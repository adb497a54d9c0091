"""`queryveil measure LOG DIR`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from queryveil.cli.anonymize.km import read_values
from queryveil.cli.engines import EngineOption, MasterOption, refuse_on_spark, spark_of
from queryveil.cli.options import (
    BadRowsOption,
    ColumnsOption,
    JsonOption,
    OriginalFormatOption,
    load_taxonomy,
    parse_columns,
    read,
    read_people,
)
from queryveil.cli.release_keys import OriginalArgument, PlaceArgument, ReleaseKeyOption, key_of

if TYPE_CHECKING:
    from queryveil.utility import Measures


def measure(
    log: OriginalArgument,
    place: PlaceArgument,
    key: ReleaseKeyOption = None,
    values: Annotated[Path | None, typer.Option(metavar="FILE", help="Table of term,bid,clicks,impressions.")] = None,
    taxonomy: Annotated[
        str | None, typer.Option(metavar="wordnet|FILE", help="The taxonomy it was made with, if not WordNet's.")
    ] = None,
    membership: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Who is in which group, as plink wrote it.")
    ] = None,
    file_format: OriginalFormatOption = None,
    columns: ColumnsOption = None,
    bad_rows: BadRowsOption = "fail",
    engine: EngineOption = "local",
    master: MasterOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure what a release is still good for, beside the log it was made from."""
    from queryveil.cli.output import progress_bar
    from queryveil.data import Groups
    from queryveil.formats.groups import read_membership
    from queryveil.release import read_release
    from queryveil.utility import measure as judge

    if engine != "local":
        refuse_on_spark(key=key, values=values, taxonomy=taxonomy, membership=membership)
    spark = spark_of(engine, master)
    if spark is not None:
        with progress_bar():
            there = spark.read_log(log, format=file_format, columns=parse_columns(columns), bad_rows=bad_rows)
            _tell(spark.measure(there, place), as_json=as_json)
        return
    folder = Path(place)
    with progress_bar():
        release = read_release(folder)
        load = read_people if isinstance(release.data, Groups) else read
        found = judge(
            load(log, file_format=file_format, columns=columns, bad_rows=bad_rows),
            release,
            key=key_of(release, folder=folder, key=key),
            values=read_values(values) if values else None,
            taxonomy=load_taxonomy(taxonomy),
            membership=read_membership(membership) if membership else None,
        )
    _tell(found, as_json=as_json)


def _tell(found: Measures, *, as_json: bool) -> None:
    from queryveil.cli.output import print_json, print_table

    if as_json:
        print_json(found.to_dict())
        return
    rows: list[tuple[str, str, str]] = []
    for family, scores in found.by_group().items():
        rows.append((family, "", ""))
        rows += [(f"  {score.title}", score.written, f"{score.better} is better") for score in scores]
    if rows:
        print_table(("measure", "value", ""), rows)
    for text in found.notes:
        typer.echo(f"note: {text}", err=True)
