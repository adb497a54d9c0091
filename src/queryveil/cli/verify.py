"""`queryveil verify DIR`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from queryveil.cli.anonymize.fresh_keys import key_beside
from queryveil.cli.anonymize.options import read_key
from queryveil.cli.options import (
    BadRowsOption,
    ColumnsOption,
    JsonOption,
    OriginalFormatOption,
    load_taxonomy,
    read,
    read_people,
)

if TYPE_CHECKING:
    from queryveil.log import QueryLog
    from queryveil.profiles import Profiles
    from queryveil.release import Release
    from queryveil.text.classifier import Classifier

_TABLES = "The tables that swap was made with, if not those in the package"
TableOption = Annotated[str | None, typer.Option(metavar="FILE", help="As in classify.", rich_help_panel=_TABLES)]


def verify(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A release folder.")],
    original: Annotated[
        str | None, typer.Option(metavar="FILE", help="The log or profiles it was made from: nothing may be invented.")
    ] = None,
    taxonomy: Annotated[
        str | None, typer.Option(metavar="wordnet|FILE", help="The taxonomy it was made with, for --original.")
    ] = None,
    key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Secret of keyed ids; if none is named, DIR.key.")
    ] = None,
    show: Annotated[bool, typer.Option("--show", help="Show the terms or queries of what breaks the promise.")] = False,
    classifier: Annotated[str, typer.Option(help="evidence or paper.", rich_help_panel=_TABLES)] = "evidence",
    frequencies: TableOption = None,
    recommendations: TableOption = None,
    categories: TableOption = None,
    file_format: OriginalFormatOption = None,
    columns: ColumnsOption = None,
    bad_rows: BadRowsOption = "fail",
    as_json: JsonOption = False,
) -> None:
    """Judge the promise of a release: exit 0 if it holds, 1 if it is broken."""
    from queryveil.cli.output import print_json, progress_bar
    from queryveil.guarantees import Linkability
    from queryveil.release import read_release
    from queryveil.verify import verify as judge

    with progress_bar():
        release = read_release(folder)
        before: QueryLog | Profiles | None = None
        if original is not None and isinstance(release.promise, Linkability):
            before = read_people(original, file_format=file_format, columns=columns, bad_rows=bad_rows)
        elif original is not None:
            before = read(original, file_format=file_format, columns=columns, bad_rows=bad_rows)
        verdict = judge(
            release,
            original=before,
            taxonomy=load_taxonomy(taxonomy),
            key=_key(release, folder, key),
            classifier=_own(classifier, frequencies, recommendations, categories),
        )
    texts = verdict.show(release.data) if show else []
    if as_json:
        print_json(verdict.to_dict() | ({"texts": texts} if show else {}))
    else:
        typer.echo(verdict.in_words())
        for text in texts:
            typer.echo(text)
        for note in verdict.notes:
            typer.echo(f"note: {note}", err=True)
    raise typer.Exit(0 if verdict.holds else 1)


def _key(release: Release, folder: Path, key: Path | None) -> bytes | None:
    """Read the key of a release whose user ids are keyed: the one named, or the one beside the folder."""
    from queryveil.columns import Ids

    beside = key_beside(folder)
    if key is None and release.manifest.columns.ids is Ids.KEYED and beside.is_file():
        key = beside
    return read_key(key)


def _own(kind: str, *tables: str | None) -> Classifier | None:
    """Give the classifier with a search engine's own tables; none if it has none."""
    if not any(tables):
        return None
    from queryveil.text.classifier import Classifier

    frequencies, recommendations, categories = tables
    return Classifier.from_tables(
        frequencies=frequencies, recommendations=recommendations, categories=categories, kind=kind
    )
