"""`queryveil anonymize METHOD LOG -o DIR`: a command for each method, with an option for each of its settings."""

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import typer

from queryveil.cli import options
from queryveil.cli._anonymize_dp import dp
from queryveil.cli._anonymize_plink import plink
from queryveil.cli._commands import with_options
from queryveil.cli._releases import Target, fresh_key, make_release
from queryveil.cli.output import echo
from queryveil.errors import NotYet
from queryveil.methods import settings
from queryveil.settings import setting, values_of


@dataclass(frozen=True, slots=True, kw_only=True)
class HashColumns(options.Columns):
    """Which columns leave beside hashes, whose key is that of keyed ids too."""

    key: Path | None = setting(
        None, metavar="FILE", help="Secret of hashes and keyed ids; if none, a new one in DIR.key."
    )


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
    from queryveil import methods

    kind = getattr(methods, type(method).__name__.removesuffix("Settings"))
    made = kind(**values_of(method), **({} if columns is None else {"columns": columns.policy()}))
    target = Target(folder=output, force=force)
    make_release(made, log, target, reading=reading, as_json=as_json, engine=engine)


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
    from queryveil.methods import Swap
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
        chosen = Swap(**values_of(method) | {"classifier": classifier}, columns=policy)
        target = Target(folder=output, force=force, key=made)
        make_release(chosen, log, target, reading=reading, as_json=as_json, engine=None)
    if made is not None:
        echo(f"key of the user ids: {options.key_beside(folder)}; verify needs it, keep it to yourself", err=True)


def token_hash(
    log: options.Log,
    output: options.Output,
    *,
    method: settings.TokenHashSettings,
    columns: HashColumns,
    reading: options.Reading,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Make a release of hashes; without a key they get one beside the folder."""
    from queryveil.methods import TokenHash
    from queryveil.release import check_target

    check_target(output, force=force)
    with fresh_key(Path(output), wanted=columns.key is None, force=force) as made:
        secret = made or columns.key
        policy = replace(columns, key=secret if columns.ids == "keyed" else None).policy()
        chosen = TokenHash(key=options.read_key(secret), columns=policy, seed=method.seed)
        target = Target(folder=output, force=force, key=made)
        make_release(chosen, log, target, reading=reading, as_json=as_json, engine=None)
    if made is not None:
        echo(f"key of the hashes: {options.key_beside(Path(output))}; it undoes them, keep it to yourself", err=True)


app = typer.Typer(no_args_is_help=True, help="Anonymize a log; each method has its own --help.")


def _add(name: str, function: Any, *, panel: str | None = None, **groups: Any) -> None:
    """Add the command of a method; its help is the first line of its settings."""
    command = with_options(function, **groups)
    app.command(name, help=groups["method"].__doc__, rich_help_panel=panel)(command)


_PLAIN, _HERE = options.Columns(), options.Engine()
_AS_AOL_DID = options.Columns(time="keep", keep="rank,url")
_add("km", anonymize, method=settings.KmSettings, columns=_PLAIN, engine=_HERE)
_add("kdelta", anonymize, method=settings.KdeltaSettings, columns=_PLAIN, engine=_HERE)
_add("plink", plink, method=settings.PlinkSettings)
_add("clump", anonymize, method=settings.ClumpSettings, columns=None, engine=_HERE)
_add("partition", anonymize, method=settings.PartitionSettings, columns=None, engine=_HERE)
_add("swap", swap, method=settings.SwapSettings)
_add("dp", dp, method=settings.DpSettings)
_baseline = partial(_add, panel="Baselines that promise nothing")
_baseline("pseudonymise", anonymize, method=settings.PseudonymiseSettings, columns=_AS_AOL_DID, engine=None)
_baseline("token-hash", token_hash, method=settings.TokenHashSettings)
_baseline("query-threshold", anonymize, method=settings.QueryThresholdSettings, columns=_PLAIN, engine=None)
