"""`queryveil anonymize METHOD LOG -o DIR`: a command for each method, with an option for each of its settings."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from queryveil import methods
from queryveil.cli import options
from queryveil.cli._anonymize_dp import dp
from queryveil.cli._releases import fresh_key, make_release, print_manifest
from queryveil.cli.output import echo, progress_bar
from queryveil.errors import BadInput, MissingExtra, NotYet
from queryveil.methods import settings
from queryveil.settings import setting, values_of

if TYPE_CHECKING:
    from queryveil import Plink, Profiles, QueryLog, Release
    from queryveil.methods import Grouping


@dataclass(frozen=True, slots=True, kw_only=True)
class HashColumns(options.Columns):
    """Which columns leave beside hashes, whose key is that of keyed ids too."""

    key: Path | None = options.file_option(help="Secret of hashes and keyed ids; if none, a new one in DIR.key.")


def anonymize(
    log: options.Log,
    output: options.Output,
    *,
    method: Any,
    columns: options.Columns | None,
    reading: options.Reading,
    engine: options.Engine | None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Make a release of a log with a method; what a method does not have, columns or engine, is None."""
    kind = getattr(methods, type(method).__name__.removesuffix("Settings"))
    made = kind(**values_of(method), **({} if columns is None else {"columns": columns.policy()}))
    make_release(made, log, output, reading=reading, engine=engine, force=force, as_json=as_json)


def swap(
    log: options.Log,
    output: options.Output,
    *,
    method: settings.SwapSettings,
    tables: options.TableFiles,
    columns: options.Columns = options.Columns(ids="keyed"),  # noqa: B008 - it is frozen
    reading: options.Reading,
    engine: options.Engine,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Make a release with swap; keyed ids without a key get one beside the folder."""
    from queryveil.release import check_target

    if not engine.is_local:
        raise NotYet(
            "swap of a whole log on Spark",
            "its pools see every arrival in turn",
            instead="see queryveil.spark.streaming for live events, or leave out --engine",
        )
    folder = Path(output)
    check_target(output, force=force)
    with fresh_key(folder, wanted=columns.ids == "keyed" and columns.key is None, force=force) as made:
        classifier = tables.classifier(str(method.classifier))
        policy = replace(columns, key=made or columns.key).policy()
        chosen = methods.Swap(**values_of(method) | {"classifier": classifier}, columns=policy)
        make_release(chosen, log, output, reading=reading, key=made, force=force, as_json=as_json)
    if made is not None:
        echo(f"key of the user ids: {options.key_beside(folder)}; verify needs it, keep it to yourself", err=True)


def token_hash(
    log: options.Log,
    output: options.Output,
    *,
    method: settings.TokenHashSettings,
    columns: HashColumns = HashColumns(time="day"),  # noqa: B008 - it is frozen
    reading: options.Reading,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Make a release of hashes; without a key they get one beside the folder."""
    from queryveil.release import check_target

    check_target(output, force=force)
    with fresh_key(Path(output), wanted=columns.key is None, force=force) as made:
        secret = made or columns.key
        policy = replace(columns, key=secret if columns.ids == "keyed" else None).policy()
        chosen = methods.TokenHash(key=options.read_key(secret), columns=policy, seed=method.seed)
        make_release(chosen, log, output, reading=reading, key=made, force=force, as_json=as_json)
    if made is not None:
        echo(f"key of the hashes: {options.key_beside(Path(output))}; it undoes them, keep it to yourself", err=True)


def plink(
    log: options.Log,
    output: options.Output,
    *,
    method: settings.PlinkSettings,
    membership: Path | None = options.file_option(help="Write who is in which group here; private."),
    corpus: Path | None = setting(None, metavar="PATH", help="Texts to search: a folder or JSONL file."),
    force: options.Force = False,
    reading: options.PeopleReading,
    engine: options.Engine,
    as_json: options.Json = False,
) -> None:
    """Make a release with plink."""
    from queryveil.formats.aggregates import check_membership, written_membership
    from queryveil.release import reserved

    chosen = methods.Plink(**values_of(method))
    if not engine.is_local:
        engine.refuse(membership=membership, corpus=corpus, format=reading.file_format == "profiles")
        make_release(chosen, log, output, reading=reading, engine=engine, force=force, as_json=as_json)
        return
    with reserved(output, force=force), progress_bar():
        if membership is not None:
            check_membership(membership, release=Path(output), inputs=log, force=force)
        data = reading.read_people(log)
        grouping = chosen.group(data)
        measured = chosen.strict or corpus is not None
        release = _with_precision(grouping, chosen, data, corpus=corpus) if measured else grouping.release
        release = methods.warn_if_little(chosen, data, release)
        with nullcontext() if membership is None else written_membership(grouping.membership, membership) as beside:
            release.save(output, force=force, beside=beside)
    print_manifest(release.manifest, output, as_json=as_json)
    if membership is not None:
        echo(f"who is in which group: {membership}; it undoes the release, keep it to yourself", err=True)


MOST_USERS = 1000
"""Users whose searches are tried, drawn at random if there are more."""


def _with_precision(grouping: Grouping, method: Plink, data: QueryLog | Profiles, *, corpus: Path | None) -> Release:
    """Return the release with the precision of search in its manifest, or a warning where the packaged texts fail."""
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
    """Return the precision of search with and without profiles; if strict, also with groups that are not."""
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


app = typer.Typer(no_args_is_help=True, help="Anonymize a log; each method has its own --help.")


def _add(name: str, function: Any, *, panel: str | None = None, **groups: Any) -> None:
    """Add the command of a method; its help is the first line of its settings."""
    command = options.with_options(function, **groups)
    app.command(name, help=groups["method"].__doc__, rich_help_panel=panel)(command)


_PLAIN, _HERE = options.Columns(), options.Engine()
_AS_AOL_DID, _BY_DAY = options.Columns(time="keep", keep="rank,url"), options.Columns(time="day")
_add("km", anonymize, method=settings.KmSettings, columns=_PLAIN, engine=_HERE)
_add("kdelta", anonymize, method=settings.KdeltaSettings, columns=_PLAIN, engine=_HERE)
_add("plink", plink, method=settings.PlinkSettings)
_add("clump", anonymize, method=settings.ClumpSettings, columns=None, engine=_HERE)
_add("partition", anonymize, method=settings.PartitionSettings, columns=None, engine=_HERE)
_add("swap", swap, method=settings.SwapSettings)
_add("dp", dp, method=settings.DpSettings)
_practice = partial(_add, panel="What industry and regulators do", engine=_HERE)
_IN_SESSIONS = options.Columns(keep="rank,url,device,country,language")
_practice("google-2024", anonymize, method=settings.Google2024Settings, columns=None)
_practice("ec-2026", anonymize, method=settings.Ec2026Settings, columns=_IN_SESSIONS)
_practice("ddg-2026", anonymize, method=settings.Ddg2026Settings, columns=_BY_DAY)
_practice("brave-wdp", anonymize, method=settings.BraveWdpSettings, columns=_BY_DAY)
_practice("mozilla", anonymize, method=settings.MozillaSettings, columns=_PLAIN)
_baseline = partial(_add, panel="Baselines that promise nothing")
_baseline("pseudonymise", anonymize, method=settings.PseudonymiseSettings, columns=_AS_AOL_DID, engine=None)
_baseline("token-hash", token_hash, method=settings.TokenHashSettings)
_baseline("query-threshold", anonymize, method=settings.QueryThresholdSettings, columns=_BY_DAY, engine=None)
