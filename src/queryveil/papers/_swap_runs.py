"""Pàmies-Estrems et al.: swap the same rows with several settings, and attack what comes out."""

from dataclasses import dataclass
from enum import StrEnum
from time import process_time

import polars as pl

from queryveil.attacks import EncodedLog, Exposure, Rebuild1, Rebuild2, Rebuild3, Rebuild4, Truth, as_released
from queryveil.attacks.rebuild import Choice, Rebuilding, rebuilt
from queryveil.data import Int64s, QueryLog
from queryveil.errors import BadInput
from queryveil.methods.settings import PoolSettings
from queryveil.methods.swap.pools import Pools
from queryveil.methods.swap.preparing import prepare
from queryveil.papers import driver
from queryveil.text.classifier import UNCLASSIFIED, Classifier

USERS = 10_000
# Paper: section 4.2.1.
THEIR_ROWS = 36_389_576
THEIR_SHARE_CLASSIFIED = 0.85
FEWEST_USERS = 50
# Paper: section 4.2.2 fixes the growth; which k the figures have is only drawn.
GROWTH = 1.2
GROWTHS = (1.1, 1.2, 1.5, 2.0, 3.0)
KS = (5, 10, 20, 50)
ATTACKERS: tuple[type[Rebuilding], ...] = (Rebuild1, Rebuild2, Rebuild3, Rebuild4)


class Order(StrEnum):
    """The order in which rows reach the anonymizer: as a search engine receives them, or as the file has them."""

    TIME = "time"
    FILE = "file"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Material(driver.Material):
    """The log as it came, and its rows prepared in the order of the file."""

    log: QueryLog
    events: pl.DataFrame

    @property
    def orders(self) -> tuple[Order, ...]:
        """The orders that the log allows."""
        return tuple(Order) if "time" in self.events.columns else (Order.FILE,)


def gather(log: QueryLog | None, *, users: int | None, seed: int) -> Material:
    """Return a log, given or made up, and its rows prepared as the anonymizer does."""
    log, origin = driver.given_or_made_up(log, like="aol", users=USERS if users is None else users, seed=seed)
    if log.terms_are_items:
        raise BadInput("the swap figures are for logs of queries; for transactions there are the clump figures")
    names = [name for name in ("user", "query", "time") if name in log.columns]
    prepared = prepare(log.frame.select(names), classifier=Classifier())
    events = prepared.frame
    n_users = events["user"].n_unique()
    if n_users < FEWEST_USERS:
        raise BadInput(f"{n_users} users of the log have a query, too few for pools of k=50; give a larger log")
    n_none = prepared.category_counts.get(UNCLASSIFIED, 0)
    repeats = 1 - events.select("user", "query").n_unique() / events.height
    return Material(
        log=log,
        events=events,
        notes=(
            f"{origin}: {n_users:,} users, {events.height:,} rows with a query once identifiers are gone "
            f"(theirs: {THEIR_ROWS:,} rows of AOL's); {repeats:.0%} of them repeat a query of the same user",
            f"{1 - n_none / events.height:.1%} of the rows got a category (theirs: {THEIR_SHARE_CLASSIFIED:.0%}, the "
            "rest was thrown away there; here they have a pool of their own)",
        ),
    )


class Distinct(StrEnum):
    """How many distinct users a pool must have: 2 as in the paper, or k, which is our default."""

    TWO = "2"
    K = "k"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Settings of the anonymizer."""

    k: int
    l: int  # noqa: E741 - as in the papers
    growth: float = GROWTH
    order: Order = Order.TIME

    def __str__(self) -> str:
        return f"k={self.k}, l={self.l}, order {self.order}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attacked:
    """A release under attack: read as it stands, and by every de-anonymizer by its name."""

    as_released: Exposure
    by_name: dict[str, Exposure]

    @property
    def best(self) -> Exposure:
        """The de-anonymizer that found most."""
        return max(self.by_name.values(), key=lambda each: each.n_found)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Pooled:
    """What the pools came to: processor seconds, k of each category at the end, and the released rows."""

    seconds: float
    k_now: Int64s
    released: QueryLog
    category: pl.Series


Settings = dict[tuple[Distinct, Order], list[Run]]
"""Runs with each k, by how many users a pool must have and by the order of the rows."""


class Runs(driver.Runs[Material, Run, Attacked]):
    """What the attackers found in the release of each run; releases are made anew of `events`, rows in each order."""

    def __init__(self, material: Material, *, seed: int) -> None:
        super().__init__(material, seed=seed)
        self.events = {Order.FILE: material.events}
        if Order.TIME in material.orders:
            self.events[Order.TIME] = material.events.sort("time", nulls_last=True, maintain_order=True)

    @property
    def order(self) -> Order:
        """The order of rows where only one is measured: by time, if the log has times."""
        return self.material.orders[0]

    def every_setting(self) -> Settings:
        """Return the runs of figures 6 and 7, attacked."""
        wanted = {
            (distinct, order): [Run(k=k, l=2 if distinct is Distinct.TWO else k, order=order) for k in KS]
            for order in self.material.orders
            for distinct in Distinct
        }
        self.make(run for group in wanted.values() for run in group)
        return wanted

    def pooled(self, run: Run, *, at_most: int | None = None) -> Pooled:
        """Swap the rows, or the first of them; the same as `methods.Swap` does, with the rows prepared before."""
        events = self.events[run.order].head(self.material.events.height if at_most is None else at_most)
        pools = Pools(PoolSettings(k=run.k, l=run.l, growth=run.growth, repeats="all", remembered=None), seed=self.seed)
        start = process_time()
        released = pools.add(events).released
        seconds = process_time() - start
        columns = ["user", "query"]
        if "time" in events.columns:
            # As released: the day of the arrival that set the row free.
            day = events["time"].gather(released["arrival"]).dt.truncate("1d")
            released, columns = released.with_columns(time=day), [*columns, "time"]
        log, category = QueryLog(frame=released.select(columns)), released["category"]
        return Pooled(seconds=seconds, k_now=pools.k_now, released=log, category=category)

    def printed(self, *, k: int, order: Order, grows: bool) -> Exposure:
        """Swap as algorithm 2 is printed, nothing but chance deciding, and read the release as it stands."""
        log, encoded = self._original(order)
        guess = rebuilt(encoded, choice=Choice.RANDOM, k=k, growth=GROWTH, grows=grows, seed=self.seed)
        swapped = EncodedLog.of(encoded.log_of(guess), category=encoded.category[guess.query_row].astype("int8"))
        return as_released(Truth.of(log, released=swapped, cleaned=True))

    def printed_k(self, *, k: int, growth: float, order: Order) -> Int64s:
        """Return what k grows to in each category by algorithm 2 as it is printed."""
        _, encoded = self._original(order)
        return rebuilt(encoded, choice=Choice.RANDOM, k=k, growth=growth, seed=self.seed).k_now

    def _original(self, order: Order) -> tuple[QueryLog, EncodedLog]:
        events = self.events[order]
        log = QueryLog(frame=events.select("user", "query"))
        return log, EncodedLog.of(log, category=events["category"].to_numpy())

    def _run(self, setting: Run) -> Attacked:
        pooled = self.pooled(setting)
        released = EncodedLog.of(pooled.released, category=pooled.category.to_numpy())
        truth = Truth.of(self._original(setting.order)[0], released=released, cleaned=True)
        found = {}
        for attacker in ATTACKERS:
            for by_time in (False, True) if Order.TIME in self.material.orders else (False,):
                each = attacker(k=setting.k, growth=setting.growth, by_time=by_time, seed=self.seed + 1)
                found[each.name] = each.exposure(truth)
        return Attacked(as_released=as_released(truth), by_name=found)
