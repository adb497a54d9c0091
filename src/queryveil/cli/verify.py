"""`queryveil verify DIR`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from queryveil.cli._commands import load_taxonomy
from queryveil.cli._keys import key_of
from queryveil.cli.options import Engine, JsonOption, OriginalReading, PlaceArgument, ReleaseKeyOption, SwapTables

if TYPE_CHECKING:
    from queryveil.checks.verdict import Verdict
    from queryveil.data import Profiles, QueryLog


def verify(
    place: PlaceArgument,
    *,
    original: Annotated[
        str | None, typer.Option(metavar="FILE", help="The log or profiles it was made from: nothing may be invented.")
    ] = None,
    taxonomy: Annotated[
        str | None, typer.Option(metavar="wordnet|FILE", help="The taxonomy it was made with, for --original.")
    ] = None,
    key: ReleaseKeyOption = None,
    show: Annotated[bool, typer.Option("--show", help="Show the terms or queries of what breaks the promise.")] = False,
    tables: SwapTables,
    reading: OriginalReading,
    engine: Engine,
    as_json: JsonOption = False,
) -> None:
    """Judge the promise of a release: exit 0 if it holds, 1 if it is broken."""
    from queryveil.checks import verify as judge
    from queryveil.cli.output import progress_bar
    from queryveil.release import read_release

    files = {"frequencies": tables.frequencies, "recommendations": tables.recommendations}
    is_own = {"classifier": tables.classifier_kind != "evidence", **files, "categories": tables.categories}
    engine.refuse(show=show, key=key, taxonomy=taxonomy, **is_own)
    spark = engine.start()
    if spark is not None:
        with progress_bar():
            asked = None if original is None else reading.read_on(spark, original)
            on_spark = spark.verify(place, original=asked)
        _tell(on_spark, texts=None, as_json=as_json)
    folder = Path(place)
    with progress_bar():
        release = read_release(folder)
        before: QueryLog | Profiles | None = None
        if original is not None and release.promise.is_of_profiles:
            before = reading.read_people(original)
        elif original is not None:
            before = reading.read(original)
        verdict = judge(
            release,
            original=before,
            taxonomy=load_taxonomy(taxonomy),
            key=key_of(release, folder=folder, key=key),
            classifier=tables.own_classifier(),
        )
    _tell(verdict, texts=verdict.show(release.data) if show else None, as_json=as_json)


def _tell(verdict: Verdict, *, texts: list[str] | None, as_json: bool) -> NoReturn:
    from queryveil.cli.output import print_json

    if as_json:
        print_json(verdict.to_dict() | ({} if texts is None else {"texts": texts}))
    else:
        typer.echo(verdict.in_words())
        for text in texts or []:
            typer.echo(text)
        for note in verdict.notes:
            typer.echo(f"note: {note}", err=True)
    raise typer.Exit(0 if verdict.holds else 1)
