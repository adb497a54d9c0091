"""`queryveil anonymize dp`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from queryveil.cli.anonymize.making import on_spark, print_manifest
from queryveil.cli.anonymize.options import BotsOption, ForceOption, OutputOption, SeedOption
from queryveil.cli.engines import EngineOption, MasterOption, check_engine, spark_of
from queryveil.cli.options import (
    BadRowsOption,
    ColumnsOption,
    FormatOption,
    JsonOption,
    LogArgument,
    parse_columns,
    read,
)
from queryveil.errors import BadParameter, NotYet

if TYPE_CHECKING:
    from queryveil.guarantees import DifferentialPrivacy
    from queryveil.methods.dp.budget import Total
    from queryveil.release import Manifest

_BUDGET = "A budget for all releases of one log"


def dp(
    log: LogArgument,
    output: OutputOption,
    epsilon: Annotated[float, typer.Option(help="Above 0; less is safer.")] = 1.0,
    delta: Annotated[
        float, typer.Option(help="Chance that the promise fails; far below 1 in the number of users.")
    ] = 1e-5,
    max_queries: Annotated[int, typer.Option(help="Queries that a user counts for.")] = 5,
    mechanism: Annotated[
        str, typer.Option(help="auto, truncated-geometric, gaussian, laplace or zealous noise.")
    ] = "auto",
    rounds: Annotated[int, typer.Option(help="1, or 2: pick again from what is not out yet.")] = 1,
    choose: Annotated[str, typer.Option(help="random or frequent queries.")] = "random",
    clicks: Annotated[float, typer.Option(help="Part of the budget for clicked URLs, 0 to below 1.")] = 0.0,
    max_clicks: Annotated[int, typer.Option(help="Clicks that a user counts for.")] = 5,
    synthesize: Annotated[
        int | None, typer.Option(metavar="N", help="Release N made-up users by these counts.")
    ] = None,
    budget: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Ledger to spend from; private.", rich_help_panel=_BUDGET)
    ] = None,
    total_epsilon: Annotated[
        float | None, typer.Option(help="Begin a ledger with so much.", rich_help_panel=_BUDGET)
    ] = None,
    total_delta: Annotated[float | None, typer.Option(help="Delta to begin it with.", rich_help_panel=_BUDGET)] = None,
    bots: BotsOption = 100,
    force: ForceOption = False,
    seed: SeedOption = None,
    file_format: FormatOption = None,
    columns: ColumnsOption = None,
    bad_rows: BadRowsOption = "fail",
    engine: EngineOption = "local",
    master: MasterOption = None,
    as_json: JsonOption = False,
) -> None:
    """Release queries with counts, noisy enough to hide any one user."""
    from queryveil.cli.output import progress_bar
    from queryveil.methods import Dp
    from queryveil.methods.dp.synthesis import MOST_USERS, synthesized
    from queryveil.release import check_target

    with _as_typed():
        method = Dp(
            epsilon=epsilon,
            delta=delta,
            max_queries=max_queries,
            mechanism=mechanism,  # type: ignore[arg-type]
            rounds=rounds,  # type: ignore[arg-type]
            choose=choose,  # type: ignore[arg-type]
            clicks=clicks,
            max_clicks=max_clicks,
            bot_threshold=bots or None,
            seed=seed,
        )
        total = _total(budget, epsilon=total_epsilon, delta=total_delta)
    if synthesize is not None and not 1 <= synthesize <= MOST_USERS:
        raise BadParameter("synthesize", synthesize, allowed=f"between 1 and {MOST_USERS:,} users")
    check_engine(engine, master)
    if engine != "local" and synthesize is not None:
        raise NotYet("--synthesize on Spark", "rows are made up on one machine", instead="leave out --engine")
    spark = spark_of(engine, master)
    if spark is None:
        check_target(output, force=force)
    else:
        spark.check_target(output, force=force)
    _check_ledger(budget, method.promise, total=total, release=Path(output.removeprefix("file://")))
    if spark is not None:
        with progress_bar():
            there = spark.read_log(log, format=file_format, columns=parse_columns(columns), bad_rows=bad_rows)
            method.check(there.empty)
            n_users = there.n_users
            with _spent(budget, method.promise, total=total, release=Path(output)):
                manifest = spark.anonymize(method, there, output, force=force)
        print_manifest(manifest, output, as_json=as_json, options=on_spark(output))
        _say_what_is_odd(manifest, delta=delta, n_users=n_users)
        return
    with progress_bar():
        data = read(log, file_format=file_format, columns=columns, bad_rows=bad_rows)
        # Whatever can go wrong should do so before anything is spent.
        method.check(data)
        with _spent(budget, method.promise, total=total, release=Path(output)):
            counts = method.anonymize(data)
            release = counts if synthesize is None else synthesized(counts, n_users=synthesize, seed=seed)
            release.save(output, force=force)
    n_clicks = counts.tallies.n_clicks if clicks and synthesize is None else None
    print_manifest(release.manifest, output, as_json=as_json, n_clicks=n_clicks)
    _say_what_is_odd(counts.manifest, delta=delta, n_users=data.n_users)


@contextmanager
def _as_typed() -> Iterator[None]:
    """Name settings in errors as the options are typed."""
    try:
        yield
    except BadParameter as error:
        if error.name == "bot_threshold":
            raise BadParameter("bots", error.value, allowed="1 or more, or 0 to keep every user") from None
        raise BadParameter(error.name.replace("_", "-"), error.value, allowed=error.allowed) from None


def _total(budget: Path | None, *, epsilon: float | None, delta: float | None) -> Total | None:
    from queryveil.methods.dp.budget import Total

    if epsilon is None and delta is None:
        return None
    if budget is None:
        raise BadParameter("budget", "none", allowed="a file, for --total-epsilon and --total-delta to begin")
    if epsilon is None or delta is None:
        lacking = "total-epsilon" if epsilon is None else "total-delta"
        raise BadParameter(lacking, "none", allowed="given: a ledger begins with both totals")
    return Total(total_epsilon=epsilon, total_delta=delta)


def _check_ledger(budget: Path | None, promise: DifferentialPrivacy, *, total: Total | None, release: Path) -> None:
    from queryveil.methods.dp.budget import check_budget

    if budget is None:
        return
    if budget.resolve().is_relative_to(release.resolve()):
        raise BadParameter("budget", str(budget), allowed="a file outside the release, which others will get")
    check_budget(budget, promise, total=total)


@contextmanager
def _spent(budget: Path | None, promise: DifferentialPrivacy, *, total: Total | None, release: Path) -> Iterator[None]:
    """Spend from the ledger before the block, and say in the end what is left."""
    from queryveil.methods.dp.budget import spend

    if budget is None:
        yield
        return
    ledger = spend(budget, promise, release=release.absolute().name, total=total)
    left = f"epsilon {float(ledger.remaining_epsilon):.10g} and delta {float(ledger.remaining_delta):.10g} are left"
    try:
        yield
    except BaseException:
        # Privacy: how far it came cannot be told for certain, and noise that was drawn may have been seen.
        typer.echo(f"what the release would have spent stays spent; in {budget} {left}", err=True)
        raise
    typer.echo(f"budget: in {budget} {left}", err=True)


def _say_what_is_odd(manifest: Manifest, *, delta: float, n_users: int) -> None:
    """Say that nothing leaves, or that delta is too large; the latter never in the manifest, which tells no sizes."""
    if not manifest.counts.n_rows_after:
        # Privacy: this is read off the release, so anybody may know it. A log without people is not refused, since that
        # would tell of the log itself, without noise.
        thresholds = [str(part.threshold) for part in manifest.noise if part.what == "queries"]
        reached = " or, in the second round, ".join(thresholds)
        ways = "more people, a smaller --max-queries or a larger epsilon would help"
        typer.echo(f"nothing leaves: no noisy count reached {reached}; {ways}", err=True)
    if n_users and delta * n_users >= 1:
        typer.echo("warning: delta is not below 1 in the number of users; choose a smaller one", err=True)
