"""Pàmies-Estrems et al., figure 4: whether the growth of k changes how long anonymizing takes."""

from __future__ import annotations

from queryveil.progress import step
from queryveil.reproduce.swap_material import ORDER_NOTE, Order
from queryveil.reproduce.swap_runs import GROWTH, GROWTHS, KS, N_TIMES, SECONDS_NOTE, TIMED_ROWS, Run, Runs
from queryveil.reproduce.table import DRAWN_NOTE, OURS, THEIRS, Cell, Table, claim

NAMES = tuple(f"growth={growth}" for growth in GROWTHS)
MUCH = 0.25
_MIDDLE = GROWTHS.index(GROWTH)


def build(runs: Runs) -> Table:
    """Give the time of the pools for each growth, that of growth 1.2 being 1."""
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
