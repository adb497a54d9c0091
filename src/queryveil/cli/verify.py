"""`queryveil verify DIR`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

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
from queryveil.cli.release_keys import PlaceArgument, ReleaseKeyOption, key_of

if TYPE_CHECKING:
    from queryveil.checks.verdict import Verdict
    from queryveil.data import Profiles, QueryLog
    from queryveil.text.classifier import Classifier

TABLES = "The tables that swap was made with, if not those in the package"
TableOption = Annotated[str | None, typer.Option(metavar="FILE", help="As in classify.", rich_help_panel=TABLES)]


def verify(
    place: PlaceArgument,
    original: Annotated[
        str | None, typer.Option(metavar="FILE", help="The log or profiles it was made from: nothing may be invented.")
    ] = None,
    taxonomy: Annotated[
        str | None, typer.Option(metavar="wordnet|FILE", help="The taxonomy it was made with, for --original.")
    ] = None,
    key: ReleaseKeyOption = None,
    show: Annotated[bool, typer.Option("--show", help="Show the terms or queries of what breaks the promise.")] = False,
    classifier: Annotated[str, typer.Option(help="evidence or paper.", rich_help_panel=TABLES)] = "evidence",
    frequencies: TableOption = None,
    recommendations: TableOption = None,
    categories: TableOption = None,
    file_format: OriginalFormatOption = None,
    columns: ColumnsOption = None,
    bad_rows: BadRowsOption = "fail",
    engine: EngineOption = "local",
    master: MasterOption = None,
    as_json: JsonOption = False,
) -> None:
    """Judge the promise of a release: exit 0 if it holds, 1 if it is broken."""
    from queryveil.checks import verify as judge
    from queryveil.cli.output import progress_bar
    from queryveil.release import read_release

    if engine != "local":
        tables = {"frequencies": frequencies, "recommendations": recommendations, "categories": categories}
        refuse_on_spark(show=show, key=key, taxonomy=taxonomy, classifier=classifier != "evidence", **tables)
    spark = spark_of(engine, master)
    if spark is not None:
        with progress_bar():
            asked = None
            if original is not None:
                asked = spark.read_log(original, format=file_format, columns=parse_columns(columns), bad_rows=bad_rows)
            on_spark = spark.verify(place, original=asked)
        _tell(on_spark, texts=None, as_json=as_json)
    folder = Path(place)
    with progress_bar():
        release = read_release(folder)
        before: QueryLog | Profiles | None = None
        if original is not None and release.promise.is_of_profiles:
            before = read_people(original, file_format=file_format, columns=columns, bad_rows=bad_rows)
        elif original is not None:
            before = read(original, file_format=file_format, columns=columns, bad_rows=bad_rows)
        verdict = judge(
            # What stands beside noisy counts in their folder matters too.
            folder if release.promise.is_noisy else release,
            original=before,
            taxonomy=load_taxonomy(taxonomy),
            key=key_of(release, folder=folder, key=key),
            classifier=own_classifier(classifier, frequencies, recommendations, categories),
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


def own_classifier(kind: str, *tables: str | None) -> Classifier | None:
    """Return the classifier with a search engine's own tables; none if it has none."""
    if not any(tables):
        return None
    from queryveil.text.classifier import Classifier

    frequencies, recommendations, categories = tables
    return Classifier.from_tables(
        frequencies=frequencies, recommendations=recommendations, categories=categories, kind=kind
    )
