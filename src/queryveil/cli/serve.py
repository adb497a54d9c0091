"""`queryveil serve`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from queryveil.cli.options import CategoriesOption, FrequenciesOption, RecommendationsOption, parse_columns, parse_list
from queryveil.cli.stream_options import (
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


def serve(
    port: Annotated[int, typer.Option(help="Where to listen; 0: any free port.")] = 8080,
    host: Annotated[str, typer.Option(help="Others than this machine need a token.")] = "127.0.0.1",
    token: Annotated[Path | None, typer.Option(metavar="FILE", help="What clients must show.")] = None,
    k: KOption = 10,
    l: LOption = None,  # noqa: E741
    growth: GrowthOption = 1.2,
    max_pool: MaxPoolOption = 10_000,
    remember: RememberOption = 32_000_000,
    unclassified: UnclassifiedOption = "pool",
    classifier: ClassifierOption = "evidence",
    frequencies: FrequenciesOption = None,
    recommendations: RecommendationsOption = None,
    categories: CategoriesOption = None,
    store: StoreOption = "sqlite:queryveil.db",
    workers: WorkersOption = 1,
    ids: IdsOption = "keyed",
    key: KeyOption = None,
    time: TimeOption = "day",
    keep: KeepOption = None,
    columns: NamesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Anonymize over HTTP: POST /events, GET /released, and a live page."""
    import sys

    from queryveil.cli.streaming import run_service, say, stream_policy
    from queryveil.release import ColumnPolicy, Ids
    from queryveil.service.http._requests import Address, read_token
    from queryveil.service.http.server import HttpSink, HttpSource
    from queryveil.service.pipeline import urls
    from queryveil.service.pipeline.service import Service
    from queryveil.service.settings import StreamSettings, Tables

    store = store or "sqlite:queryveil.db"
    address = Address(host=host, port=port, token=None if token is None else read_token(token))
    address.check_is_guarded()
    settings = StreamSettings(
        k=k,
        l=l,
        growth=growth,
        max_pool=max_pool,
        remembered=remember,
        unclassified=unclassified,
        classifier=classifier,
        tables=Tables(frequencies=frequencies, recommendations=recommendations, categories=categories),
        columns=ColumnPolicy(ids=Ids.KEEP),
        format="jsonl",
        names=parse_columns(columns) or {},
        workers=workers,
        is_finite=False,
    )
    source, sink, kept = HttpSource(address, tell=say), HttpSink(address), urls.open_store(store)
    # A key is made only once all else is in order.
    policy, notes = stream_policy(ids=ids, key=key, store=store, time=time, keep=parse_list(keep))
    service = Service(
        replace(settings, columns=policy),
        source=source,
        sink=sink,
        store=kept,
        source_name=source.name,
        sink_name=sink.name,
        tell=say,
    )
    run_service(service, notes=notes, json_to=sys.stdout if as_json else None)
