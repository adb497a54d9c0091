"""`queryveil measure LOG DIR`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from queryveil.cli._commands import load_taxonomy, read_values
from queryveil.cli._keys import key_of
from queryveil.cli.options import (
    Engine,
    JsonOption,
    OriginalArgument,
    OriginalReading,
    PlaceArgument,
    ReleaseKeyOption,
    ValuesOption,
)

if TYPE_CHECKING:
    from queryveil.utility import Measures


def measure(
    log: OriginalArgument,
    place: PlaceArgument,
    *,
    key: ReleaseKeyOption = None,
    values: ValuesOption = None,
    taxonomy: Annotated[
        str | None, typer.Option(metavar="wordnet|FILE", help="The taxonomy it was made with, if not WordNet's.")
    ] = None,
    membership: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Who is in which group, as plink wrote it.")
    ] = None,
    reading: OriginalReading,
    engine: Engine,
    as_json: JsonOption = False,
) -> None:
    """Measure what a release is still good for, beside the log it was made from."""
    from queryveil.cli.output import progress_bar
    from queryveil.data import Groups
    from queryveil.formats.aggregates import read_membership
    from queryveil.release import read_release
    from queryveil.utility import measure as judge

    engine.refuse(key=key, values=values, taxonomy=taxonomy, membership=membership)
    spark = engine.start()
    if spark is not None:
        with progress_bar():
            _tell(spark.measure(reading.read_on(spark, log), place), as_json=as_json)
        return
    folder = Path(place)
    with progress_bar():
        release = read_release(folder)
        found = judge(
            reading.read_people(log) if isinstance(release.data, Groups) else reading.read(log),
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
