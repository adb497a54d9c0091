"""Cluster the same transactions by several methods and settings, and measure what each run costs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from time import perf_counter

from queryveil.methods.clump_core import Clustering, clump
from queryveil.methods.clump_measures import Cost, cost, without_duplicates
from queryveil.methods.partition_core import partition
from queryveil.progress import step, watch
from queryveil.reproduce.clump_material import Material
from queryveil.rng import generator

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
        """Give the measures of a run."""
        self.make([run])
        return self._found[run][0]

    def seconds(self, run: Run) -> float:
        """Give how long the clustering took, reading and measuring left out."""
        self.make([run])
        return self._found[run][1]

    def warm_up(self, methods: Iterable[Method], *, k: int) -> None:
        """Run the methods on a few transactions, so that compiling is not counted as running."""
        step("warming up")
        for method in methods:
            self._measure(Run(method=method, k=k, size=min(100, self.material.n_rows)))

    def _measure(self, run: Run) -> tuple[Cost, float]:
        taxonomy, whole = self.material.taxonomy, self.material.row_ptr
        row_ptr = whole if run.size is None else whole[: run.size + 1]
        nodes = self.material.nodes[: row_ptr[-1]]
        start = perf_counter()
        # The steps inside a run would hide which run it is.
        with watch(lambda _name, _share: None):
            found = self._cluster(run, replace(self.material, row_ptr=row_ptr, nodes=nodes))
        seconds = perf_counter() - start
        spent = cost(
            found.cluster_of,
            found.released_ptr,
            found.released,
            row_ptr=row_ptr,
            items=nodes,
            parent=taxonomy.parent,
            loss=taxonomy.loss,
            level=taxonomy.level,
        )
        return spent, seconds

    def _cluster(self, run: Run, part: Material) -> Clustering:
        arrays = (part.row_ptr, part.nodes, part.taxonomy.parent, part.taxonomy.loss)
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
        ptr, items = without_duplicates(found.released_ptr, found.released)
        return replace(found, released_ptr=ptr, released=items)


def _name(run: Run) -> str:
    size = f", {run.size:,} transactions" if run.size else ""
    return f"{run.method}, k={run.k}, r={run.r}{size}" + (", carry" if run.carry else "")
