"""Hong et al.: anonymize the same samples of users with several settings, and read off what it cost."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean, stdev

import polars as pl

from queryveil.data import QueryLog
from queryveil.errors import BadInput, TooFewUsers
from queryveil.methods.kdelta import Kdelta
from queryveil.papers import driver
from queryveil.rng import generator
from queryveil.synthesis import synthesize

# Paper: figure 2(c).
USERS = 1_000
SHARES = (0.1, 0.2, 0.4, 0.6, 0.8, 1.0)  # of the users that samples have, so 100 to 1,000 of 1,000
# So many logs are made up: users with long histories are few, and one log more or less of them tilts a curve.
N_LOGS = 10
N_ORDERS = 3  # a given log is one; its users are taken in so many orders
FEWEST_USERS = 50
K, DELTA = 5, 0.5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Ordered:
    """A log and its users in an order drawn at random; a sample is the first of them, so larger ones hold smaller."""

    log: QueryLog
    users: pl.Series

    def sample(self, n_users: int) -> QueryLog:
        if n_users >= len(self.users):
            return self.log
        chosen = self.users.head(n_users)
        return self.log.with_frame(self.log.frame.filter(pl.col("user").is_in(chosen.implode())))


def gather(log: QueryLog | None, *, users: int | None, seed: int) -> "Runs":
    """Take one log in several orders of its users, or several that are made up."""
    if log is not None:
        if log.terms_are_items:
            raise BadInput("the kdelta figures are for logs of queries; for transactions there are the clump figures")
        people, n_bots = driver.without_bots(log)
        logs = [_in_order(people, seed=seed + i) for i in range(N_ORDERS)]
        origin = f"the log was given ({n_bots:,} bots left out), its users taken in {N_ORDERS} orders"
    else:
        n_asked, seeds = USERS if users is None else users, range(seed, seed + N_LOGS)
        sources = [(synthesize(like="aol", users=n_asked, seed=each).log, each) for each in seeds]
        logs = [_in_order(driver.without_bots(made)[0], seed=each) for made, each in sources]
        origin = f"{N_LOGS} logs are made up, in the shape of AOL's"
    n_users = len(logs[0].users)
    if n_users < FEWEST_USERS:
        raise BadInput(f"the log has {n_users} users, too few for samples of {min(SHARES):.0%}; give a larger log")
    n_rows = sum(each.log.n_rows for each in logs) / len(logs)
    urls = [each.log.frame["url"].str.strip_chars().replace("", None) for each in logs if "url" in each.log.columns]
    n_urls = sum(each.drop_nulls().n_unique() for each in urls) / len(logs)
    return Runs(
        seed=seed,
        logs=tuple(logs),
        has_urls=n_urls > 0,
        sizes=tuple(round(share * n_users) for share in SHARES),
        notes=(
            f"{origin}: {n_users:,} users, {n_rows / n_users:.1f} rows each, {n_urls:,.0f} distinct URLs "
            f"(theirs: {USERS:,} users of a large log, nothing more is said)"
            + ("" if log is not None else "; real logs have more URLs, so these stay more easily"),
            "a sample is the first users in an order drawn at random, so larger ones hold the smaller; "
            f"every figure is the mean over the {len(logs)} "
            + ("orders, which say nothing of other logs" if log is not None else "logs"),
        ),
    )


def _in_order(log: QueryLog, *, seed: int) -> Ordered:
    users = log.frame["user"].unique(maintain_order=True)
    return Ordered(log=log, users=users.gather(generator(seed).permutation(len(users))))


class Variant(StrEnum):
    """The paper's centroids with its rounding, with counts that are exact, and the centroids that need fewest edits."""

    ROUNDED = "paper, rounded"
    EXACT = "paper, exact"
    BEST = "best, exact"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The settings, on samples of `size` users; None is all of them."""

    variant: Variant = Variant.ROUNDED
    k: int = K
    delta: float = DELTA
    size: int | None = None
    min_cluster_users: int = 2

    def method(self, *, seed: int) -> Kdelta:
        """Return the method with these settings; programs were removed from the log before."""
        return Kdelta(
            k=self.k,
            delta=self.delta,
            mode="paper" if self.variant is Variant.ROUNDED else "exact",
            centroids="best" if self.variant is Variant.BEST else "paper",
            min_cluster_users=self.min_cluster_users,
            bot_threshold=None,
            seed=seed,
        )

    def __str__(self) -> str:
        size = f", {self.size:,} users" if self.size else ""
        rare = ", rare kept" if self.min_cluster_users < 2 else ""
        return f"{self.variant}, k={self.k}, delta={self.delta}{size}{rare}"


# Edits, which are rows added and suppressed, are counted in three ways.
TOTAL, PER_USER, PER_ROW = "total", "per user", "per row"
Figures = dict[str, float]  # what one release came to, by the name of the figure


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Runs(driver.Runs[Run, tuple[Figures, ...]]):
    """What each run came to on every log; nothing if one of the logs had too few users."""

    logs: tuple[Ordered, ...]
    sizes: tuple[int, ...]  # of the samples
    has_urls: bool

    def possible(self, settings: Iterable[Run]) -> list[Run]:
        """Run the settings, and return those that had users enough in every log."""
        wanted = list(dict.fromkeys(settings))
        enough = [run for run, found in zip(wanted, self.make(wanted), strict=True) if found]
        if not enough:
            raise BadInput(f"too few users share a query for groups of {K}; give a larger log")
        return enough

    def by_size(self, variant: Variant, *, min_cluster_users: int = 2) -> list[Run]:
        """Return the possible runs for growing numbers of users."""
        sizes = (*self.sizes[:-1], None)
        return self.possible(Run(variant=variant, size=size, min_cluster_users=min_cluster_users) for size in sizes)

    def n_users(self, run: Run) -> int:
        return run.size or self.sizes[-1]

    def mean(self, run: Run, figure: str) -> float:
        return fmean(found[figure] for found in self.found(run))

    def spread(self, runs: Iterable[Run], figure: str) -> float:
        """Return how far a figure lies apart between the logs, at most."""
        by_run = ([found[figure] for found in logs] for logs in self.make(runs))
        return max(max(found) - min(found) for found in by_run)

    def curve(self, runs: Iterable[Run], figure: str) -> list[float]:
        return [self.mean(run, figure) for run in runs]

    def says(self, runs: Iterable[Run], names: Iterable[object], figure: str, *, digits: int) -> str:
        return driver.at_each(names, self.curve(runs, figure), digits=digits)

    def change(self, runs: list[Run], figure: str) -> str:
        """Write the mean change of a figure from the first run to the last, log by log, and its standard error."""
        pairs = zip(self.found(runs[0]), self.found(runs[-1]), strict=True)
        changes = [last[figure] - first[figure] for first, last in pairs]
        return f"from first to last {fmean(changes):+.3g} (standard error {stdev(changes) / len(changes) ** 0.5:.2g})"

    def _run(self, setting: Run) -> tuple[Figures, ...]:
        try:
            return tuple(
                _figures(ordered.sample(self.n_users(setting)), setting.method(seed=self.seed + i))
                for i, ordered in enumerate(self.logs)
            )
        except TooFewUsers:
            return ()


def _figures(log: QueryLog, method: Kdelta) -> Figures:
    manifest = method.anonymize(log).manifest
    measures, removed = manifest.measures, manifest.removed
    n_added, n_suppressed = manifest.changed["rows_added"], removed["rows_suppressed"]
    # Users and rows are those that are left once rare clusters are dropped.
    n_rare = removed["rows_of_rare_clusters"]
    n_users, n_rows = manifest.counts.n_users_after, log.n_rows - n_rare - removed["rows_without_query"]
    edits = {"added": n_added, "suppressed": n_suppressed, "edits": n_added + n_suppressed}
    sizes = {TOTAL: 1, PER_USER: n_users, PER_ROW: n_rows}
    # Without clicks a manifest says nothing of URLs, and the figures leave them out.
    return {f"{what} {count}": n / size for what, n in edits.items() for count, size in sizes.items()} | {
        "users": n_users,
        f"rare rows {PER_USER}": n_rare / n_users,
        "groups of k or more": measures["groups"],
        "users who had to join": n_users - method.k * measures["groups"],
        "queries lost, %": 100 * measures["share_of_distinct_queries_lost"],
        "URLs lost, %": 100 * measures.get("share_of_distinct_urls_lost", 0.0),
        "top 50 queries kept": measures["top_50_queries_kept"],
        "top 50 URLs kept": measures.get("top_50_urls_kept", 0),
        "distance left": measures.get("mean_distance_left", 0.0),
    }
