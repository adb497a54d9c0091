"""Fard and Wang: what clustering transactions loses, and how long it takes (figures 3 to 7)."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise
from time import perf_counter
from typing import Any

import numpy as np

from queryveil.data import QueryLog
from queryveil.data.rows import Rows
from queryveil.errors import BadInput
from queryveil.methods.clump import _clustering, _partition
from queryveil.methods.clump._clustering import COMPARE_UP_TO, Algorithm, Cost
from queryveil.methods.clump.clump import bags_of
from queryveil.methods.settings import Unit
from queryveil.papers import driver
from queryveil.papers.driver import DRAWN_NOTE, THEIRS, Cell, Content, at_each, beside, claim, falls
from queryveil.rng import generator
from queryveil.text.taxonomy import Taxonomy

# Paper: section V.1 and its table III.
USERS = 53_058
AVERAGE_LENGTH = 20.93
DENSITY = 0.11
THEIR_TREE = "25,645 nodes, height 18"

THEIR_MOST = 30
KS = (5, 7, 10, 15)
R, K = 10, 5
RS = (5, 10, 30, 50, 100)
SIZES = (1_000, 10_000)
# Our limits for what the paper says without a figure.
VERY_SMALL, GOOD = 5, 2
SIGNIFICANT, LINEAR = 1.1, 2


def gather(log: QueryLog | None, *, users: int | None, seed: int) -> "Runs":
    """Take the nouns of each user once, as the paper does, from a log or from one made up."""
    log, origin = driver.given_or_made_up(log, like="aol", users=USERS if users is None else users, seed=seed)
    nouns = Taxonomy.wordnet()
    bags = bags_of(log, nouns, unit=Unit.USER, distinct=True)
    n_rows, nodes = bags.nodes.n_rows, bags.nodes.values
    if n_rows < max(KS):
        raise BadInput(f"{n_rows} users of the log have a noun of WordNet, too few for k={max(KS)}; give a larger log")
    taxonomy, number = nouns.restricted_to(nodes)
    n_leaves = int(taxonomy.n_leaves[0])
    n_items, length = len(np.unique(nodes)), len(nodes) / n_rows
    return Runs(
        seed=seed,
        nodes=Rows(bags.nodes.ptr, number[nodes]),
        taxonomy=taxonomy,
        notes=(
            f"{origin}: {n_rows:,} transactions, one per user with a noun, {length:.2f} nouns long on average "
            f"(theirs: {USERS:,} and {AVERAGE_LENGTH})",
            f"the tree: the {n_items:,} nouns that occur and those above them, {taxonomy.n_nodes:,} nodes on "
            f"{taxonomy.level.max()} levels, {n_leaves:,} leaves (theirs: {THEIR_TREE})",
            f"density: {100 * length / n_leaves:.2f} % of the leaves in a transaction (theirs: {DENSITY} %), "
            "so figures that hang on how alike transactions are need not agree",
        ),
    )


class Method(StrEnum):
    """Clump1, Clump2 and Partition are the paper's; the refined one is what `Clump()` does by itself."""

    CLUMP1 = "Clump1"
    CLUMP2 = "Clump2"
    PARTITION = "Partition"
    REFINED = "Clump refined"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A method and its settings, on the first `size` transactions; None is all of them."""

    method: Method
    k: int
    r: int = R
    size: int | None = None
    # Clump1 and Clump2 have the LCG of the paper's definition 2; its algorithm 2 loses items on the way up.
    carry: bool = False

    def __str__(self) -> str:
        size = f", {self.size:,} transactions" if self.size else ""
        return f"{self.method}, k={self.k}, r={self.r}{size}" + (", carry" if self.carry else "")


BY_K = {method: [Run(method=method, k=k) for k in KS] for method in Method}
Curves = Mapping[Method, tuple[float, ...]]  # ours by method, one figure for each of `KS` if nothing else is said


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Runs(driver.Runs[Run, tuple[Cost, float]]):
    """The measures of each run, and the seconds that its clustering took, without reading and measuring."""

    nodes: Rows[np.int32]  # the distinct ones of each transaction
    taxonomy: Taxonomy  # the tree of the nodes that occur

    def sizes(self) -> tuple[int, ...]:
        """Return those of `SIZES` that the log has, and its own size."""
        n_rows = self.nodes.n_rows
        return (*(size for size in SIZES if size < n_rows), n_rows)

    def by_size(self, methods: Iterable[Method]) -> dict[Method, list[Run]]:
        """Return the runs on each number of transactions; all of them is the run that the other figures use."""
        sizes = (*self.sizes()[:-1], None)
        return {method: [Run(method=method, k=K, size=size) for size in sizes] for method in methods}

    def curves(self, measure: str, rows: Mapping[Method, list[Run]] = BY_K) -> Curves:
        return {
            method: tuple(getattr(cost, measure) for cost, _ in found) for method, found in self.make_rows(rows).items()
        }

    def _run(self, setting: Run) -> tuple[Cost, float]:
        nodes, taxonomy = self.nodes, self.taxonomy
        if setting.size is not None:
            nodes = nodes.take(np.arange(setting.size))
        start = perf_counter()
        found = self._cluster(setting, nodes)
        seconds = perf_counter() - start
        return _clustering.cost(found, nodes, loss=taxonomy.loss, level=taxonomy.level), seconds

    def _cluster(self, run: Run, nodes: Rows[np.int32]) -> _clustering.Clustering:
        arrays = (nodes, self.taxonomy.parent, self.taxonomy.loss)
        # A generator for each run: the figures do not depend on which runs came before.
        rng = generator(self.seed)
        if run.method is Method.PARTITION:
            return _partition.partition(*arrays, k=run.k)
        if run.method is Method.REFINED:
            return _clustering.clump(*arrays, k=run.k, algorithm=Algorithm(r=run.r), rng=rng)
        papers = Algorithm(r=run.r, carry=run.carry, by_rise=False, refine=False)
        found = _clustering.clump(*arrays, k=run.k, algorithm=papers, rng=rng)
        if run.method is Method.CLUMP1:
            return found
        return replace(found, released=_clustering.without_duplicates(found.released))


PAPERS = (Method.CLUMP1, Method.CLUMP2, Method.PARTITION)
# Lower in the paper is lower in the tree, further from the root: the number of the level is larger.
THEIR_PLACES: dict[Method, Cell] = {Method.CLUMP2: 1, Method.PARTITION: 2, Method.CLUMP1: 3}
METHODS = (Method.CLUMP1, Method.PARTITION, Method.REFINED)
AT_KS = tuple(f"k={k}" for k in KS)
METHODS_NOTE = (
    "Clump1, Clump2 (each item once) and Partition are the paper's, Partition as we read what it leaves open; "
    "Clump refined is ours: nothing lost in joining, similar transactions gathered, then moved and swapped"
)


def _curves(
    ours: Curves, *notes: str, last: tuple[str, Mapping[Any, Cell], Mapping[Any, Cell]], digits: int | None
) -> Content:
    """Show ours below theirs for each method; the last column is what the paper's text speaks of."""
    head, theirs_last, ours_last = last
    rows = beside(ours, dict.fromkeys(PAPERS, (None,) * len(KS)), digits=digits)
    return Content(
        columns=("method", "whose", *AT_KS, head),
        rows=((*row, (theirs_last if THEIRS in row else ours_last).get(row[0])) for row in rows),
        notes=(METHODS_NOTE, DRAWN_NOTE, *notes),
    )


def orders(ours: Curves) -> list[list[Method]]:
    """Order the paper's methods by their figures at each k, largest first."""
    return [sorted(PAPERS, key=lambda method: ours[method][i], reverse=True) for i in range(len(ours[PAPERS[0]]))]


def places(ours: Curves) -> dict[Method, Cell]:
    """Return the place of each of the paper's methods, largest first, if it is the same at every k.

    >>> found = places({Method.CLUMP1: (3.0, 3.0), Method.CLUMP2: (1.0, 4.0), Method.PARTITION: (2.0, 2.0)})
    >>> {str(method): place for method, place in found.items()}
    {'Clump1': '1 or 2', 'Clump2': '1 or 3', 'Partition': '2 or 3'}
    """
    seen = {method: sorted({order.index(method) + 1 for order in orders(ours)}) for method in PAPERS}
    return {method: found[0] if len(found) == 1 else " or ".join(map(str, found)) for method, found in seen.items()}


@driver.table
def fig3(runs: Runs) -> Content:
    """Fard and Wang, figure 3: information loss (total GGD), r=10."""
    ours = runs.curves("distortion")
    theirs = dict.fromkeys((Method.CLUMP1, Method.CLUMP2), THEIR_MOST)
    most = {method: round(max(below(ours, method)), 1) for method in ours if method is not Method.PARTITION}
    notes = (*_claims_of_loss(ours), *_gain_by_size(runs), *_other_clumps(runs, ours))
    return _curves(ours, *notes, last=("below Partition, at most %", theirs, most), digits=None)


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
        claim("Clump loses less than Partition", holds=min(*one, *two) > 0)
        + f"below it (negative: above) Clump1 is by {first}, Clump2 by {second}",
        claim(f"by as much as {THEIR_MOST} %", holds=most >= THEIR_MOST) + f"{most:.1f} %",
        claim("the difference between Clump1 and Clump2 is very small", holds=max(apart) < VERY_SMALL)
        + f"Clump2 is above by {between}; {VERY_SMALL} % is our limit",
        claim("the gain falls as k grows", holds=falls(one)) + f"Clump1, {first}",
    ]


def _gain_by_size(runs: Runs) -> list[str]:
    sizes = runs.sizes()
    if len(sizes) < 2:
        return []
    methods = (Method.CLUMP1, Method.PARTITION)
    gains = below(runs.curves("distortion", runs.by_size(methods)), Method.CLUMP1)
    figures = at_each((f"|D|={size:,}" for size in sizes), gains, digits=1, unit=" %")
    return [claim("the gain falls as the log grows", holds=falls(gains)) + f"Clump1 at k={KS[0]}, {figures}"]


def _other_clumps(runs: Runs, ours: Curves) -> list[str]:
    with_carry = {Method.CLUMP1: [Run(method=Method.CLUMP1, k=k, carry=True) for k in KS]}
    carried = {**ours, **runs.curves("distortion", with_carry)}
    gains = at_each(AT_KS, below(carried, Method.CLUMP1), digits=1, unit=" %")
    refined = at_each(AT_KS, below(ours, Method.REFINED, other=Method.CLUMP1), digits=1, unit=" %")
    return [
        "Clump1 follows the paper's algorithm 2, which loses items that its definition 2 of the LCG keeps; "
        f"with that LCG it is below Partition by {gains}",
        f"Clump refined is below Clump1 by {refined}",
    ]


@driver.table
def fig4(runs: Runs) -> Content:
    """Fard and Wang, figure 4: average length of a generalised transaction, r=10."""
    ours = runs.curves("average_length")
    longest = map(max, ours[Method.CLUMP2], ours[Method.PARTITION])
    times = [clump1 / other for clump1, other in zip(ours[Method.CLUMP1], longest, strict=True)]
    longer = (
        claim("Clump1 is significantly longer than Clump2 and Partition", holds=min(times) > SIGNIFICANT)
        + f"{at_each(AT_KS, times, digits=2)} times the longer of both; {SIGNIFICANT} is our limit"
    )
    return _curves(ours, longer, last=("place, longest first", {Method.CLUMP1: 1}, places(ours)), digits=2)


@driver.table
def fig5(runs: Runs) -> Content:
    """Fard and Wang, figure 5: average level of a generalised item, the root at 1, r=10."""
    ours = runs.curves("average_level")
    found = orders(ours)
    levels = list(zip(ours[Method.CLUMP1], ours[Method.CLUMP2], strict=True))
    notes = (
        claim(
            "from the lowest in the tree, Clump2, Partition, Clump1",
            holds=all(by_level == list(THEIR_PLACES) for by_level in found),
        )
        + at_each(AT_KS, (", ".join(by_level) for by_level in found)),
        claim("the duplicates that Clump1 keeps are close to the root", holds=all(two > one for one, two in levels))
        + "without them (Clump2) the average level goes from "
        + at_each(AT_KS, (f"{one:.2f} to {two:.2f}" for one, two in levels)),
    )
    return _curves(ours, *notes, last=("place, lowest in the tree first", THEIR_PLACES, places(ours)), digits=2)


@driver.table
def fig6(runs: Runs) -> Content:
    """Fard and Wang, figure 6: effect of r on the information loss (total GGD), k=5."""
    methods = (Method.CLUMP1, Method.REFINED)
    ours = runs.curves("distortion", {method: [Run(method=method, k=K, r=r) for r in RS] for method in methods})
    clump1 = ours[Method.CLUMP1]
    above, best_r = 100 * (clump1[RS.index(R)] / min(clump1) - 1), RS[clump1.index(min(clump1))]
    changes = (f"{100 * (b / a - 1):+.1f} %" for a, b in pairwise(clump1))
    return Content(
        columns=("method", "whose", *(f"r={r}" for r in RS)),
        rows=beside(ours, {Method.CLUMP1: (None,) * len(RS)}, digits=None),
        notes=(
            METHODS_NOTE,
            DRAWN_NOTE,
            claim("a larger r is not always better", holds=not falls(clump1))
            + "against the r before, "
            + at_each((f"r={r}" for r in RS[1:]), changes),
            claim(f"r={R} is good", holds=above < GOOD)
            + f"{above:.1f} % above the best, r={best_r}; {GOOD} % is our limit",
            f"Clump refined looks at r only up to {COMPARE_UP_TO:,} transactions, where it may start from algorithm 1",
        ),
    )


@driver.table
def fig7(runs: Runs) -> Content:
    """Fard and Wang, figure 7: running time, k=5, r=10."""
    sizes = runs.sizes()
    # The first run of each method also compiles, which does not count as running.
    runs.make(Run(method=method, k=K, size=min(100, runs.nodes.n_rows)) for method in METHODS)
    seconds = {method: [took for _, took in row] for method, row in runs.make_rows(runs.by_size(METHODS)).items()}
    growth = {
        method: [took / size / (times[0] / sizes[0]) for took, size in zip(times, sizes, strict=True)]
        for method, times in seconds.items()
    }
    ours = {method: (*seconds[method], *(round(ratio, 2) for ratio in growth[method])) for method in METHODS}
    theirs = dict.fromkeys((Method.CLUMP1, Method.PARTITION), (None,) * 2 * len(sizes))
    names = ("s", "per transaction")
    return Content(
        columns=("method", "whose", *(f"{name}, |D|={size:,}" for name in names for size in sizes)),
        rows=beside(ours, theirs, digits=3),
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
    clump1, partition, most = seconds[Method.CLUMP1][-1], seconds[Method.PARTITION][-1], max(growth)
    longer = f"{clump1 / partition:.1f} times as long for all transactions"
    yield claim("Clump takes longer than Partition", holds=clump1 > partition) + longer
    if len(growth) > 1:
        most_of_all = f"at most {most:.1f} times as long per transaction as at the smallest size; {LINEAR} is our limit"
        yield claim("the time of Clump grows linearly", holds=most < LINEAR) + most_of_all
