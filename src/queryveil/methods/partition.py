"""k-anonymous transactions by splitting from the top: He and Naughton, as Fard and Wang describe it."""

from __future__ import annotations

from dataclasses import dataclass, field

from queryveil.guarantees import TransactionAnonymity
from queryveil.log import QueryLog
from queryveil.methods.bags import Unit, bags_of, no_clusters, parse_unit, release_of
from queryveil.methods.partition_core import partition
from queryveil.release import Release
from queryveil.rng import generator
from queryveil.text.taxonomy import Taxonomy
from queryveil.transactions import Transactions


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Partition:
    """Start with everything as the root of the taxonomy and say more while k transactions still agree.

    Promise: every released transaction is identical, as a set of items, to at least k-1 others.
    Not promised: how many items of a kind there were; Partition keeps sets, not bags.

    Examples
    --------
    >>> food = Taxonomy.from_pairs([("fruit", "food"), ("apple", "fruit"), ("pear", "fruit"), ("beef", "food")])
    >>> bags = Transactions.from_frame({"items": [["apple", "beef"], ["pear", "beef"]]})
    >>> Partition(k=2, taxonomy=food).anonymize(bags).transactions.n_transactions
    2
    """

    k: int = 5
    taxonomy: Taxonomy | None = field(default=None, repr=False)
    unit: Unit = Unit.USER
    seed: int | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "unit", parse_unit(self.unit))
        TransactionAnonymity(k=self.k)

    @property
    def promise(self) -> TransactionAnonymity:
        """What a release will promise."""
        return TransactionAnonymity(k=self.k)

    def anonymize(self, data: QueryLog | Transactions) -> Release:
        """Give a release of the transactions that keeps the promise."""
        taxonomy = self.taxonomy or Taxonomy.wordnet()
        bags = bags_of(data, taxonomy, unit=self.unit, distinct=True)
        clustering = no_clusters()
        if bags.n_rows:
            clustering = partition(bags.row_ptr, bags.nodes, taxonomy.parent, taxonomy.loss, k=self.k)
        return release_of(
            data,
            bags,
            clustering,
            taxonomy,
            promise=self.promise,
            method="partition",
            parameters={"k": self.k, "unit": str(self.unit)},
            seeded=self.seed is not None,
            rng=generator(self.seed),
        )
