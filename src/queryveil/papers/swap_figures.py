"""Figures of Pàmies-Estrems et al., compared with ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import fmean
from time import process_time

import numpy as np

from queryveil.attacks import Exposure, Seen
from queryveil.attacks.rebuild import Rebuilding
from queryveil.data import Int64s
from queryveil.papers.swap_runs import (
    ATTACKERS,
    GROWTH,
    GROWTHS,
    KS,
    N_TIMES,
    ORDER_NOTE,
    SECONDS_NOTE,
    TIMED_ROWS,
    Distinct,
    Order,
    Run,
    Runs,
    Settings,
    all_settings,
    percent,
)
from queryveil.papers.table import DRAWN_NOTE, OURS, THEIRS, Cell, Table, at_each, claim
from queryveil.progress import step

NAMES = tuple(f"growth={growth}" for growth in GROWTHS)
MUCH = 0.25
_MIDDLE = GROWTHS.index(GROWTH)


def build(runs: Runs) -> Table:
    """Return the time of the pools for each growth, that of growth 1.2 being 1."""
    orders = runs.material.orders
    seconds = {(k, order): _seconds(runs, k=k, order=order) for order in orders for k in KS}
    ratios = {each: [took / times[_MIDDLE] for took in times] for each, times in seconds.items()}
    n_rows = min(runs.material.events.height, TIMED_ROWS)
    return Table(
        name="swap-fig4",
        title="Pàmies-Estrems et al., figure 4: time of the anonymizer against the growth of k (1 at 1.2), l=2",
        columns=("k", "order", "whose", *NAMES, "microseconds a row, growth=1.2"),
        rows=(
            *(_theirs(k) for k in KS),
            *(_ours(each, ratios[each], 1e6 * times[_MIDDLE] / n_rows) for each, times in seconds.items()),
        ),
        notes=(
            *runs.material.notes,
            f"{ORDER_NOTE}; there whole pools of one user are common, so k grows",
            f"{SECONDS_NOTE}; each is the least of {N_TIMES} runs of the pools alone, on up to {TIMED_ROWS:,} rows",
            DRAWN_NOTE,
            *(_claim(ratios, order=order) for order in orders),
        ),
    )


def _claim(ratios: dict[tuple[int, Order], list[float]], *, order: Order) -> str:
    apart = max(abs(ratio - 1) for (_, each), row in ratios.items() if each is order for ratio in row)
    return claim(
        f"the growth does not affect the running time (order {order})",
        holds=apart <= MUCH,
        figures=f"up to {apart:.0%} more or less than at {GROWTH}; {MUCH:.0%} is our limit",
    )


def _seconds(runs: Runs, *, k: int, order: Order) -> list[float]:
    # Turns are taken, so that a machine that is busy for a while slows all of them.
    found: list[list[float]] = [[] for _ in GROWTHS]
    for turn in range(N_TIMES):
        step(f"k={k}, order {order}", turn / N_TIMES)
        for growth, times in zip(GROWTHS, found, strict=True):
            times.append(runs.pooled(Run(k=k, l=2, growth=growth, order=order), at_most=TIMED_ROWS).seconds)
    return [min(times) for times in found]


def _theirs(k: int) -> tuple[Cell, ...]:
    return (k, None, THEIRS, *(None,) * (len(GROWTHS) + 1))


def _ours(name: tuple[int, Order], ratios: list[float], per_row: float) -> tuple[Cell, ...]:
    return (*name, OURS, *(round(ratio, 2) for ratio in ratios), round(per_row, 2))


PRINTED, ALGORITHM = "as printed", "ours"
SLIGHTLY = 2


def build_swap_fig5(runs: Runs) -> Table:
    """Return the mean and the largest k that categories end with, by the printed rule and by ours."""
    used = np.unique(runs.material.events["category"].to_numpy())

    def final(variant: str, k: int, growth: float) -> Int64s:
        if variant == PRINTED:
            found = runs.printed_k(k=k, growth=growth, order=Order.FILE)
        else:
            found = runs.pooled(Run(k=k, l=2, growth=growth, order=Order.FILE)).k_now
        return np.asarray(found[used])

    rows: list[tuple[Cell, ...]] = [(k, None, THEIRS, *(None,) * len(GROWTHS)) for k in KS]
    means: dict[tuple[str, int], list[float]] = {}
    for variant in (PRINTED, ALGORITHM):
        for k in KS:
            found = [final(variant, k, growth) for growth in GROWTHS]
            means[variant, k] = [float(each.mean()) for each in found]
            rows.append((k, f"mean, {variant}", OURS, *(round(mean, 1) for mean in means[variant, k])))
            rows.append((k, f"largest, {variant}", OURS, *_cells(found, lambda each: int(each.max()))))
    return Table(
        name="swap-fig5",
        title="Pàmies-Estrems et al., figure 5: k of the categories after the last row, against its growth, l=2",
        columns=("k", "final k", "whose", *NAMES),
        rows=tuple(rows),
        notes=(
            *runs.material.notes,
            f"the {len(used)} categories that have rows, which come in the order of the file",
            ORDER_NOTE,
            f"{PRINTED}: k grows if all users of a full pool are the same; {ALGORITHM}: also if every waiting user has "
            "issued every waiting query, so k grows further, up to 10,000",
            DRAWN_NOTE,
            *(_claim_swap_fig5(means, variant=variant) for variant in (PRINTED, ALGORITHM)),
        ),
    )


def _cells(found: list[Int64s], measure: Callable[[Int64s], int]) -> tuple[int, ...]:
    return tuple(measure(each) for each in found)


def _claim_swap_fig5(means: dict[tuple[str, int], list[float]], *, variant: str) -> str:
    average = [fmean(figures) for figures in zip(*(means[variant, k] for k in KS), strict=True)]
    return claim(
        f"a larger growth gives slightly larger k, not significantly ({variant}, mean of all k)",
        holds=average[0] < average[-1] < SLIGHTLY * average[0],
        figures=f"{at_each(NAMES, average, digits=1)}; {SLIGHTLY} times as large is our limit",
    )


NAMES_SWAP_FIG6 = tuple(f"k={k}" for k in KS)
# Paper: section 4.3; it does not say what the lowest k is.
THEIR_BEST = 1.89
NO_RULE, PRINTED_SWAP_FIG6 = "A(NR), as printed", "A, as printed"
BEST, CHANCE = "the best de-anonymizer", "blind chance"


def build_swap_fig6(runs: Runs) -> Table:
    """Return the share of rows that match: anonymized with no rule, as printed, by ours, and after the best attack."""
    orders = runs.material.orders
    printed = {(name, order): _printed(runs, name, order) for order in orders for name in (NO_RULE, PRINTED_SWAP_FIG6)}
    wanted = all_settings(runs)
    swapped = {name: [runs.attacked(run).as_released for run in group] for name, group in wanted.items()}
    best = {name: [runs.attacked(run).best for run in group] for name, group in wanted.items()}
    return Table(
        name="swap-fig6",
        title="Pàmies-Estrems et al., figure 6: matching rows in % of the original",
        columns=("log", "l", "order", "whose", *NAMES_SWAP_FIG6),
        rows=(
            (NO_RULE, None, None, THEIRS, *(None,) * len(KS)),
            (PRINTED_SWAP_FIG6, None, None, THEIRS, *(0,) * len(KS)),
            (BEST, None, None, THEIRS, THEIR_BEST, *(None,) * (len(KS) - 1)),
            *((name, None, order, OURS, *shares) for (name, order), shares in printed.items()),
            *(_row("A, ours", name, [percent(each.share) for each in found]) for name, found in swapped.items()),
            *(_row(BEST, name, [percent(each.share) for each in found]) for name, found in best.items()),
            *(_row(CHANCE, name, [percent(each.chance_share) for each in found]) for name, found in best.items()),
        ),
        notes=(
            *runs.material.notes,
            ORDER_NOTE,
            "a row matches if the same user has the same query in the original; rows count as often as both have them",
            DRAWN_NOTE + "; 1.89 % is for its lowest k, which it does not name",
            claim(
                "without the rule for pools of one user, rows leave unchanged",
                holds=all(min(printed[NO_RULE, order]) > 0 for order in orders),
                figures=_at_ks(printed, NO_RULE),
            ),
            claim(
                "with the rule, no row matches",
                holds=all(max(printed[PRINTED_SWAP_FIG6, order]) == 0 for order in orders),
                figures=_at_ks(printed, PRINTED_SWAP_FIG6)
                + "; the rule as printed keeps nobody from drawing a query of their own, ours does: "
                f"{sum(each.n_found for found in swapped.values() for each in found)} rows match",
            ),
        ),
    )


def _printed(runs: Runs, name: str, order: Order) -> list[float]:
    step(f"{name}, order {order}")
    return [percent(runs.printed(k=k, order=order, grows=name == PRINTED_SWAP_FIG6).share) for k in KS]


def _row(log: str, name: tuple[Distinct, Order], figures: list[float]) -> tuple[Cell, ...]:
    return (log, *name, OURS, *figures)


def _at_ks(printed: dict[tuple[str, Order], list[float]], name: str) -> str:
    found = {order: figures for (each, order), figures in printed.items() if each == name}
    return "; ".join(
        f"{at_each(NAMES_SWAP_FIG6, figures, digits=2)}, order {order}" for order, figures in found.items()
    )


ALIKE = 1.25


def build_swap_fig7(runs: Runs) -> Table:
    """Return the share of the original rows that each attacker guesses, for l=2 as in the paper and l=k as is ours."""
    wanted = all_settings(runs)
    theirs = [name for attacker in ATTACKERS for name in (attacker().name, attacker(by_time=True).name)]
    return Table(
        name="swap-fig7",
        title="Pàmies-Estrems et al., figure 7: rows that the de-anonymizers recover, in % of the original",
        columns=("attacker", "l", "order", "whose", *NAMES_SWAP_FIG6),
        rows=(
            *((name, Distinct.TWO, None, THEIRS, THEIR_BEST, *(None,) * (len(KS) - 1)) for name in theirs),
            *(row for name, group in wanted.items() for row in _rows(runs, name, group)),
        ),
        notes=(
            *runs.material.notes,
            ORDER_NOTE,
            "+T: rows sorted by time, the released day; in order time they are already, so nothing changes",
            "blind chance: users and queries of each category dealt out at random, computed as the mean over all ways "
            "to deal; its share falls as a log has more users, since fewer rows of a category are one user's",
            "the fewer users search at a time, the more of a pool is one user's session, so a small log is easier to "
            "attack than AOL's whole",
            "the attackers have the k, the growth and the classifier of the release; a row of the original that is "
            "still in a pool counts as not found",
            DRAWN_NOTE + f"; around {THEIR_BEST} % is for all of them at the lowest k, which it does not name",
            *_alike(runs, wanted),
            *_best(runs, wanted),
        ),
    )


def _rows(runs: Runs, name: tuple[Distinct, Order], group: list[Run]) -> Iterator[tuple[Cell, ...]]:
    found = [runs.attacked(run) for run in group]
    head = (*name, OURS)
    for attacker in found[0].by_name:
        yield (attacker, *head, *(percent(each.by_name[attacker].share) for each in found))
    yield ("as released", *head, *(percent(each.as_released.share) for each in found))
    yield (CHANCE, *head, *(percent(each.as_released.chance_share) for each in found))


def _alike(runs: Runs, wanted: Settings) -> Iterator[str]:
    for (distinct, order), group in wanted.items():
        ratios = []
        for run in group:
            shares = [each.share for each in runs.attacked(run).by_name.values()]
            ratios.append(max(shares) / max(min(shares), 1e-9))
        yield claim(
            f"all of them perform in a similar way (l={distinct}, order {order})",
            holds=max(ratios) <= ALIKE,
            figures=f"the best finds up to {max(ratios):.2f} times what the worst does; {ALIKE} is our limit",
        )


def _best(runs: Runs, wanted: Settings) -> Iterator[str]:
    lowest = [runs.attacked(group[0]).best for (distinct, _), group in wanted.items() if distinct is Distinct.TWO]
    yield claim(
        f"at most {THEIR_BEST} % are recovered at the lowest k",
        holds=all(percent(each.share) <= THEIR_BEST for each in lowest),
        figures=", ".join(f"{100 * each.share:.2f} % ({each.attacker})" for each in lowest),
    )
    for (distinct, order), group in wanted.items():
        said = ", ".join(f"k={run.k} {_says(runs.attacked(run).best)}" for run in group)
        yield f"the best against blind chance, with 95 % intervals, l={distinct}, order {order}: {said}"


def _says(best: Exposure) -> str:
    return (
        f"{_between(best.share, best.interval)} ({best.attacker}) against "
        f"{_between(best.chance_share, best.chance_interval)}"
    )


def _between(share: float, interval: tuple[float, float]) -> str:
    return f"{100 * share:.2f} [{100 * interval[0]:.2f}, {100 * interval[1]:.2f}] %"


COUNTING = ("rebuild_2", "rebuild_4")
"""The attackers that count how often a user waits."""
AFFECTED = 1.5


def build_swap_fig8(runs: Runs) -> Table:
    """Return the microseconds a row of each attacker for each k."""
    times: dict[str, list[float]] = {}
    for k in KS:
        step(f"k={k}")
        seen = _release(runs, k=k)
        for attacker in ATTACKERS:
            each = attacker(k=k, seed=runs.seed)
            times.setdefault(each.name, []).append(_microseconds(each, seen))
    growth = {name: row[-1] / row[0] for name, row in times.items()}
    at_last = {name: row[-1] for name, row in times.items()}
    theirs: list[tuple[Cell, ...]] = [(name, THEIRS, *(None,) * len(KS)) for name in times]
    ours: list[tuple[Cell, ...]] = [(name, OURS, *(round(each, 3) for each in row)) for name, row in times.items()]
    return Table(
        name="swap-fig8",
        title="Pàmies-Estrems et al., figure 8: microseconds a row of the de-anonymizers",
        columns=("attacker", "whose", *NAMES_SWAP_FIG6),
        rows=(*theirs, *ours),
        notes=(
            *runs.material.notes,
            f"the first {TIMED_ROWS:,} rows of a release with l=2 at most, classified before; {SECONDS_NOTE}; each is "
            f"the least of {N_TIMES}",
            "ours count with two tables, so that a user's rows are never searched for; theirs is Python 2.7 on a "
            "1.8 GHz notebook",
            DRAWN_NOTE,
            claim(
                "those that count how often a user is in a pool are the slowest",
                holds=_stand_above(at_last),
                figures=at_each(at_last, at_last.values(), digits=3) + f" at {NAMES_SWAP_FIG6[-1]}",
            ),
            claim(
                "these are also more affected when k grows",
                holds=_stand_above(growth),
                figures=at_each(growth, growth.values(), digits=2)
                + f" times from {NAMES_SWAP_FIG6[0]} to {NAMES_SWAP_FIG6[-1]}",
            ),
            claim(
                "the one that goes by the rows so far is affected too",
                holds=growth["rebuild_3"] > AFFECTED,
                figures=f"{growth['rebuild_3']:.2f} times; {AFFECTED} is our limit",
            ),
        ),
    )


def _stand_above(figures: dict[str, float]) -> bool:
    """Whether all that count have more than any that does not."""
    others = [figure for name, figure in figures.items() if name not in COUNTING]
    return min(figures[name] for name in COUNTING) > max(others)


def _release(runs: Runs, *, k: int) -> Seen:
    order = Order.TIME if runs.has_times else Order.FILE
    pooled = runs.pooled(Run(k=k, l=2, order=order))
    log = pooled.released.with_frame(pooled.released.frame.head(TIMED_ROWS))
    return Seen.of(log, category=pooled.category.head(TIMED_ROWS).to_numpy())


def _microseconds(attacker: Rebuilding, seen: Seen) -> float:
    attacker.guess(seen)
    times = []
    for _ in range(N_TIMES):
        start = process_time()
        attacker.guess(seen)
        times.append(process_time() - start)
    return 1e6 * min(times) / max(1, seen.n_rows)
