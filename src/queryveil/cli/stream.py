"""`queryveil stream`."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from queryveil.cli.options import CategoriesOption, FrequenciesOption, RecommendationsOption, parse_columns, parse_list
from queryveil.cli.stream_options import (
    READING,
    RUNNING,
    ClassifierOption,
    GrowthOption,
    IdsOption,
    JsonOption,
    KeepOption,
    KeyOption,
    KOption,
    LOption,
    MaxPoolOption,
    NamesOption,
    RememberOption,
    StoreOption,
    TimeOption,
    UnclassifiedOption,
    WorkersOption,
)
from queryveil.errors import BadParameter


def stream(
    source: Annotated[str, typer.Option(metavar="URL", help="-, FILE, redis://, kafka://, http://.")] = "-",
    sink: Annotated[str, typer.Option(metavar="URL", help="The same, or DIR/: a release folder.")] = "-",
    k: KOption = 10,
    l: LOption = None,  # noqa: E741
    growth: GrowthOption = 1.2,
    max_pool: MaxPoolOption = 10_000,
    remember: RememberOption = 32_000_000,
    drain: Annotated[str, typer.Option(help="At the end of a file: suppress, release.")] = "suppress",
    unclassified: UnclassifiedOption = "pool",
    classifier: ClassifierOption = "evidence",
    frequencies: FrequenciesOption = None,
    recommendations: RecommendationsOption = None,
    categories: CategoriesOption = None,
    store: StoreOption = None,
    workers: WorkersOption = 1,
    follow: Annotated[bool, typer.Option("--follow", help="Wait for more of FILE.", rich_help_panel=RUNNING)] = False,
    patience: Annotated[
        float | None, typer.Option(help="Seconds to try again; 60 for files.", rich_help_panel=RUNNING)
    ] = None,
    metrics: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Serve /metrics, /readyz.", rich_help_panel=RUNNING)
    ] = None,
    ids: IdsOption = "keyed",
    key: KeyOption = None,
    time: TimeOption = "day",
    keep: KeepOption = None,
    file_format: Annotated[
        str | None, typer.Option("--format", help="aol, excite, csv, tsv, jsonl.", rich_help_panel=READING)
    ] = None,
    columns: NamesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Anonymize live: each query leaves with somebody else's name."""
    from queryveil.cli.streaming import output_for, run_service, say, stream_policy
    from queryveil.release import ColumnPolicy, Ids
    from queryveil.service.pipeline import urls
    from queryveil.service.pipeline.service import Service
    from queryveil.service.settings import StreamSettings, Tables

    store = store or ("memory:" if source == "-" else "sqlite:queryveil.db")
    is_server = source.startswith(tuple(f"{scheme}://" for scheme in urls.BROKERS))
    is_finite = not is_server and not follow
    if drain == "release" and not is_finite:
        raise BadParameter("drain", drain, allowed="suppress for a source that has no end")
    settings = StreamSettings(
        k=k,
        l=l,
        growth=growth,
        max_pool=max_pool,
        remembered=remember,
        drain=drain,
        unclassified=unclassified,
        classifier=classifier,
        tables=Tables(frequencies=frequencies, recommendations=recommendations, categories=categories),
        columns=ColumnPolicy(ids=Ids.KEEP),
        format=file_format or ("jsonl" if is_server else None),
        names=parse_columns(columns) or {},
        workers=workers,
        patience=60.0 if patience is None and is_finite else patience,
        is_finite=is_finite,
    )
    urls.check_apart(source, sink)
    opened, outlet = urls.open_source(source, follow=follow, tell=say), urls.open_sink(sink)
    kept = urls.open_store(store)
    # A key is made only once all else is in order.
    policy, notes = stream_policy(ids=ids, key=key, store=store, time=time, keep=parse_list(keep))
    service = Service(
        replace(settings, columns=policy),
        source=opened,
        sink=outlet,
        store=kept,
        source_name=urls.name_of(source, opened),
        sink_name=urls.name_of(sink, outlet),
        tell=say,
    )
    run_service(service, notes=notes, metrics=metrics, json_to=output_for(sink) if as_json else None)
