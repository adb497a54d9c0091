"""Cluster the same transactions by several methods and settings, and measure what each run costs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from time import perf_counter

import numpy as np

from queryveil.data import QueryLog
from queryveil.data.rows import Rows
from queryveil.errors import BadInput
from queryveil.methods.clump._greedy import Clustering, Cost, clump, cost, without_duplicates
from queryveil.methods.clump._partition import partition
from queryveil.methods.clump.bags import bags_of
from queryveil.methods.settings import Unit
from queryveil.progress import step, watch
from queryveil.rng import generator
from queryveil.synthesis import synthesize
from queryveil.text.taxonomy import Taxonomy

# Paper: section V.1 and its table III.
USERS = 53_058
AVERAGE_LENGTH = 20.93
DENSITY = 0.11
THEIR_TREE = "25,645 nodes, height 18"
LARGEST_K = 15


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
    """Take the nouns of each user once, from a log or from one made up, as the paper does."""
    origin = "the log was given"
    if log is None:
        log = synthesize(like="aol", users=USERS if users is None else users, seed=seed).log
        origin = "the log is made up, in the shape of AOL's"
    nouns = Taxonomy.wordnet()
    bags = bags_of(log, nouns, unit=Unit.USER, distinct=True)
    n_rows, nodes = bags.nodes.n_rows, bags.nodes.values
    if n_rows < LARGEST_K:
        raise BadInput(
            f"{n_rows} users of the log have a noun of WordNet, too few for k={LARGEST_K}; give a larger log"
        )
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


KS = (5, 7, 10, 15)
R = 10


class Method(StrEnum):
    """Clump1, Clump2 and Partition are the paper's; the refined one is what `Clump()` does by itself."""

    CLUMP1 = "Clump1"
    CLUMP2 = "Clump2"
    PARTITION = "Partition"
    REFINED = "Clump refined"


METHODS_NOTE = (
    "Clump1, Clump2 (each item once) and Partition are the paper's, Partition as we read what it leaves open; "
    "Clump refined is ours: nothing lost in joining, similar transactions gathered, then moved and swapped"
)


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


class Runs:
    """The runs on one material, each made once."""

    def __init__(self, material: Material, *, seed: int) -> None:
        self.material, self.seed = material, seed
        self._found: dict[Run, tuple[Cost, float]] = {}

    def make(self, runs: Iterable[Run]) -> None:
        """Make those of the runs that were not made yet."""
        missing = [run for run in dict.fromkeys(runs) if run not in self._found]
        for i, run in enumerate(missing):
            step(_name(run), i / len(missing))
            self._found[run] = self._measure(run)

    def cost(self, run: Run) -> Cost:
        """Return the measures of a run."""
        self.make([run])
        return self._found[run][0]

    def seconds(self, run: Run) -> float:
        """Return how long the clustering took, reading and measuring left out."""
        self.make([run])
        return self._found[run][1]

    def warm_up(self, methods: Iterable[Method], *, k: int) -> None:
        """Run the methods on a few transactions, so that compiling is not counted as running."""
        step("warming up")
        for method in methods:
            self._measure(Run(method=method, k=k, size=min(100, self.material.n_rows)))

    def _measure(self, run: Run) -> tuple[Cost, float]:
        taxonomy, nodes = self.material.taxonomy, self.material.nodes
        if run.size is not None:
            nodes = nodes.take(np.arange(run.size))
        start = perf_counter()
        # The steps inside a run would hide which run it is.
        with watch(lambda _name, _share: None):
            found = self._cluster(run, replace(self.material, nodes=nodes))
        seconds = perf_counter() - start
        return cost(found, nodes, parent=taxonomy.parent, loss=taxonomy.loss, level=taxonomy.level), seconds

    def _cluster(self, run: Run, part: Material) -> Clustering:
        arrays = (part.nodes, part.taxonomy.parent, part.taxonomy.loss)
        # A generator for each run: the figures do not depend on which runs came before.
        rng = generator(self.seed)
        if run.method is Method.PARTITION:
            return partition(*arrays, k=run.k)
        if run.method is Method.REFINED:
            return clump(*arrays, k=run.k, r=run.r, rng=rng)
        found = clump(
            *arrays, k=run.k, r=run.r, lcg="carry" if run.carry else "paper", rule="least", refine=False, rng=rng
        )
        if run.method is Method.CLUMP1:
            return found
        return replace(found, released=without_duplicates(found.released))


def _name(run: Run) -> str:
    size = f", {run.size:,} transactions" if run.size else ""
    return f"{run.method}, k={run.k}, r={run.r}{size}" + (", carry" if run.carry else "")


SIZES = (1_000, 10_000)


def sizes(runs: Runs) -> tuple[int, ...]:
    """Return those of the sizes that the log has, and its own."""
    n_rows = runs.material.n_rows
    return (*(size for size in SIZES if size < n_rows), n_rows)


def sized(runs: Runs, method: Method, *, k: int, size: int) -> Run:
    """Return the run of a size; that of the whole log is the one that the other figures use."""
    return Run(method=method, k=k, size=size if size < runs.material.n_rows else None)
