"""`queryveil anonymize plink`, and what personalised search keeps with the profiles of its groups."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from queryveil.cli import options
from queryveil.cli._releases import Target, make_release, print_manifest
from queryveil.cli.output import echo, progress_bar
from queryveil.errors import BadInput, MissingExtra
from queryveil.methods.settings import PlinkSettings
from queryveil.settings import values_of

if TYPE_CHECKING:
    from queryveil import Plink, Profiles, QueryLog, Release
    from queryveil.methods import Grouping


def plink(
    log: options.Log,
    output: options.Output,
    *,
    method: PlinkSettings,
    membership: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write who is in which group here; private.")
    ] = None,
    corpus: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Texts to measure personalised search on: a folder or a JSONL file."),
    ] = None,
    force: options.Force = False,
    reading: options.PeopleReading,
    engine: options.Engine,
    as_json: options.Json = False,
) -> None:
    """Make a release with plink."""
    from queryveil import Plink
    from queryveil.formats.aggregates import check_membership, written_membership
    from queryveil.release import reserved

    chosen = Plink(**values_of(method))
    if not engine.is_local:
        engine.refuse(membership=membership, corpus=corpus, format=reading.file_format == "profiles")
        target = Target(folder=output, force=force)
        make_release(chosen, log, target, reading=reading, as_json=as_json, engine=engine)
        return
    with reserved(output, force=force), progress_bar():
        if membership is not None:
            check_membership(membership, release=Path(output), inputs=log, force=force)
        data = reading.read_people(log)
        grouping = chosen.group(data)
        measured = chosen.strict or corpus is not None
        release = _with_precision(grouping, chosen, data, corpus=corpus) if measured else grouping.release
        writing: AbstractContextManager[dict[Path, Path]] = nullcontext({})
        if membership is not None:
            writing = written_membership(grouping.membership, membership)
        with writing as beside:
            release.save(output, force=force, beside=beside)
    print_manifest(release.manifest, output, as_json=as_json)
    if membership is not None:
        echo(f"who is in which group: {membership}; it undoes the release, keep it to yourself", err=True)


MOST_USERS = 1000
"""Users whose searches are tried, drawn at random if there are more."""


def _with_precision(grouping: Grouping, method: Plink, data: QueryLog | Profiles, *, corpus: Path | None) -> Release:
    """Return the release with the precision of search in its manifest; if strict, also that of groups that are not.

    Without a `corpus` the packaged one is searched, and where that cannot be done a warning says so.
    """
    import msgspec

    measures: dict[str, float] = {}
    warnings: list[str] = []
    try:
        measures = _precision(grouping, method, data, corpus=corpus)
        if measures["average_precision_at_10"] < measures["average_precision_at_10_without_profile"]:
            warnings.append("search with these profiles was less precise than without any")
    except (MissingExtra, BadInput) as error:
        if corpus is not None:
            raise
        warnings.append(f"what strictness costs in precision was not measured: {error}")
    told = grouping.release.manifest
    manifest = msgspec.structs.replace(told, measures=told.measures | measures, warnings=(*told.warnings, *warnings))
    return replace(grouping.release, manifest=manifest)


def _precision(
    grouping: Grouping, method: Plink, data: QueryLog | Profiles, *, corpus: Path | None
) -> dict[str, float]:
    from queryveil.rng import generator
    from queryveil.utility.personalised import PersonalisedSearch
    from queryveil.utility.search_index import SearchIndex, read_corpus

    index = SearchIndex.of(read_corpus(corpus) if corpus else None)
    everybody = grouping.profiles
    drawn = generator(method.seed).permutation(everybody.n_users)[:MOST_USERS]
    search = PersonalisedSearch(everybody.with_frame(everybody.frame[drawn]), index=index)
    found = search.measure(grouping.release.groups, membership=grouping.membership)
    measures = {
        "average_precision_at_10": found.group_profile,
        "average_precision_at_10_without_profile": found.without_profile,
    }
    if method.strict:
        loose = replace(method, strict=False).group(data)
        found = search.measure(loose.release.groups, membership=loose.membership)
        measures["average_precision_at_10_if_not_strict"] = found.group_profile
    return {name: round(value, 4) for name, value in measures.items()}
