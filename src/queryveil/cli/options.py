"""Options that several commands share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from queryveil.errors import BadInput, BadParameter

if TYPE_CHECKING:
    from queryveil.data import Profiles, QueryLog
    from queryveil.text.taxonomy import Taxonomy

LogArgument = Annotated[list[str], typer.Argument(metavar="LOG...", help="Files, globs, or - for stdin.")]
_READING = "How to read the log"
FormatOption = Annotated[
    str | None,
    typer.Option(
        "--format",
        help="aol, excite, csv, tsv, jsonl, parquet, ubi or transactions.",
        rich_help_panel=_READING,
    ),
]
OriginalFormatOption = Annotated[
    str | None,
    typer.Option(
        "--format",
        help="aol, excite, csv, tsv, jsonl, parquet, ubi, transactions or profiles.",
        rich_help_panel=_READING,
    ),
]
PeopleFormatOption = Annotated[
    str | None,
    typer.Option("--format", help="profiles, aol, excite, csv, tsv, jsonl, parquet or ubi.", rich_help_panel=_READING),
]
ColumnsOption = Annotated[
    str | None,
    typer.Option(
        "--columns", metavar="ROLE=NAME,..", help="Which column is which: user=uid,query=q.", rich_help_panel=_READING
    ),
]
BadRowsOption = Annotated[
    str, typer.Option("--bad-rows", help="fail, or skip and count them.", rich_help_panel=_READING)
]
_TABLES = "Tables of the classifier (Parquet or CSV) in place of those in the package"
FrequenciesOption = Annotated[
    str | None, typer.Option(metavar="FILE", help="Columns unit, count.", rich_help_panel=_TABLES)
]
RecommendationsOption = Annotated[
    str | None, typer.Option(metavar="FILE", help="Columns misspelt, correct.", rich_help_panel=_TABLES)
]
CategoriesOption = Annotated[
    str | None, typer.Option(metavar="FILE", help="Columns unit, category, weight.", rich_help_panel=_TABLES)
]

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


def read(source: str | list[str], *, file_format: str | None, columns: str | None, bad_rows: str) -> QueryLog:
    """Read the log that the options describe."""
    from queryveil.formats import are_profiles, read_log

    if file_format is None and columns is None and are_profiles(source):
        raise BadInput("these are profiles, not a log; anonymize plink is for them")

    return read_log(source, format=file_format, columns=parse_columns(columns), bad_rows=bad_rows)


def read_public(source: str | None, *, file_format: str | None, columns: str | None, bad_rows: str) -> QueryLog | None:
    """Read the log of other people, if there is one; it is described as the log itself is."""
    return None if source is None else read(source, file_format=file_format, columns=columns, bad_rows=bad_rows)


def read_people(
    source: str | list[str], *, file_format: str | None, columns: str | None, bad_rows: str
) -> QueryLog | Profiles:
    """Read profiles, if asked for or if it looks like them, else a log."""
    from queryveil.formats import are_profiles, read_profiles

    if file_format == "profiles" or (file_format is None and columns is None and are_profiles(source)):
        return read_profiles(source, bad_rows=bad_rows)
    return read(source, file_format=file_format, columns=columns, bad_rows=bad_rows)


def parse_columns(text: str | None) -> dict[str, str] | None:
    """Read `user=uid,query=q`; `time=` says that no column is the time.

    >>> parse_columns("user=uid,query=q")
    {'user': 'uid', 'query': 'q'}
    """
    if text is None:
        return None
    pairs = [part.partition("=") for part in text.split(",")]
    if not all(role.strip() and equals for role, equals, _ in pairs):
        raise BadParameter("columns", text, allowed="pairs such as user=uid,query=q")
    return {role.strip(): name.strip() for role, _, name in pairs}


def parse_list(text: str | None) -> tuple[str, ...]:
    """Read `url,rank`.

    >>> parse_list("url, rank")
    ('url', 'rank')
    """
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


def load_taxonomy(name: str | None) -> Taxonomy | None:
    """Return WordNet's nouns, or the taxonomy in a file of pairs."""
    from queryveil.text.taxonomy import Taxonomy

    if name is None:
        return None
    return Taxonomy.wordnet() if name == "wordnet" else Taxonomy.read_csv(name)
