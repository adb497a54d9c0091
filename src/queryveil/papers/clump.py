"""Tables and figures of Fard and Wang, compared with ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise

from queryveil.methods.clump._greedy import COMPARE_UP_TO, Cost
from queryveil.papers.clump_runs import KS, METHODS_NOTE, Method, R, Run, Runs, sized, sizes
from queryveil.papers.table import DRAWN_NOTE, OURS, THEIRS, Cell, Table, claim

Measure = Callable[[Cost], float]
Curves = Mapping[Method, tuple[float, ...]]
"""Ours by method, one figure for each of `KS`."""

COLUMNS = ("method", "whose", *(f"k={k}" for k in KS))


def curves(runs: Runs, measure: Measure) -> Curves:
    """Measure every method at every k."""
    runs.make(Run(method=method, k=k) for method in Method for k in KS)
    return {method: tuple(measure(runs.cost(Run(method=method, k=k))) for k in KS) for method in Method}


def rows(
    ours: Curves, *, theirs_last: Mapping[Method, Cell], ours_last: Mapping[Method, Cell], digits: int
) -> Iterator[tuple[Cell, ...]]:
    """Put ours below theirs for each method; the last column is what the paper's text speaks of."""
    for method, figures in ours.items():
        if method is not Method.REFINED:
            yield (str(method), THEIRS, *(None,) * len(KS), theirs_last.get(method))
        yield (str(method), OURS, *(round(figure, digits or None) for figure in figures), ours_last.get(method))


def order(ours: Curves, *, at: int) -> list[Method]:
    """Order the paper's methods by their figure at one place of `KS`, largest first."""
    papers = [method for method in ours if method is not Method.REFINED]
    return sorted(papers, key=lambda method: -ours[method][at])


def places(ours: Curves) -> dict[Method, Cell]:
    """Return the place of each of the paper's methods, largest first, if it is the same at every k.

    >>> found = places({Method.CLUMP1: (3.0, 3.0), Method.CLUMP2: (1.0, 4.0), Method.PARTITION: (2.0, 2.0)})
    >>> {str(method): place for method, place in found.items()}
    {'Clump1': '1 or 2', 'Clump2': '1 or 3', 'Partition': '2 or 3'}
    """
    n_ks = len(next(iter(ours.values())))
    orders = [order(ours, at=at) for at in range(n_ks)]
    found: dict[Method, Cell] = {}
    for method in orders[0]:
        seen = sorted({by_size.index(method) + 1 for by_size in orders})
        found[method] = seen[0] if len(seen) == 1 else " or ".join(map(str, seen))
    return dict(sorted(found.items(), key=lambda entry: list(ours).index(entry[0])))


def at_each_k(figures: Iterator[str]) -> str:
    """Write one figure for each k.

    >>> at_each_k(iter(["a", "b", "c", "d"]))
    'a (k=5), b (k=7), c (k=10), d (k=15)'
    """
    return ", ".join(f"{figure} (k={k})" for k, figure in zip(KS, figures, strict=True))


THEIR_MOST = 30
VERY_SMALL = 5


def build(runs: Runs) -> Table:
    """Return the total distortion of each method at each k, and how far it is below Partition's."""
    ours = curves(runs, lambda cost: cost.distortion)
    most: dict[Method, Cell] = {
        method: round(max(below(ours, method)), 1) for method in ours if method is not Method.PARTITION
    }
    return Table(
        name="clump-fig3",
        title="Fard and Wang, figure 3: information loss (total GGD), r=10",
        columns=(*COLUMNS, "below Partition, at most %"),
        rows=tuple(
            rows(
                ours,
                theirs_last={Method.CLUMP1: THEIR_MOST, Method.CLUMP2: THEIR_MOST},
                ours_last=most,
                digits=0,
            )
        ),
        notes=(
            *runs.material.notes,
            METHODS_NOTE,
            DRAWN_NOTE,
            *_claims(ours),
            *_by_size(runs),
            _carried(runs, ours),
            _refined(ours),
        ),
    )


def below(ours: Curves, method: Method) -> list[float]:
    """Return by how many per cent a method is below Partition at each k; negative is above."""
    pairs = zip(ours[method], ours[Method.PARTITION], strict=True)
    return [100 * (1 - figure / partition) for figure, partition in pairs]


def _claims(ours: Curves) -> list[str]:
    one, two = below(ours, Method.CLUMP1), below(ours, Method.CLUMP2)
    pairs = zip(ours[Method.CLUMP1], ours[Method.CLUMP2], strict=True)
    apart = [100 * (second / first - 1) for first, second in pairs]
    figures = at_each_k(f"{share:.1f} %" for share in one)
    return [
        claim(
            "Clump loses less than Partition",
            holds=min(*one, *two) > 0,
            figures=f"below it (negative: above) Clump1 is by {figures}, "
            f"Clump2 by {at_each_k(f'{share:.1f} %' for share in two)}",
        ),
        claim(f"by as much as {THEIR_MOST} %", holds=max(*one, *two) >= THEIR_MOST, figures=f"{max(*one, *two):.1f} %"),
        claim(
            "the difference between Clump1 and Clump2 is very small",
            holds=max(apart) < VERY_SMALL,
            figures=f"Clump2 is above by {at_each_k(f'{share:.1f} %' for share in apart)}; {VERY_SMALL} % is our limit",
        ),
        claim("the gain falls as k grows", holds=all(a >= b for a, b in pairwise(one)), figures=f"Clump1, {figures}"),
    ]


def _by_size(runs: Runs) -> list[str]:
    found = sizes(runs)
    if len(found) < 2:
        return []
    gains = []
    for size in found:
        clump1, partition = (
            runs.cost(sized(runs, method, k=KS[0], size=size)).distortion
            for method in (Method.CLUMP1, Method.PARTITION)
        )
        gains.append(100 * (1 - clump1 / partition))
    figures = ", ".join(f"{gain:.1f} % (|D|={size:,})" for size, gain in zip(found, gains, strict=True))
    falls = all(a >= b for a, b in pairwise(gains))
    return [claim("the gain falls as the log grows", holds=falls, figures=f"Clump1 at k={KS[0]}, {figures}")]


def _carried(runs: Runs, ours: Curves) -> str:
    wanted = [Run(method=Method.CLUMP1, k=k, carry=True) for k in KS]
    runs.make(wanted)
    carried = {**ours, Method.CLUMP1: tuple(runs.cost(run).distortion for run in wanted)}
    gains = at_each_k(f"{share:.1f} %" for share in below(carried, Method.CLUMP1))
    return (
        "Clump1 follows the paper's algorithm 2, which loses items that its definition 2 of the LCG keeps; "
        f"with that LCG it is below Partition by {gains}"
    )


def _refined(ours: Curves) -> str:
    pairs = zip(ours[Method.REFINED], ours[Method.CLUMP1], strict=True)
    against = at_each_k(f"{100 * (1 - refined / clump1):.1f} %" for refined, clump1 in pairs)
    return f"Clump refined is below Clump1 by {against}"


SIGNIFICANT = 1.1


def build_clump_fig4(runs: Runs) -> Table:
    """Return the average number of released items of each method at each k."""
    ours = curves(runs, lambda cost: cost.average_length)
    return Table(
        name="clump-fig4",
        title="Fard and Wang, figure 4: average length of a generalised transaction, r=10",
        columns=(*COLUMNS, "place, longest first"),
        rows=tuple(rows(ours, theirs_last={Method.CLUMP1: 1}, ours_last=places(ours), digits=2)),
        notes=(*runs.material.notes, METHODS_NOTE, DRAWN_NOTE, _longest(ours)),
    )


def _longest(ours: Curves) -> str:
    longest = [max(ours[Method.CLUMP2][at], ours[Method.PARTITION][at]) for at in range(len(KS))]
    times = [clump1 / other for clump1, other in zip(ours[Method.CLUMP1], longest, strict=True)]
    return claim(
        "Clump1 is significantly longer than Clump2 and Partition",
        holds=min(times) > SIGNIFICANT,
        figures=at_each_k(f"{ratio:.2f}" for ratio in times) + f" times the longer of both; {SIGNIFICANT} is our limit",
    )


# Lower in the paper is lower in the tree, further from the root: the number of the level is larger.
THEIR_PLACES: dict[Method, Cell] = {Method.CLUMP2: 1, Method.PARTITION: 2, Method.CLUMP1: 3}


def build_clump_fig5(runs: Runs) -> Table:
    """Return the average level of the released items of each method at each k."""
    ours = curves(runs, lambda cost: cost.average_level)
    return Table(
        name="clump-fig5",
        title="Fard and Wang, figure 5: average level of a generalised item, the root at 1, r=10",
        columns=(*COLUMNS, "place, lowest in the tree first"),
        rows=tuple(rows(ours, theirs_last=THEIR_PLACES, ours_last=places(ours), digits=2)),
        notes=(*runs.material.notes, METHODS_NOTE, DRAWN_NOTE, *_claims_clump_fig5(ours)),
    )


def _claims_clump_fig5(ours: Curves) -> list[str]:
    orders = [order(ours, at=at) for at in range(len(KS))]
    figures = at_each_k(", ".join(by_level) for by_level in orders)
    return [
        claim(
            "from the lowest in the tree, Clump2, Partition, Clump1",
            holds=all(by_level == list(THEIR_PLACES) for by_level in orders),
            figures=figures,
        ),
        claim(
            "the duplicates that Clump1 keeps are close to the root",
            holds=all(two > one for one, two in zip(ours[Method.CLUMP1], ours[Method.CLUMP2], strict=True)),
            figures="without them (Clump2) the average level goes from "
            + at_each_k(
                f"{one:.2f} to {two:.2f}" for one, two in zip(ours[Method.CLUMP1], ours[Method.CLUMP2], strict=True)
            ),
        ),
    ]


K = 5
RS = (5, 10, 30, 50, 100)
GOOD = 2


def build_clump_fig6(runs: Runs) -> Table:
    """Return the total distortion at k=5 for each r."""
    methods = (Method.CLUMP1, Method.REFINED)
    runs.make(Run(method=method, k=K, r=r) for method in methods for r in RS)
    ours = {method: [runs.cost(Run(method=method, k=K, r=r)).distortion for r in RS] for method in methods}
    rows: list[tuple[Cell, ...]] = [(str(Method.CLUMP1), THEIRS, *(None,) * len(RS))]
    rows += [(str(method), OURS, *(round(figure) for figure in figures)) for method, figures in ours.items()]
    return Table(
        name="clump-fig6",
        title="Fard and Wang, figure 6: effect of r on the information loss (total GGD), k=5",
        columns=("method", "whose", *(f"r={r}" for r in RS)),
        rows=tuple(rows),
        notes=(
            *runs.material.notes,
            METHODS_NOTE,
            DRAWN_NOTE,
            *_claims_clump_fig6(ours[Method.CLUMP1]),
            f"Clump refined looks at r only up to {COMPARE_UP_TO:,} transactions, where it may start from algorithm 1",
        ),
    )


def _claims_clump_fig6(clump1: list[float]) -> list[str]:
    best = min(clump1)
    above = 100 * (clump1[RS.index(R)] / best - 1)
    best_r = RS[clump1.index(best)]
    changes = ", ".join(
        f"{100 * (b / a - 1):+.1f} % (r={r})" for (a, b), r in zip(pairwise(clump1), RS[1:], strict=True)
    )
    return [
        claim(
            "a larger r is not always better",
            holds=any(b > a for a, b in pairwise(clump1)),
            figures=f"against the r before, {changes}",
        ),
        claim(
            f"r={R} is good",
            holds=above < GOOD,
            figures=f"{above:.1f} % above the best, r={best_r}; {GOOD} % is our limit",
        ),
    ]


METHODS = (Method.CLUMP1, Method.PARTITION, Method.REFINED)
LINEAR = 2


def build_clump_fig7(runs: Runs) -> Table:
    """Return the seconds of each method for growing sizes, and how the time per transaction changes."""
    found = sizes(runs)
    runs.warm_up(METHODS, k=K)
    wanted = {method: [sized(runs, method, k=K, size=size) for size in found] for method in METHODS}
    runs.make(run for group in wanted.values() for run in group)
    seconds = {method: [runs.seconds(run) for run in group] for method, group in wanted.items()}
    growth = {
        method: [took / size / (times[0] / found[0]) for took, size in zip(times, found, strict=True)]
        for method, times in seconds.items()
    }
    return Table(
        name="clump-fig7",
        title="Fard and Wang, figure 7: running time, k=5, r=10",
        columns=(
            "method",
            "whose",
            *(f"s, |D|={size:,}" for size in found),
            *(f"per transaction, |D|={size:,}" for size in found),
        ),
        rows=tuple(_rows(seconds, growth, n_sizes=len(found))),
        notes=(
            *runs.material.notes,
            METHODS_NOTE,
            "seconds are this machine's, of the clustering alone, one run each; they differ from run to run",
            "per transaction: the time for one transaction, that at the smallest size being 1",
            "theirs: the figure is only drawn in the paper (Visual C++, 2.99 GHz), so the cells are empty",
            f"Clump refined runs algorithm 1 too, twice, up to {COMPARE_UP_TO:,} transactions, and not above",
            *_claims_clump_fig7(seconds, growth),
        ),
    )


def _rows(
    seconds: dict[Method, list[float]], growth: dict[Method, list[float]], *, n_sizes: int
) -> list[tuple[Cell, ...]]:
    rows: list[tuple[Cell, ...]] = []
    for method in METHODS:
        if method is not Method.REFINED:
            rows.append((str(method), THEIRS, *(None,) * (2 * n_sizes)))
        took = (round(second, 3) for second in seconds[method])
        rows.append((str(method), OURS, *took, *(round(ratio, 2) for ratio in growth[method])))
    return rows


def _claims_clump_fig7(seconds: dict[Method, list[float]], growth: dict[Method, list[float]]) -> list[str]:
    clump1, partition = seconds[Method.CLUMP1][-1], seconds[Method.PARTITION][-1]
    claims = [
        claim(
            "Clump takes longer than Partition",
            holds=clump1 > partition,
            figures=f"{clump1 / partition:.1f} times as long for all transactions",
        )
    ]
    most = max(growth[Method.CLUMP1])
    if len(growth[Method.CLUMP1]) > 1:
        claims.append(
            claim(
                "the time of Clump grows linearly",
                holds=most < LINEAR,
                figures=f"at most {most:.1f} times as long per transaction as at the smallest size; "
                f"{LINEAR} is our limit",
            )
        )
    return claims
