"""k-anonymous transactions by clustering and generalisation: Fard and Wang."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from queryveil.data import QueryLog, Transactions
from queryveil.guarantees import TransactionAnonymity
from queryveil.methods.clump._greedy import clump, without_duplicates
from queryveil.methods.clump._partition import partition
from queryveil.methods.clump.bags import Unit, bags_of, no_clusters, parse_unit, release_of
from queryveil.release import Release
from queryveil.rng import generator
from queryveil.text.taxonomy import Taxonomy


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Clump:
    """Put similar transactions together and release what all of a cluster have in common.

    Promise: every released transaction is identical, as a bag of items, to at least k-1 others.
    Not promised: that the k people of a cluster differ in anything else; what all of them share is told of each.

    A transaction is what one `user` asked for, or one `query`; its items are the words that the `taxonomy` knows
    (WordNet's nouns if none is given), each as often as it stands there unless `distinct`. `dedupe` releases each item
    of a cluster once (Clump2 in the paper); `paper` is the paper's algorithm to the letter, `r` its open clusters.

    Examples
    --------
    >>> food = Taxonomy.from_pairs([("fruit", "food"), ("apple", "fruit"), ("pear", "fruit"), ("beef", "food")])
    >>> bags = Transactions.from_frame({"items": [["apple", "beef"], ["pear", "beef"]]})
    >>> Clump(k=2, taxonomy=food).anonymize(bags).transactions.frame["items"].to_list()
    [['beef', 'fruit'], ['beef', 'fruit']]
    """

    k: int = 5
    r: int = 10
    taxonomy: Taxonomy | None = field(default=None, repr=False)
    unit: Unit = Unit.USER
    distinct: bool = False
    dedupe: bool = False
    paper: bool = False
    seed: int | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "unit", parse_unit(self.unit))
        TransactionAnonymity(k=self.k)

    @property
    def promise(self) -> TransactionAnonymity:
        """What a release will promise."""
        return TransactionAnonymity(k=self.k)

    def anonymize(self, data: QueryLog | Transactions) -> Release:
        """Return a release of the transactions that keeps the promise."""
        taxonomy = self.taxonomy or Taxonomy.wordnet()
        rng = generator(self.seed)
        bags = bags_of(data, taxonomy, unit=self.unit, distinct=self.distinct)
        clustering = no_clusters()
        if bags.nodes.n_rows:
            clustering = clump(
                bags.nodes,
                taxonomy.parent,
                taxonomy.loss,
                k=self.k,
                r=self.r,
                lcg="paper" if self.paper else "carry",
                rule="least" if self.paper else "rise",
                refine=not self.paper,
                rng=rng,
            )
        if self.dedupe:
            clustering = replace(clustering, released=without_duplicates(clustering.released))
        return release_of(
            data,
            bags,
            clustering,
            taxonomy,
            promise=self.promise,
            method="clump",
            parameters={
                "k": self.k,
                "r": self.r,
                "unit": str(self.unit),
                "distinct": self.distinct,
                "dedupe": self.dedupe,
                "paper": self.paper,
            },
            seeded=self.seed is not None,
            rng=rng,
        )


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
        """Return a release of the transactions that keeps the promise."""
        taxonomy = self.taxonomy or Taxonomy.wordnet()
        bags = bags_of(data, taxonomy, unit=self.unit, distinct=True)
        clustering = no_clusters()
        if bags.nodes.n_rows:
            clustering = partition(bags.nodes, taxonomy.parent, taxonomy.loss, k=self.k)
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
