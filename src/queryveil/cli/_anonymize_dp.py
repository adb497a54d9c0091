"""`queryveil anonymize dp`, and the budget that its releases are paid from."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from queryveil.cli import options
from queryveil.cli._releases import print_manifest
from queryveil.cli.output import echo, progress_bar
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

    budget: Path | None = options.file_option(help="Ledger to spend from; private.", panel=_BUDGET)
    total_epsilon: float | None = setting(None, help="Begin a ledger with so much.", panel=_BUDGET)
    total_delta: float | None = setting(None, help="Delta to begin it with.", panel=_BUDGET)

    def total(self) -> Total | None:
        """Return what a ledger begins with; None where nothing is said of it."""
        from queryveil.methods.dp.budget import Total

        if self.total_epsilon is None and self.total_delta is None:
            return None
        if self.budget is None:
            raise BadParameter("budget", "none", allowed="a file, for --total-epsilon and --total-delta to begin")
        if self.total_epsilon is None or self.total_delta is None:
            lacking = "total-epsilon" if self.total_epsilon is None else "total-delta"
            raise BadParameter(lacking, "none", allowed="given: a ledger begins with both totals")
        return Total(total_epsilon=self.total_epsilon, total_delta=self.total_delta)

    def check(self, promise: DifferentialPrivacy, *, release: Path) -> None:
        """Raise if the ledger cannot pay for a release."""
        from queryveil.methods.dp.budget import check_budget

        if self.budget is None:
            return
        if self.budget.resolve().is_relative_to(release.resolve()):
            raise BadParameter("budget", str(self.budget), allowed="a file outside the release, which others will get")
        check_budget(self.budget, promise, total=self.total())

    @contextmanager
    def spent(self, promise: DifferentialPrivacy, *, release: Path) -> Iterator[None]:
        """Spend from the ledger before the block, and say in the end what is left."""
        from queryveil.methods.dp.budget import spend

        if self.budget is None:
            yield
            return
        ledger = spend(self.budget, promise, release=release.absolute().name, total=self.total())
        left = f"epsilon {float(ledger.remaining_epsilon):.10g} and delta {float(ledger.remaining_delta):.10g} are left"
        try:
            yield
        except BaseException:
            # Privacy: how far it came cannot be told for certain, and noise that was drawn may have been seen.
            echo(f"what the release would have spent stays spent; in {self.budget} {left}", err=True)
            raise
        echo(f"budget: in {self.budget} {left}", err=True)


def dp(
    log: options.Log,
    output: options.Output,
    *,
    method: DpSettings,
    synthesize: int | None = setting(None, metavar="N", help="Release N made-up users by these counts."),
    paid: Budget,
    force: options.Force = False,
    reading: options.Reading,
    engine: options.Engine,
    as_json: options.Json = False,
) -> None:
    """Make a release of noisy counts, and pay for it if there is a budget."""
    from queryveil import Dp
    from queryveil.methods import way_out_of_no_counts
    from queryveil.methods.dp.dp import MOST_USERS, synthesized
    from queryveil.release import reserved

    try:
        chosen = Dp(**values_of(method))
        paid.total()
    except BadParameter as error:
        # Settings are named as the options are typed.
        if error.name == "bot_threshold":
            raise BadParameter("bots", error.value, allowed="1 or more, or 0 to keep every user") from None
        raise BadParameter(error.name.replace("_", "-"), error.value, allowed=error.allowed) from None
    if synthesize is not None and not 1 <= synthesize <= MOST_USERS:
        raise BadParameter("synthesize", synthesize, allowed=f"between 1 and {MOST_USERS:,} users")
    if not engine.is_local and synthesize is not None:
        raise NotYet("--synthesize on Spark", "rows are made up on one machine", instead="leave out --engine")
    spark, folder = engine.start(), Path(output.removeprefix("file://"))
    if spark is not None:
        spark.check_target(output, force=force)
    n_clicks, way_out = None, "more people, a smaller --max-queries or a larger --epsilon would help"
    with reserved(output, force=force) if spark is None else nullcontext(), progress_bar():
        paid.check(chosen.promise, release=folder)
        # Whatever can go wrong should do so before anything is spent.
        if spark is None:
            data = reading.read(log)
            chosen.check(data)
            with paid.spent(chosen.promise, release=folder):
                counts = chosen.anonymize(data)
                release = counts if synthesize is None else synthesized(counts, n_users=synthesize, seed=chosen.seed)
                release.save(output, force=force)
            if not counts.tallies.n_queries:
                way_out = way_out_of_no_counts(chosen, data)
            n_users, noisy, manifest = data.n_users, counts.manifest, release.as_written
            n_clicks = counts.tallies.n_clicks if chosen.clicks and synthesize is None else None
        else:
            there = reading.read_on(spark, log)
            chosen.check(there.empty)
            n_users = there.n_users
            with paid.spent(chosen.promise, release=folder):
                noisy = manifest = spark.anonymize(chosen, there, output, force=force)
    print_manifest(manifest, output, as_json=as_json, n_clicks=n_clicks)
    _say_what_is_odd(noisy, delta=chosen.delta, n_users=n_users, way_out=way_out)


def _say_what_is_odd(manifest: Manifest, *, delta: float, n_users: int, way_out: str) -> None:
    """Warn if nothing was released, or delta is too large; the latter never in the manifest, which states no sizes."""
    if not manifest.counts.n_rows_after:
        # Privacy: this is read off the release, so anybody may know it. A log without people is not refused, since that
        # would tell of the log itself, without noise.
        thresholds = [str(part.threshold) for part in manifest.noise if part.what == "queries"]
        reached = " or, in the second round, ".join(thresholds)
        echo(f"nothing was released: no noisy count reached {reached}; {way_out}", err=True)
    if n_users and delta * n_users >= 1:
        echo("warning: delta is not below 1 in the number of users; choose a smaller one", err=True)
