"""`queryveil anonymize plink`."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from queryveil.cli.anonymize.making import Reading, make_release, print_manifest
from queryveil.cli.anonymize.options import BotsOption, ForceOption, OutputOption, SeedOption, TaxonomyOption
from queryveil.cli.engines import EngineOption, MasterOption, check_engine, refuse_on_spark
from queryveil.cli.options import (
    BadRowsOption,
    ColumnsOption,
    JsonOption,
    LogArgument,
    PeopleFormatOption,
    load_taxonomy,
    read_people,
)


def plink(
    log: LogArgument,
    output: OutputOption,
    p: Annotated[float, typer.Option(help="Most a term may link to a member, above 0, at most 1.")] = 0.4,
    a: Annotated[int, typer.Option(help="Steps up in WordNet when profiles are compared, 0 to 3.")] = 1,
    strict: Annotated[bool, typer.Option("--strict", help="Hold p for every term; drop those that exceed it.")] = False,
    weights: Annotated[str, typer.Option(help="binary, count or tfidf, for profiles made from a log.")] = "binary",
    representative: Annotated[str, typer.Option(help="centroid or union of the members' profiles.")] = "centroid",
    membership: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write who is in which group here; private.")
    ] = None,
    taxonomy: TaxonomyOption = "wordnet",
    corpus: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Texts to measure personalised search on: a folder or a JSONL file."),
    ] = None,
    bots: BotsOption = 100,
    force: ForceOption = False,
    seed: SeedOption = None,
    file_format: PeopleFormatOption = None,
    columns: ColumnsOption = None,
    bad_rows: BadRowsOption = "fail",
    engine: EngineOption = "local",
    master: MasterOption = None,
    as_json: JsonOption = False,
) -> None:
    """Group similar profiles until no member stands out, and release one profile per group."""
    from queryveil.cli.anonymize.plink_precision import with_precision
    from queryveil.cli.output import progress_bar
    from queryveil.formats.groups import check_membership, written_membership
    from queryveil.methods import Plink
    from queryveil.release import check_target

    method = Plink(
        p=p,
        a=a,
        strict=strict,
        weights=weights,  # type: ignore[arg-type]
        representative=representative,  # type: ignore[arg-type]
        taxonomy=load_taxonomy(taxonomy),
        bot_threshold=bots or None,
        seed=seed,
    )
    check_engine(engine, master)
    if engine != "local":
        refuse_on_spark(membership=membership, corpus=corpus, format=file_format == "profiles")
        reading = Reading(file_format=file_format, columns=columns, bad_rows=bad_rows)
        make_release(method, log, output, reading=reading, force=force, as_json=as_json, engine=engine, master=master)
        return
    check_target(output, force=force)
    if membership is not None:
        check_membership(membership, release=Path(output), inputs=log, force=force)
    with progress_bar():
        data = read_people(log, file_format=file_format, columns=columns, bad_rows=bad_rows)
        grouping = method.group(data)
        measured = strict or corpus is not None
        release = with_precision(grouping, method, data, corpus=corpus) if measured else grouping.release
        with written_membership(grouping.membership, membership) if membership else nullcontext():
            release.save(output, force=force)
    print_manifest(release.manifest, output, as_json=as_json)
    if membership is not None:
        typer.echo(f"who is in which group: {membership}; it undoes the release, keep it to yourself", err=True)
