"""Fard and Wang: what clustering transactions loses, and how long it takes (figures 3 to 7)."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

from queryveil.methods.clump._clustering import COMPARE_UP_TO
from queryveil.papers._clump_runs import KS, Curves, Method, R, Run, Runs, gather
from queryveil.papers.driver import DRAWN_NOTE, Cell, Cells, Table, at_each, claim, falls, ours_row, theirs_row

__all__ = ["Runs", "fig3", "fig4", "fig5", "fig6", "fig7", "gather"]

AT_KS = tuple(f"k={k}" for k in KS)
METHODS_NOTE = (
    "Clump1, Clump2 (each item once) and Partition are the paper's, Partition as we read what it leaves open; "
    "Clump refined is ours: nothing lost in joining, similar transactions gathered, then moved and swapped"
)


def _curve_table(
    runs: Runs,
    name: str,
    title: str,
    ours: Curves,
    *,
    last: tuple[str, Mapping[Method, Cell], Mapping[Method, Cell]],
    digits: int | None,
    notes: Iterable[str],
) -> Table:
    """Return ours below theirs for each method; the last column is what the paper's text speaks of."""
    head, theirs_last, ours_last = last
    rows: list[Cells] = []
    for method, figures in ours.items():
        if method is not Method.REFINED:
            rows.append((*theirs_row(str(method), n=len(KS)), theirs_last.get(method)))
        rows.append((*ours_row(str(method), figures=figures, digits=digits), ours_last.get(method)))
    columns = ("method", "whose", *AT_KS, head)
    return runs.table(name, title, columns=columns, rows=rows, notes=(METHODS_NOTE, DRAWN_NOTE, *notes))


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


THEIR_MOST = 30
VERY_SMALL = 5


def fig3(runs: Runs) -> Table:
    """Return the total distortion of each method at each k, and how far it is below Partition's."""
    ours = runs.curves(lambda cost: cost.distortion)
    most: dict[Method, Cell] = {
        method: round(max(below(ours, method)), 1) for method in ours if method is not Method.PARTITION
    }
    theirs = dict.fromkeys((Method.CLUMP1, Method.CLUMP2), THEIR_MOST)
    return _curve_table(
        runs,
        "clump-fig3",
        "Fard and Wang, figure 3: information loss (total GGD), r=10",
        ours,
        last=("below Partition, at most %", theirs, most),
        digits=None,
        notes=(*_claims_of_loss(ours), *_gain_by_size(runs), *_other_clumps(runs, ours)),
    )


def below(ours: Curves, method: Method, *, other: Method = Method.PARTITION) -> list[float]:
    """Return by how many per cent a method is below another at each k; negative is above."""
    return [100 * (1 - figure / base) for figure, base in zip(ours[method], ours[other], strict=True)]


def _claims_of_loss(ours: Curves) -> list[str]:
    one, two = below(ours, Method.CLUMP1), below(ours, Method.CLUMP2)
    pairs = zip(ours[Method.CLUMP1], ours[Method.CLUMP2], strict=True)
    apart = [100 * (second / first - 1) for first, second in pairs]
    first, second, between = (at_each(AT_KS, shares, digits=1, unit=" %") for shares in (one, two, apart))
    most = max(*one, *two)
    return [
        claim(
            "Clump loses less than Partition",
            holds=min(*one, *two) > 0,
            figures=f"below it (negative: above) Clump1 is by {first}, Clump2 by {second}",
        ),
        claim(f"by as much as {THEIR_MOST} %", holds=most >= THEIR_MOST, figures=f"{most:.1f} %"),
        claim(
            "the difference between Clump1 and Clump2 is very small",
            holds=max(apart) < VERY_SMALL,
            figures=f"Clump2 is above by {between}; {VERY_SMALL} % is our limit",
        ),
        claim("the gain falls as k grows", holds=falls(one), figures=f"Clump1, {first}"),
    ]


def _gain_by_size(runs: Runs) -> list[str]:
    sizes = runs.sizes()
    if len(sizes) < 2:
        return []
    gains = []
    for size in sizes:
        clump1, partition = (
            runs.cost(runs.sized(method, k=KS[0], size=size)).distortion for method in (Method.CLUMP1, Method.PARTITION)
        )
        gains.append(100 * (1 - clump1 / partition))
    figures = at_each((f"|D|={size:,}" for size in sizes), gains, digits=1, unit=" %")
    return [claim("the gain falls as the log grows", holds=falls(gains), figures=f"Clump1 at k={KS[0]}, {figures}")]


def _other_clumps(runs: Runs, ours: Curves) -> list[str]:
    wanted = [Run(method=Method.CLUMP1, k=k, carry=True) for k in KS]
    runs.make(wanted)
    carried = {**ours, Method.CLUMP1: tuple(runs.cost(run).distortion for run in wanted)}
    gains = at_each(AT_KS, below(carried, Method.CLUMP1), digits=1, unit=" %")
    refined = at_each(AT_KS, below(ours, Method.REFINED, other=Method.CLUMP1), digits=1, unit=" %")
    return [
        "Clump1 follows the paper's algorithm 2, which loses items that its definition 2 of the LCG keeps; "
        f"with that LCG it is below Partition by {gains}",
        f"Clump refined is below Clump1 by {refined}",
    ]


SIGNIFICANT = 1.1


def fig4(runs: Runs) -> Table:
    """Return the average number of released items of each method at each k."""
    ours = runs.curves(lambda cost: cost.average_length)
    longest = map(max, ours[Method.CLUMP2], ours[Method.PARTITION])
    times = [clump1 / other for clump1, other in zip(ours[Method.CLUMP1], longest, strict=True)]
    longer = claim(
        "Clump1 is significantly longer than Clump2 and Partition",
        holds=min(times) > SIGNIFICANT,
        figures=f"{at_each(AT_KS, times, digits=2)} times the longer of both; {SIGNIFICANT} is our limit",
    )
    title = "Fard and Wang, figure 4: average length of a generalised transaction, r=10"
    last = ("place, longest first", {Method.CLUMP1: 1}, places(ours))
    return _curve_table(runs, "clump-fig4", title, ours, last=last, digits=2, notes=[longer])


# Lower in the paper is lower in the tree, further from the root: the number of the level is larger.
THEIR_PLACES: dict[Method, Cell] = {Method.CLUMP2: 1, Method.PARTITION: 2, Method.CLUMP1: 3}


def fig5(runs: Runs) -> Table:
    """Return the average level of the released items of each method at each k."""
    ours = runs.curves(lambda cost: cost.average_level)
    orders = [order(ours, at=at) for at in range(len(KS))]
    levels = list(zip(ours[Method.CLUMP1], ours[Method.CLUMP2], strict=True))
    notes = (
        claim(
            "from the lowest in the tree, Clump2, Partition, Clump1",
            holds=all(by_level == list(THEIR_PLACES) for by_level in orders),
            figures=at_each(AT_KS, (", ".join(by_level) for by_level in orders)),
        ),
        claim(
            "the duplicates that Clump1 keeps are close to the root",
            holds=all(two > one for one, two in levels),
            figures="without them (Clump2) the average level goes from "
            + at_each(AT_KS, (f"{one:.2f} to {two:.2f}" for one, two in levels)),
        ),
    )
    title = "Fard and Wang, figure 5: average level of a generalised item, the root at 1, r=10"
    last = ("place, lowest in the tree first", THEIR_PLACES, places(ours))
    return _curve_table(runs, "clump-fig5", title, ours, last=last, digits=2, notes=notes)


K = 5
RS = (5, 10, 30, 50, 100)
GOOD = 2


def fig6(runs: Runs) -> Table:
    """Return the total distortion at k=5 for each r."""
    methods = (Method.CLUMP1, Method.REFINED)
    runs.make(Run(method=method, k=K, r=r) for method in methods for r in RS)
    ours = {method: [runs.cost(Run(method=method, k=K, r=r)).distortion for r in RS] for method in methods}
    clump1 = ours[Method.CLUMP1]
    above, best_r = 100 * (clump1[RS.index(R)] / min(clump1) - 1), RS[clump1.index(min(clump1))]
    changes = (f"{100 * (b / a - 1):+.1f} %" for a, b in pairwise(clump1))
    return runs.table(
        "clump-fig6",
        "Fard and Wang, figure 6: effect of r on the information loss (total GGD), k=5",
        columns=("method", "whose", *(f"r={r}" for r in RS)),
        rows=(
            theirs_row(str(Method.CLUMP1), n=len(RS)),
            *(ours_row(str(method), figures=figures, digits=None) for method, figures in ours.items()),
        ),
        notes=(
            METHODS_NOTE,
            DRAWN_NOTE,
            claim(
                "a larger r is not always better",
                holds=not falls(clump1),
                figures="against the r before, " + at_each((f"r={r}" for r in RS[1:]), changes),
            ),
            claim(
                f"r={R} is good",
                holds=above < GOOD,
                figures=f"{above:.1f} % above the best, r={best_r}; {GOOD} % is our limit",
            ),
            f"Clump refined looks at r only up to {COMPARE_UP_TO:,} transactions, where it may start from algorithm 1",
        ),
    )


METHODS = (Method.CLUMP1, Method.PARTITION, Method.REFINED)
LINEAR = 2


def fig7(runs: Runs) -> Table:
    """Return the seconds of each method for growing sizes, and how the time per transaction changes."""
    sizes = runs.sizes()
    runs.warm_up(METHODS, k=K)
    wanted = {method: [runs.sized(method, k=K, size=size) for size in sizes] for method in METHODS}
    runs.make(run for group in wanted.values() for run in group)
    seconds = {method: [runs.seconds(run) for run in group] for method, group in wanted.items()}
    growth = {
        method: [took / size / (times[0] / sizes[0]) for took, size in zip(times, sizes, strict=True)]
        for method, times in seconds.items()
    }
    rows: list[Cells] = []
    for method in METHODS:
        if method is not Method.REFINED:
            rows.append(theirs_row(str(method), n=2 * len(sizes)))
        ratios = (round(ratio, 2) for ratio in growth[method])
        rows.append((*ours_row(str(method), figures=seconds[method], digits=3), *ratios))
    names = ("s", "per transaction")
    return runs.table(
        "clump-fig7",
        "Fard and Wang, figure 7: running time, k=5, r=10",
        columns=("method", "whose", *(f"{name}, |D|={size:,}" for name in names for size in sizes)),
        rows=rows,
        notes=(
            METHODS_NOTE,
            "seconds are this machine's, of the clustering alone, one run each; they differ from run to run",
            "per transaction: the time for one transaction, that at the smallest size being 1",
            "theirs: the figure is only drawn in the paper (Visual C++, 2.99 GHz), so the cells are empty",
            f"Clump refined runs algorithm 1 too, twice, up to {COMPARE_UP_TO:,} transactions, and not above",
            *_claims_of_time(seconds, growth[Method.CLUMP1]),
        ),
    )


def _claims_of_time(seconds: dict[Method, list[float]], growth: list[float]) -> Iterator[str]:
    clump1, partition = seconds[Method.CLUMP1][-1], seconds[Method.PARTITION][-1]
    yield claim(
        "Clump takes longer than Partition",
        holds=clump1 > partition,
        figures=f"{clump1 / partition:.1f} times as long for all transactions",
    )
    if len(growth) > 1:
        yield claim(
            "the time of Clump grows linearly",
            holds=max(growth) < LINEAR,
            figures=f"at most {max(growth):.1f} times as long per transaction as at the smallest size; "
            f"{LINEAR} is our limit",
        )
