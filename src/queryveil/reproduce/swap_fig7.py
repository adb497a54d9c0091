"""Pàmies-Estrems et al., figure 7: rows that each de-anonymizer gets back, beside blind chance."""

from __future__ import annotations

from collections.abc import Iterator

from queryveil.attack import Exposure
from queryveil.reproduce.swap_fig6 import CHANCE, NAMES, THEIR_BEST
from queryveil.reproduce.swap_material import ORDER_NOTE, Order
from queryveil.reproduce.swap_runs import ATTACKERS, KS, Distinct, Run, Runs, Settings, all_settings, percent
from queryveil.reproduce.table import DRAWN_NOTE, OURS, THEIRS, Cell, Table, claim

ALIKE = 1.25


def build(runs: Runs) -> Table:
    """Give the share of the original rows that each attacker guesses, for l=2 as in the paper and l=k as is ours."""
    wanted = all_settings(runs)
    theirs = [name for attacker in ATTACKERS for name in (attacker().name, attacker(by_time=True).name)]
    return Table(
        name="swap-fig7",
        title="Pàmies-Estrems et al., figure 7: rows that the de-anonymizers recover, in % of the original",
        columns=("attacker", "l", "order", "whose", *NAMES),
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
