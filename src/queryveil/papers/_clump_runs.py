"""Fard and Wang: cluster the same transactions by several methods and settings, and measure what each run costs."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from time import perf_counter

import numpy as np

from queryveil.data import QueryLog
from queryveil.data.rows import Rows
from queryveil.errors import BadInput
from queryveil.methods.clump._clustering import Algorithm, Clustering, Cost, clump, cost, without_duplicates
from queryveil.methods.clump._partition import partition
from queryveil.methods.clump.clump import bags_of
from queryveil.methods.settings import Unit
from queryveil.papers import driver
from queryveil.progress import step, watch
from queryveil.rng import generator
from queryveil.text.taxonomy import Taxonomy

# Paper: section V.1 and its table III.
USERS = 53_058
AVERAGE_LENGTH = 20.93
DENSITY = 0.11
THEIR_TREE = "25,645 nodes, height 18"

KS = (5, 7, 10, 15)
R = 10
SIZES = (1_000, 10_000)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Material:
    """The distinct nodes of each transaction, and the tree of the nodes that occur; notes on both."""

    nodes: Rows[np.int32]
    taxonomy: Taxonomy
    notes: tuple[str, ...]

    @property
    def n_rows(self) -> int:
        """The number of transactions."""
        return self.nodes.n_rows

    def __repr__(self) -> str:
        # Privacy: the items stay out of it.
        return f"Material(n_rows={self.n_rows}, taxonomy={self.taxonomy!r})"


def gather(log: QueryLog | None, *, users: int | None, seed: int) -> Material:
    """Return the nouns of each user once, as the paper does, from a log or from one made up."""
    log, origin = driver.given_or_made_up(log, like="aol", users=USERS if users is None else users, seed=seed)
    nouns = Taxonomy.wordnet()
    bags = bags_of(log, nouns, unit=Unit.USER, distinct=True)
    n_rows, nodes = bags.nodes.n_rows, bags.nodes.values
    if n_rows < max(KS):
        raise BadInput(f"{n_rows} users of the log have a noun of WordNet, too few for k={max(KS)}; give a larger log")
    taxonomy, number = nouns.restricted_to(nodes)
    n_leaves = int(taxonomy.n_leaves[0])
    n_items, length = len(np.unique(nodes)), len(nodes) / n_rows
    return Material(
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
    """A method and its settings, on the first `size` transactions; None is all of them.

    `carry` gives Clump1 and Clump2 the LCG of the paper's definition 2; its algorithm 2 loses items on the way up.
    """

    method: Method
    k: int
    r: int = R
    size: int | None = None
    carry: bool = False

    def __str__(self) -> str:
        size = f", {self.size:,} transactions" if self.size else ""
        return f"{self.method}, k={self.k}, r={self.r}{size}" + (", carry" if self.carry else "")


Curves = Mapping[Method, tuple[float, ...]]
"""Ours by method, one figure for each of `KS`."""


class Runs(driver.Runs[Material, Run, tuple[Cost, float]]):
    """The measures of each run, and the seconds that its clustering took."""

    def cost(self, run: Run) -> Cost:
        """Return the measures of a run."""
        return self.found(run)[0]

    def seconds(self, run: Run) -> float:
        """Return how long the clustering took, without reading and measuring."""
        return self.found(run)[1]

    def warm_up(self, methods: Iterable[Method], *, k: int) -> None:
        """Run the methods on a few transactions, so that compiling is not counted as running."""
        step("warming up")
        with watch(lambda _name, _share: None):
            for method in methods:
                self._run(Run(method=method, k=k, size=min(100, self.material.n_rows)))

    def sizes(self) -> tuple[int, ...]:
        """Return those of `SIZES` that the log has, and its own size."""
        n_rows = self.material.n_rows
        return (*(size for size in SIZES if size < n_rows), n_rows)

    def sized(self, method: Method, *, k: int, size: int) -> Run:
        """Return the run on so many transactions; that of the whole log is the one that the other figures use."""
        return Run(method=method, k=k, size=size if size < self.material.n_rows else None)

    def curves(self, measure: Callable[[Cost], float]) -> Curves:
        """Measure every method at every k."""
        self.make(Run(method=method, k=k) for method in Method for k in KS)
        return {method: tuple(measure(self.cost(Run(method=method, k=k))) for k in KS) for method in Method}

    def _run(self, setting: Run) -> tuple[Cost, float]:
        taxonomy, nodes = self.material.taxonomy, self.material.nodes
        if setting.size is not None:
            nodes = nodes.take(np.arange(setting.size))
        start = perf_counter()
        found = self._cluster(setting, replace(self.material, nodes=nodes))
        seconds = perf_counter() - start
        return cost(found, nodes, loss=taxonomy.loss, level=taxonomy.level), seconds

    def _cluster(self, run: Run, part: Material) -> Clustering:
        arrays = (part.nodes, part.taxonomy.parent, part.taxonomy.loss)
        # A generator for each run: the figures do not depend on which runs came before.
        rng = generator(self.seed)
        if run.method is Method.PARTITION:
            return partition(*arrays, k=run.k)
        if run.method is Method.REFINED:
            return clump(*arrays, k=run.k, algorithm=Algorithm(r=run.r), rng=rng)
        papers = Algorithm(r=run.r, lcg="carry" if run.carry else "paper", rule="least", refine=False)
        found = clump(*arrays, k=run.k, algorithm=papers, rng=rng)
        if run.method is Method.CLUMP1:
            return found
        return replace(found, released=without_duplicates(found.released))
