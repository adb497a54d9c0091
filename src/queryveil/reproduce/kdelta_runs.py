"""Anonymize the same samples of users with several settings, and read off what it cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from math import sqrt
from statistics import fmean, stdev

from queryveil.errors import BadInput, TooFewUsers
from queryveil.log import QueryLog
from queryveil.methods.kdelta import Kdelta
from queryveil.progress import step, watch
from queryveil.reproduce.kdelta_material import Material

K, DELTA = 5, 0.5
KS = (2, 5, 10, 15, 20)
DELTAS = (0.1, 0.3, 0.5, 0.7, 0.9)


class Variant(StrEnum):
    """The paper's centroids with its rounding, with counts that are exact, and the centroids that need fewest edits."""

    ROUNDED = "paper, rounded"
    EXACT = "paper, exact"
    BEST = "best, exact"


VARIANTS_NOTE = (
    "paper, rounded is what the paper does; its shares are not equal, so it promises nothing. paper, exact has the "
    "same groups and keeps the promise; best, exact is ours and keeps it with the centroids that need fewest edits"
)

BACK = 0.1
TREND_NOTE = (
    "rises and falls are said of means: no step goes the other way by more than a tenth of the way from the first "
    "to the last, which is our limit; where one does, it is up and down. The change from the first to the last has its "
    "standard error: a change of less than two of them may be chance"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The settings, on samples of `size` users; None is all of them."""

    variant: Variant = Variant.ROUNDED
    k: int = K
    delta: float = DELTA
    size: int | None = None
    min_cluster_users: int = 2

    def method(self, *, seed: int) -> Kdelta:
        """Give the method with these settings; programs were left out before."""
        return Kdelta(
            k=self.k,
            delta=self.delta,
            mode="paper" if self.variant is Variant.ROUNDED else "exact",
            centroids="best" if self.variant is Variant.BEST else "paper",
            min_cluster_users=self.min_cluster_users,
            bot_threshold=None,
            seed=seed,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What one release came to; rows and users are those that are left once rare clusters are dropped."""

    n_users: int
    n_rows: int
    n_rare_rows: int
    added: int
    suppressed: int
    groups: int
    joined: int
    queries_lost: float
    urls_lost: float
    top_queries: float
    top_urls: float
    distance_left: float

    @property
    def edits(self) -> int:
        """Rows added and suppressed."""
        return self.added + self.suppressed


Measure = Callable[[Figures], float]


class Runs:
    """The runs on one material, each made once."""

    def __init__(self, material: Material, *, seed: int) -> None:
        self.material, self.seed = material, seed
        self._found: dict[Run, tuple[Figures, ...]] = {}

    def possible(self, runs: Iterable[Run]) -> list[Run]:
        """Make runs, and give those that had users enough in every log."""
        wanted = list(dict.fromkeys(runs))
        missing = [run for run in wanted if run not in self._found]
        for i, run in enumerate(missing):
            step(_name(run), i / len(missing))
            # The steps inside a run would hide which run it is.
            with watch(lambda _name, _share: None):
                self._found[run] = self._make(run)
        found = [run for run in wanted if self._found[run]]
        if not found:
            raise BadInput(f"too few users share a query for groups of {K}; give a larger log")
        return found

    def by_size(self, variant: Variant, *, min_cluster_users: int = 2) -> list[Run]:
        """Give the possible runs for growing numbers of users."""
        n_users = self.material.sizes[-1]
        return self.possible(
            Run(variant=variant, size=size if size < n_users else None, min_cluster_users=min_cluster_users)
            for size in self.material.sizes
        )

    def n_users(self, run: Run) -> int:
        """Give the size of the samples of a run."""
        return run.size or self.material.sizes[-1]

    def mean(self, run: Run, measure: Measure) -> float:
        """Give the mean of a figure over the logs."""
        return fmean(measure(figures) for figures in self._found[run])

    def spread(self, run: Run, measure: Measure) -> float:
        """Say how far a figure lies apart between the logs."""
        found = [measure(figures) for figures in self._found[run]]
        return max(found) - min(found)

    def curve(self, runs: Iterable[Run], measure: Measure) -> list[float]:
        """Give the mean of a figure for runs one after the other."""
        return [self.mean(run, measure) for run in runs]

    def change(self, runs: list[Run], measure: Measure) -> str:
        """Write the mean change of a figure from the first run to the last, log by log, and its standard error."""
        first, last = ([measure(figures) for figures in self._found[run]] for run in (runs[0], runs[-1]))
        changes = [b - a for a, b in zip(first, last, strict=True)]
        return f"from first to last {fmean(changes):+.3g} (standard error {stdev(changes) / sqrt(len(changes)):.2g})"

    def left_out(self, wanted: int, runs: list[Run], *, what: str) -> tuple[str, ...]:
        """Say how many settings had too few users, if there are any."""
        n_out = wanted - len(runs)
        return (f"{n_out} of {wanted} {what} are left out: too few users share a query there",) if n_out else ()

    def _make(self, run: Run) -> tuple[Figures, ...]:
        try:
            return tuple(
                _figures(ordered.sample(self.n_users(run)), run.method(seed=self.seed + i))
                for i, ordered in enumerate(self.material.logs)
            )
        except TooFewUsers:
            return ()


def _figures(log: QueryLog, method: Kdelta) -> Figures:
    manifest = method.anonymize(log).manifest
    measures, n_users = manifest.measures, manifest.counts.n_users_after
    # Without clicks a manifest says nothing of URLs, and the figures leave them out.
    n_rare = manifest.removed["rows_of_rare_clusters"]
    return Figures(
        n_users=n_users,
        n_rows=log.n_rows - n_rare - manifest.removed["rows_without_query"],
        n_rare_rows=n_rare,
        added=manifest.changed["rows_added"],
        suppressed=manifest.removed["rows_suppressed"],
        groups=int(measures["groups"]),
        joined=n_users - method.k * int(measures["groups"]),
        queries_lost=100 * measures["share_of_distinct_queries_lost"],
        urls_lost=100 * measures.get("share_of_distinct_urls_lost", 0.0),
        top_queries=measures["top_50_queries_kept"],
        top_urls=measures.get("top_50_urls_kept", 0),
        distance_left=measures.get("mean_distance_left", 0.0),
    )


def _name(run: Run) -> str:
    size = f", {run.size:,} users" if run.size else ""
    return f"{run.variant}, k={run.k}, delta={run.delta}{size}" + (", rare kept" if run.min_cluster_users < 2 else "")


def trend(figures: Iterable[float]) -> str:
    """Say which way figures go, if no step back is more than `BACK` of the way from the first to the last.

    >>> trend([1, 2, 2]), trend([3, 1]), trend([1, 3, 2]), trend([1, 1]), trend([0, 1.0, 0.95, 2])
    ('rises', 'falls', 'up and down', 'stays', 'rises')
    """
    found = list(figures)
    steps = [b - a for a, b in pairwise(found)]
    if not any(steps):
        return "stays"
    way = found[-1] - found[0]
    if way > 0 and min(steps) >= -BACK * way:
        return "rises"
    return "falls" if way < 0 and max(steps) <= -BACK * way else "up and down"
