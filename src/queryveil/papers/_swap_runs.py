"""Pàmies-Estrems et al.: swap the same rows with several settings, and attack what comes out (figures 5 to 7)."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean
from time import process_time

import polars as pl

from queryveil.attacks import Exposure
from queryveil.attacks.rebuild import Choice, Rebuild1, Rebuild2, Rebuild3, Rebuild4, Rebuilding, as_released, rebuilt
from queryveil.attacks.swapped import EncodedLog, Truth
from queryveil.data import Int64s, QueryLog
from queryveil.errors import BadInput
from queryveil.methods.settings import PoolSettings
from queryveil.methods.swap.pools import Pools
from queryveil.methods.swap.preparing import prepare
from queryveil.papers import driver
from queryveil.papers.driver import DRAWN_NOTE, OURS, THEIRS, Cells, Content, at_each, claim, ours_row, theirs_row
from queryveil.progress import step
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
AT_KS = tuple(f"k={k}" for k in KS)
AT_GROWTHS = tuple(f"growth={growth}" for growth in GROWTHS)
ORDER_NOTE = (
    "order time: as a search engine receives the rows; order file: one user after the other, as AOL's files are and as "
    "the paper seems to have run"
)
# Paper: section 4.3; it does not say what the lowest k is.
THEIR_BEST = 1.89
NO_RULE, PRINTED = "A(NR), as printed", "A, as printed"
BEST, CHANCE = "the best de-anonymizer", "blind chance"
TWO, AS_K = "2", "k"  # how many distinct users a pool must have: 2 as in the paper, or k, which is our default
ATTACKERS: tuple[type[Rebuilding], ...] = (Rebuild1, Rebuild2, Rebuild3, Rebuild4)
# Our limits for what the paper says without a figure.
SLIGHTLY, ALIKE = 2, 1.25


class Order(StrEnum):
    """The order in which rows reach the anonymizer: as a search engine receives them, or as the file has them."""

    TIME = "time"
    FILE = "file"


def gather(log: QueryLog | None, *, users: int | None, seed: int) -> "Runs":
    """Take a log, given or made up, and prepare its rows as the anonymizer does."""
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
    by_order = {Order.FILE: events}
    if "time" in events.columns:
        by_order = {Order.TIME: events.sort("time", nulls_last=True, maintain_order=True)} | by_order
    return Runs(
        seed=seed,
        log=log,
        events=by_order,
        notes=(
            f"{origin}: {n_users:,} users, {events.height:,} rows with a query once identifiers are gone "
            f"(theirs: {THEIR_ROWS:,} rows of AOL's); {repeats:.0%} of them repeat a query of the same user",
            f"{1 - n_none / events.height:.1%} of the rows got a category (theirs: {THEIR_SHARE_CLASSIFIED:.0%}, the "
            "rest was thrown away there; here they have a pool of their own)",
        ),
    )


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

    @property
    def percents(self) -> dict[str, float]:
        """The rows of the original that are found, in %, by the name of the de-anonymizer or how else it is read."""
        shares = {name: each.share for name, each in self.by_name.items()} | {
            "as released": self.as_released.share,
            BEST: self.best.share,
            CHANCE: self.as_released.chance_share,
        }
        return {name: round(100 * share, 2) for name, share in shares.items()}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Pooled:
    """What the pools came to: processor seconds, k of each category at the end, and the released rows."""

    seconds: float
    k_now: Int64s
    released: QueryLog
    category: pl.Series


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Runs(driver.Runs[Run, Attacked]):
    """What the attackers found in the release of each run; releases are made anew of `events`, rows in each order."""

    log: QueryLog
    events: Mapping[Order, pl.DataFrame]

    @property
    def order(self) -> Order:
        """The order of rows where only one is measured: by time, if the log has times."""
        return next(iter(self.events))

    def attacks(self) -> dict[tuple[str, Order], list[Attacked]]:
        """Attack the releases of figures 6 and 7: with each k, by the users a pool must have and the order of rows."""
        return self.make_rows(
            {
                (distinct, order): [Run(k=k, l=2 if distinct == TWO else k, order=order) for k in KS]
                for order in self.events
                for distinct in (TWO, AS_K)
            }
        )

    def pooled(self, run: Run, *, at_most: int | None = None) -> Pooled:
        """Swap the rows, or the first of them; the same as `methods.Swap` does, with the rows prepared before."""
        events = self.events[run.order].head(self.log.n_rows if at_most is None else at_most)
        rules = PoolSettings(k=run.k, l=run.l, growth=run.growth, repeats="all", shrink=False, remembered=None)
        pools = Pools(rules, seed=self.seed)
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
        return rebuilt(self._original(order)[1], choice=Choice.RANDOM, k=k, growth=growth, seed=self.seed).k_now

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
            for by_time in (False, True) if Order.TIME in self.events else (False,):
                each = attacker(k=setting.k, growth=setting.growth, by_time=by_time, seed=self.seed + 1)
                found[each.name] = each.judged(truth)
        return Attacked(as_released=as_released(truth), by_name=found)


@driver.table
def fig5(runs: Runs) -> Content:
    """Pàmies-Estrems et al., figure 5: k of the categories after the last row, against its growth, l=2."""
    used = runs.events[Order.FILE]["category"].unique().sort().to_numpy()
    printed, ours = "as printed", "ours"
    final_k: dict[str, Callable[[int, float], Int64s]] = {
        printed: lambda k, growth: runs.printed_k(k=k, growth=growth, order=Order.FILE),
        ours: lambda k, growth: runs.pooled(Run(k=k, l=2, growth=growth, order=Order.FILE)).k_now,
    }
    rows: list[Cells] = [theirs_row(k, None, n=len(GROWTHS)) for k in KS]
    claims = []
    for variant, final in final_k.items():
        means = []
        for k in KS:
            found = [final(k, growth)[used] for growth in GROWTHS]
            means.append([float(each.mean()) for each in found])
            rows.append(ours_row(k, f"mean, {variant}", figures=means[-1], digits=1))
            rows.append((k, f"largest, {variant}", OURS, *(int(each.max()) for each in found)))
        average = [fmean(figures) for figures in zip(*means, strict=True)]
        claims.append(
            claim(
                f"a larger growth gives slightly larger k, not significantly ({variant}, mean of all k)",
                holds=average[0] < average[-1] < SLIGHTLY * average[0],
            )
            + f"{at_each(AT_GROWTHS, average, digits=1)}; {SLIGHTLY} times as large is our limit"
        )
    return Content(
        columns=("k", "final k", "whose", *AT_GROWTHS),
        rows=rows,
        notes=(
            f"the {len(used)} categories that have rows, which come in the order of the file",
            ORDER_NOTE,
            f"{printed}: k grows if all users of a full pool are the same; {ours}: also if every waiting user has "
            "issued every waiting query, so k grows further, up to 10,000",
            DRAWN_NOTE,
            *claims,
        ),
    )


@driver.table
def fig6(runs: Runs) -> Content:
    """Pàmies-Estrems et al., figure 6: matching rows in % of the original."""
    attacks = runs.attacks()
    printed: dict[str, dict[Order, list[float]]] = {NO_RULE: {}, PRINTED: {}}
    for order in runs.events:
        for name, by_order in printed.items():
            step(f"{name}, order {order}")
            shares = (runs.printed(k=k, order=order, grows=name == PRINTED).share for k in KS)
            by_order[order] = [round(100 * share, 2) for share in shares]
    least, most = min(map(min, printed[NO_RULE].values())), max(map(max, printed[PRINTED].values()))
    n_matching = sum(each.as_released.n_found for found in attacks.values() for each in found)

    def at_ks(name: str) -> str:
        return "; ".join(f"{at_each(AT_KS, row, digits=2)}, order {order}" for order, row in printed[name].items())

    return Content(
        columns=("log", "l", "order", "whose", *AT_KS),
        rows=(
            theirs_row(NO_RULE, None, None, n=len(KS)),
            (PRINTED, None, None, THEIRS, *(0,) * len(KS)),
            (BEST, None, None, THEIRS, THEIR_BEST, *(None,) * (len(KS) - 1)),
            *((name, None, order, OURS, *printed[name][order]) for order in runs.events for name in printed),
            *(
                ours_row(head, *setting, figures=(each.percents[name] for each in found), digits=2)
                for head, name in (("A, ours", "as released"), (BEST, BEST), (CHANCE, CHANCE))
                for setting, found in attacks.items()
            ),
        ),
        notes=(
            ORDER_NOTE,
            "a row matches if the same user has the same query in the original; rows count as often as both have them",
            DRAWN_NOTE + "; 1.89 % is for its lowest k, which it does not name",
            claim("without the rule for pools of one user, rows leave unchanged", holds=least > 0) + at_ks(NO_RULE),
            claim("with the rule, no row matches", holds=most == 0)
            + at_ks(PRINTED)
            + "; the rule as printed keeps nobody from drawing a query of their own, ours does: "
            f"{n_matching} rows match",
        ),
    )


@driver.table
def fig7(runs: Runs) -> Content:
    """Pàmies-Estrems et al., figure 7: rows that the de-anonymizers recover, in % of the original."""
    attacks = runs.attacks()
    theirs = [name for attacker in ATTACKERS for name in (attacker().name, attacker(by_time=True).name)]
    return Content(
        columns=("attacker", "l", "order", "whose", *AT_KS),
        rows=(
            *((name, TWO, None, THEIRS, THEIR_BEST, *(None,) * (len(KS) - 1)) for name in theirs),
            *(
                ours_row(name, *setting, figures=(each.percents[name] for each in found), digits=2)
                for setting, found in attacks.items()
                for name in (*found[0].by_name, "as released", CHANCE)
            ),
        ),
        notes=(
            ORDER_NOTE,
            "+T: rows sorted by time, the released day; in order time they are already, so nothing changes",
            "blind chance: all queries of a category taken for those of one user, the one for whom that is true most "
            "often; its share falls as a log has more users, since fewer rows of a category are one user's",
            "the fewer users search at a time, the more of a pool is one user's session, so a small log is easier to "
            "attack than AOL's whole",
            "the attackers have the k, the growth and the classifier of the release; a row of the original that is "
            "still in a pool counts as not found",
            DRAWN_NOTE + f"; around {THEIR_BEST} % is for all of them at the lowest k, which it does not name",
            *_claims_of_attacks(runs),
        ),
    )


def _claims_of_attacks(runs: Runs) -> Iterator[str]:
    attacks = runs.attacks()
    for (distinct, order), found in attacks.items():
        shares = [[exposure.share for exposure in each.by_name.values()] for each in found]
        most = max(max(each) / max(min(each), 1e-9) for each in shares)
        yield (
            claim(f"all of them perform in a similar way (l={distinct}, order {order})", holds=most <= ALIKE)
            + f"the best finds up to {most:.2f} times what the worst does; {ALIKE} is our limit"
        )
    lowest = [found[0] for (distinct, _), found in attacks.items() if distinct == TWO]
    yield claim(
        f"at most {THEIR_BEST} % are recovered at the lowest k",
        holds=all(each.percents[BEST] <= THEIR_BEST for each in lowest),
    ) + ", ".join(f"{each.percents[BEST]:.2f} % ({each.best.attacker})" for each in lowest)
    for (distinct, order), found in attacks.items():
        said = ", ".join(f"{at} {_against_chance(each.best)}" for at, each in zip(AT_KS, found, strict=True))
        yield f"the best against blind chance, with 95 % intervals, l={distinct}, order {order}: {said}"


def _against_chance(best: Exposure) -> str:
    figures = ((best.share, best.interval), (best.chance_share, best.chance_interval))
    found, chance = (f"{100 * share:.2f} [{100 * low:.2f}, {100 * high:.2f}] %" for share, (low, high) in figures)
    return f"{found} ({best.attacker}) against {chance}"
