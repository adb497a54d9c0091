"""Pàmies-Estrems et al., figure 6: rows that an anonymized log still shares with the original."""

from __future__ import annotations

from queryveil.progress import step
from queryveil.reproduce.swap_material import ORDER_NOTE, Order
from queryveil.reproduce.swap_runs import KS, Distinct, Runs, all_settings, percent
from queryveil.reproduce.table import DRAWN_NOTE, OURS, THEIRS, Cell, Table, at_each, claim

NAMES = tuple(f"k={k}" for k in KS)
# Paper: section 4.3; it does not say what the lowest k is.
THEIR_BEST = 1.89
NO_RULE, PRINTED = "A(NR), as printed", "A, as printed"
BEST, CHANCE = "the best de-anonymizer", "blind chance"


def build(runs: Runs) -> Table:
    """Give the share of rows that match: anonymized with no rule, as printed, by ours, and after the best attack."""
    orders = runs.material.orders
    printed = {(name, order): _printed(runs, name, order) for order in orders for name in (NO_RULE, PRINTED)}
    wanted = all_settings(runs)
    swapped = {name: [runs.attacked(run).as_released for run in group] for name, group in wanted.items()}
    best = {name: [runs.attacked(run).best for run in group] for name, group in wanted.items()}
    return Table(
        name="swap-fig6",
        title="Pàmies-Estrems et al., figure 6: matching rows in % of the original",
        columns=("log", "l", "order", "whose", *NAMES),
        rows=(
            (NO_RULE, None, None, THEIRS, *(None,) * len(KS)),
            (PRINTED, None, None, THEIRS, *(0,) * len(KS)),
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
                holds=all(max(printed[PRINTED, order]) == 0 for order in orders),
                figures=_at_ks(printed, PRINTED)
                + "; the rule as printed keeps nobody from drawing a query of their own, ours does: "
                f"{sum(each.n_found for found in swapped.values() for each in found)} rows match",
            ),
        ),
    )


def _printed(runs: Runs, name: str, order: Order) -> list[float]:
    step(f"{name}, order {order}")
    return [percent(runs.printed(k=k, order=order, grows=name == PRINTED).share) for k in KS]


def _row(log: str, name: tuple[Distinct, Order], figures: list[float]) -> tuple[Cell, ...]:
    return (log, *name, OURS, *figures)


def _at_ks(printed: dict[tuple[str, Order], list[float]], name: str) -> str:
    found = {order: figures for (each, order), figures in printed.items() if each == name}
    return "; ".join(f"{at_each(NAMES, figures, digits=2)}, order {order}" for order, figures in found.items())
