"""`queryveil anonymize dp`, and the budget that its releases are paid from."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from queryveil.cli._releases import on_spark, print_manifest
from queryveil.cli.options import Engine, ForceOption, JsonOption, LogArgument, OutputOption, Reading
from queryveil.errors import BadParameter, NotYet
from queryveil.methods.settings import DpSettings
from queryveil.settings import setting, values_of

if TYPE_CHECKING:
    from queryveil.guarantees import DifferentialPrivacy
    from queryveil.methods.dp.budget import Total
    from queryveil.release import Manifest

_BUDGET = "A budget for all releases of one log"


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The ledger that a release is paid from, and what it begins with."""

    budget: Path | None = setting(None, metavar="FILE", help="Ledger to spend from; private.", panel=_BUDGET)
    total_epsilon: float | None = setting(None, help="Begin a ledger with so much.", panel=_BUDGET)
    total_delta: float | None = setting(None, help="Delta to begin it with.", panel=_BUDGET)


def dp(
    log: LogArgument,
    output: OutputOption,
    *,
    method: DpSettings,
    synthesize: Annotated[
        int | None, typer.Option(metavar="N", help="Release N made-up users by these counts.")
    ] = None,
    paid: Budget,
    force: ForceOption = False,
    reading: Reading,
    engine: Engine,
    as_json: JsonOption = False,
) -> None:
    """Make a release of noisy counts, and pay for it if there is a budget."""
    from queryveil.cli.output import progress_bar
    from queryveil.methods import Dp
    from queryveil.methods.dp.synthesis import MOST_USERS, synthesized
    from queryveil.release import check_target

    budget = paid.budget
    with _as_typed():
        chosen = Dp(**values_of(method))
        total = _total(budget, epsilon=paid.total_epsilon, delta=paid.total_delta)
    if synthesize is not None and not 1 <= synthesize <= MOST_USERS:
        raise BadParameter("synthesize", synthesize, allowed=f"between 1 and {MOST_USERS:,} users")
    if not engine.is_local and synthesize is not None:
        raise NotYet("--synthesize on Spark", "rows are made up on one machine", instead="leave out --engine")
    spark = engine.start()
    if spark is None:
        check_target(output, force=force)
    else:
        spark.check_target(output, force=force)
    _check_ledger(budget, chosen.promise, total=total, release=Path(output.removeprefix("file://")))
    if spark is not None:
        with progress_bar():
            there = reading.read_on(spark, log)
            chosen.check(there.empty)
            n_users = there.n_users
            with _spent(budget, chosen.promise, total=total, release=Path(output)):
                manifest = spark.anonymize(chosen, there, output, force=force)
        print_manifest(manifest, output, as_json=as_json, options=on_spark(output))
        _say_what_is_odd(manifest, delta=chosen.delta, n_users=n_users)
        return
    with progress_bar():
        data = reading.read(log)
        # Whatever can go wrong should do so before anything is spent.
        chosen.check(data)
        with _spent(budget, chosen.promise, total=total, release=Path(output)):
            counts = chosen.anonymize(data)
            release = counts if synthesize is None else synthesized(counts, n_users=synthesize, seed=chosen.seed)
            release.save(output, force=force)
    n_clicks = counts.tallies.n_clicks if chosen.clicks and synthesize is None else None
    print_manifest(release.manifest, output, as_json=as_json, n_clicks=n_clicks)
    _say_what_is_odd(counts.manifest, delta=chosen.delta, n_users=data.n_users)


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
