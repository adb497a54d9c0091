"""Pàmies-Estrems et al.: what swapping costs, and what de-anonymizers recover (tables 2 to 4, figures 4 to 8)."""

from collections.abc import Callable, Iterable, Iterator
from importlib import resources
from statistics import fmean

import polars as pl

from queryveil.attacks import EncodedLog, Exposure
from queryveil.data import Int64s
from queryveil.papers import driver
from queryveil.papers._swap_costs import N_TIMES, SECONDS_NOTE, TIMED_ROWS, microseconds, table2, table3
from queryveil.papers._swap_runs import ATTACKERS, GROWTH, GROWTHS, KS, Distinct, Order, Run, Runs, Settings, gather
from queryveil.papers.driver import DRAWN_NOTE, OURS, THEIRS, Cells, Content, at_each, claim, ours_row, theirs_row
from queryveil.progress import step
from queryveil.text.classifier import CATEGORIES, Classifier, Kind

__all__ = ["Runs", "fig4", "fig5", "fig6", "fig7", "fig8", "gather", "table2", "table3", "table4"]

AT_KS = tuple(f"k={k}" for k in KS)
AT_GROWTHS = tuple(f"growth={growth}" for growth in GROWTHS)
ORDER_NOTE = (
    "order time: as a search engine receives the rows; order file: one user after the other, as AOL's files are and as "
    "the paper seems to have run"
)

# Paper: table 4 and section 4.5, in %.
THEIR_SHARES = (
    *(57.23, 77.39, 64.79, 56.25, 88.10, 81.48, 37.65, 16.67),
    *(55.22, 69.23, 69.08, 47.22, 69.64, 56.76, 40.48, 30.77),
)
THEIR_RIGHT, THEIR_COVERED, THEIR_QUERIES = 58.99, 85, 1068
RIGHT, COVERED = "all, right", "all, with a category"
# Paper: section 4.3; it does not say what the lowest k is.
THEIR_BEST = 1.89
NO_RULE, PRINTED = "A(NR), as printed", "A, as printed"
BEST, CHANCE = "the best de-anonymizer", "blind chance"
COUNTING = ("rebuild_2", "rebuild_4")
"""The attackers that count how often a user waits."""
# Our limits for what the paper says without a figure.
MUCH, SLIGHTLY, ALIKE, AFFECTED = 0.25, 2, 1.25, 1.5


def table4() -> driver.Table:
    """Return the share of queries with a right category, for each category and as a whole."""
    labelled = read_labelled()
    found = {kind: judged(labelled, kind=kind) for kind in (Kind.PAPER, Kind.EVIDENCE)}
    theirs: dict[str, float] = dict(zip(CATEGORIES, THEIR_SHARES, strict=True))
    theirs |= {RIGHT: THEIR_RIGHT, COVERED: THEIR_COVERED}
    best, worst = (choose(CATEGORIES, key=found[Kind.EVIDENCE].__getitem__) for choose in (max, min))
    return driver.Table(
        name="swap-table4",
        title="Pàmies-Estrems et al., table 4: queries that get a right category, in %",
        columns=("category", THEIRS, f"{OURS}, as in the paper", f"{OURS}, by all units"),
        rows=tuple(
            (name, theirs[name], *(round(each[name], 2) for each in found.values()))
            for name in (*CATEGORIES, COVERED, RIGHT)
        ),
        notes=(
            f"ours: {labelled.height} made-up queries of one to five words, {labelled.height // len(CATEGORIES)} a "
            "category, each with the one category it was written for; a person would often accept another one too, "
            "which counts as wrong here",
            "the queries were written before the classifier had seen them, and nothing was tuned to them; but who "
            "writes for a category writes plainly, so real queries get a right one less often",
            f"theirs: {THEIR_QUERIES:,} rows of AOL's log, judged by hand; how many of each category is not said, and "
            "there is no log here to compare with, so the two differ by their queries too",
            "as in the paper: the rarest unit alone decides; by all units: our default",
            claim(
                "very specific terms, as in Health, do best and generic ones, as in News, worst",
                holds=(best, worst) == ("Health", "News"),
            )
            + f"best {best}, worst {worst}, by all units",
            claim(
                "the words of a query together would be right more often than one alone",
                holds=found[Kind.EVIDENCE][RIGHT] > found[Kind.PAPER][RIGHT],
            )
            + f"{found[Kind.EVIDENCE][RIGHT]:.2f} % against {found[Kind.PAPER][RIGHT]:.2f} %",
        ),
    )


def read_labelled() -> pl.DataFrame:
    """Read the made-up queries and the category that each was written for."""
    with (resources.files("queryveil.papers") / "data" / "labelled_queries.tsv").open("rb") as file:
        return pl.read_csv(file.read(), separator="\t", quote_char=None)


def judged(labelled: pl.DataFrame, *, kind: Kind) -> dict[str, float]:
    """Return the percentages of right answers."""
    found = Classifier(kind=kind).classify(labelled["query"])
    table = labelled.with_columns(right=found.names == labelled["category"], has=pl.Series(found.category >= 0))
    by_category = table.group_by("category").agg(100 * pl.col("right").mean()).rows()
    has, right = (100 * table[name].cast(pl.Float64).sum() / table.height for name in ("has", "right"))
    return {**dict(by_category), COVERED: has, RIGHT: right}


@driver.table
def fig4(runs: Runs) -> Content:
    """Pàmies-Estrems et al., figure 4: time of the anonymizer against the growth of k (1 at 1.2), l=2."""
    middle = GROWTHS.index(GROWTH)
    orders = runs.material.orders
    seconds = {(k, order): _seconds(runs, k=k, order=order) for order in orders for k in KS}
    ratios = {each: [took / times[middle] for took in times] for each, times in seconds.items()}
    n_rows = min(runs.material.events.height, TIMED_ROWS)
    apart = {
        order: max(abs(ratio - 1) for (_, each), row in ratios.items() if each is order for ratio in row)
        for order in orders
    }
    return Content(
        columns=("k", "order", "whose", *AT_GROWTHS, "microseconds a row, growth=1.2"),
        rows=(
            *(theirs_row(k, None, n=len(GROWTHS) + 1) for k in KS),
            *(
                ours_row(*each, figures=(*ratios[each], 1e6 * times[middle] / n_rows), digits=2)
                for each, times in seconds.items()
            ),
        ),
        notes=(
            f"{ORDER_NOTE}; there whole pools of one user are common, so k grows",
            f"{SECONDS_NOTE}; each is the least of {N_TIMES} runs of the pools alone, on up to {TIMED_ROWS:,} rows",
            DRAWN_NOTE,
            *(
                claim(f"the growth does not affect the running time (order {order})", holds=most <= MUCH)
                + f"up to {most:.0%} more or less than at {GROWTH}; {MUCH:.0%} is our limit"
                for order, most in apart.items()
            ),
        ),
    )


def _seconds(runs: Runs, *, k: int, order: Order) -> list[float]:
    # Turns are taken, so that a machine that is busy for a while slows all of them.
    found: list[list[float]] = [[] for _ in GROWTHS]
    for turn in range(N_TIMES):
        step(f"k={k}, order {order}", turn / N_TIMES)
        for growth, times in zip(GROWTHS, found, strict=True):
            times.append(runs.pooled(Run(k=k, l=2, growth=growth, order=order), at_most=TIMED_ROWS).seconds)
    return [min(times) for times in found]


@driver.table
def fig5(runs: Runs) -> Content:
    """Pàmies-Estrems et al., figure 5: k of the categories after the last row, against its growth, l=2."""
    used = runs.material.events["category"].unique().sort().to_numpy()
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
    printed: dict[tuple[str, Order], list[float]] = {}
    for order in runs.material.orders:
        for name in (NO_RULE, PRINTED):
            step(f"{name}, order {order}")
            shares = [runs.printed(k=k, order=order, grows=name == PRINTED).share for k in KS]
            printed[name, order] = [_percent(share) for share in shares]
    wanted = runs.every_setting()
    swapped = {name: [runs.found(run).as_released for run in group] for name, group in wanted.items()}
    best = {name: [runs.found(run).best for run in group] for name, group in wanted.items()}

    def at_ks(name: str) -> str:
        found = ((order, figures) for (each, order), figures in printed.items() if each == name)
        return "; ".join(f"{at_each(AT_KS, figures, digits=2)}, order {order}" for order, figures in found)

    def percents(log: str, setting: tuple[Distinct, Order], shares: Iterable[float]) -> Cells:
        return ours_row(log, *setting, figures=(100 * share for share in shares), digits=2)

    def figures_of(name: str) -> list[float]:
        return [figure for (each, _), figures in printed.items() if each == name for figure in figures]

    return Content(
        columns=("log", "l", "order", "whose", *AT_KS),
        rows=(
            theirs_row(NO_RULE, None, None, n=len(KS)),
            (PRINTED, None, None, THEIRS, *(0,) * len(KS)),
            (BEST, None, None, THEIRS, THEIR_BEST, *(None,) * (len(KS) - 1)),
            *((name, None, order, OURS, *shares) for (name, order), shares in printed.items()),
            *(percents("A, ours", name, (each.share for each in found)) for name, found in swapped.items()),
            *(percents(BEST, name, (each.share for each in found)) for name, found in best.items()),
            *(percents(CHANCE, name, (each.chance_share for each in found)) for name, found in best.items()),
        ),
        notes=(
            ORDER_NOTE,
            "a row matches if the same user has the same query in the original; rows count as often as both have them",
            DRAWN_NOTE + "; 1.89 % is for its lowest k, which it does not name",
            claim("without the rule for pools of one user, rows leave unchanged", holds=min(figures_of(NO_RULE)) > 0)
            + at_ks(NO_RULE),
            claim("with the rule, no row matches", holds=max(figures_of(PRINTED)) == 0)
            + at_ks(PRINTED)
            + "; the rule as printed keeps nobody from drawing a query of their own, ours does: "
            f"{sum(each.n_found for found in swapped.values() for each in found)} rows match",
        ),
    )


def _percent(share: float) -> float:
    return round(100 * share, 2)


@driver.table
def fig7(runs: Runs) -> Content:
    """Pàmies-Estrems et al., figure 7: rows that the de-anonymizers recover, in % of the original."""
    wanted = runs.every_setting()
    theirs = [name for attacker in ATTACKERS for name in (attacker().name, attacker(by_time=True).name)]
    return Content(
        columns=("attacker", "l", "order", "whose", *AT_KS),
        rows=(
            *((name, Distinct.TWO, None, THEIRS, THEIR_BEST, *(None,) * (len(KS) - 1)) for name in theirs),
            *(row for name, group in wanted.items() for row in _attack_rows(runs, name, group)),
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
            *_claims_of_attacks(runs, wanted),
        ),
    )


def _attack_rows(runs: Runs, name: tuple[Distinct, Order], group: list[Run]) -> Iterator[Cells]:
    found = [runs.found(run) for run in group]
    head = (*name, OURS)
    for attacker in found[0].by_name:
        yield (attacker, *head, *(_percent(each.by_name[attacker].share) for each in found))
    yield ("as released", *head, *(_percent(each.as_released.share) for each in found))
    yield (CHANCE, *head, *(_percent(each.as_released.chance_share) for each in found))


def _claims_of_attacks(runs: Runs, wanted: Settings) -> Iterator[str]:
    for (distinct, order), group in wanted.items():
        shares = [[each.share for each in runs.found(run).by_name.values()] for run in group]
        most = max(max(each) / max(min(each), 1e-9) for each in shares)
        yield (
            claim(f"all of them perform in a similar way (l={distinct}, order {order})", holds=most <= ALIKE)
            + f"the best finds up to {most:.2f} times what the worst does; {ALIKE} is our limit"
        )
    lowest = [runs.found(group[0]).best for (distinct, _), group in wanted.items() if distinct is Distinct.TWO]
    yield claim(
        f"at most {THEIR_BEST} % are recovered at the lowest k",
        holds=all(_percent(each.share) <= THEIR_BEST for each in lowest),
    ) + ", ".join(f"{100 * each.share:.2f} % ({each.attacker})" for each in lowest)
    for (distinct, order), group in wanted.items():
        said = ", ".join(f"k={run.k} {_against_chance(runs.found(run).best)}" for run in group)
        yield f"the best against blind chance, with 95 % intervals, l={distinct}, order {order}: {said}"


def _against_chance(best: Exposure) -> str:
    figures = ((best.share, best.interval), (best.chance_share, best.chance_interval))
    found, chance = (f"{100 * share:.2f} [{100 * low:.2f}, {100 * high:.2f}] %" for share, (low, high) in figures)
    return f"{found} ({best.attacker}) against {chance}"


@driver.table
def fig8(runs: Runs) -> Content:
    """Pàmies-Estrems et al., figure 8: microseconds a row of the de-anonymizers."""
    times: dict[str, list[float]] = {}
    for k in KS:
        pooled = runs.pooled(Run(k=k, l=2, order=runs.order))
        log = pooled.released.with_frame(pooled.released.frame.head(TIMED_ROWS))
        encoded = EncodedLog.of(log, category=pooled.category.head(TIMED_ROWS).to_numpy())
        for attacker in (each(k=k, seed=runs.seed) for each in ATTACKERS):
            attacker.guess(encoded)
            turns = microseconds(f"k={k}", lambda _: attacker.guess(encoded), n_rows=encoded.n_rows)  # noqa: B023
            times.setdefault(attacker.name, []).append(min(turns))
    growth = {name: row[-1] / row[0] for name, row in times.items()}
    at_last = {name: row[-1] for name, row in times.items()}
    return Content(
        columns=("attacker", "whose", *AT_KS),
        rows=(
            *(theirs_row(name, n=len(KS)) for name in times),
            *(ours_row(name, figures=row, digits=3) for name, row in times.items()),
        ),
        notes=(
            f"the first {TIMED_ROWS:,} rows of a release with l=2 at most, classified before; {SECONDS_NOTE}; each is "
            f"the least of {N_TIMES}",
            "ours count with two tables, so that a user's rows are never searched for; theirs is Python 2.7 on a "
            "1.8 GHz notebook",
            DRAWN_NOTE,
            claim(
                "those that count how often a user is in a pool are the slowest", holds=_counting_stand_above(at_last)
            )
            + at_each(at_last, at_last.values(), digits=3)
            + f" at {AT_KS[-1]}",
            claim("these are also more affected when k grows", holds=_counting_stand_above(growth))
            + at_each(growth, growth.values(), digits=2)
            + f" times from {AT_KS[0]} to {AT_KS[-1]}",
            claim("the one that goes by the rows so far is affected too", holds=growth["rebuild_3"] > AFFECTED)
            + f"{growth['rebuild_3']:.2f} times; {AFFECTED} is our limit",
        ),
    )


def _counting_stand_above(figures: dict[str, float]) -> bool:
    """Return whether all attackers that count have more than any that does not."""
    others = [figure for name, figure in figures.items() if name not in COUNTING]
    return min(figures[name] for name in COUNTING) > max(others)
