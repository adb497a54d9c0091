"""k-anonymous transactions by clustering and generalisation: Fard and Wang."""

from dataclasses import dataclass, replace

from queryveil.data import QueryLog, Transactions
from queryveil.guarantees import TransactionAnonymity
from queryveil.methods.clump._greedy import clump, without_duplicates
from queryveil.methods.clump._partition import partition
from queryveil.methods.clump.bags import bags_of, no_clusters, release_of
from queryveil.methods.settings import ClumpSettings, PartitionSettings
from queryveil.release import Release
from queryveil.rng import generator
from queryveil.settings import check_settings, parameters_of
from queryveil.text.taxonomy import Taxonomy


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Clump(ClumpSettings):
    """Put similar transactions together and release what all of a cluster have in common.

    Promise: every released transaction is identical, as a bag of items, to at least k-1 others.
    Not promised: that the k people of a cluster differ in anything else; what all of them share is told of each.

    Parameters
    ----------
    k: transactions that must be identical, 2 or more
    r: open clusters that the paper's algorithm compares
    unit: a transaction is what one `user` asked for, or one `query`
    distinct: take each item of a transaction once, not as often as it stands there
    dedupe: release each item of a cluster once (Clump2 in the paper)
    paper: the paper's algorithm to the letter
    taxonomy: the words that are items, and what they are kinds of; None: WordNet's nouns
    seed: repeat a run; not for releases

    Examples
    --------
    >>> food = Taxonomy.from_pairs([("fruit", "food"), ("apple", "fruit"), ("pear", "fruit"), ("beef", "food")])
    >>> bags = Transactions.from_frame({"items": [["apple", "beef"], ["pear", "beef"]]})
    >>> Clump(k=2, taxonomy=food).anonymize(bags).transactions.frame["items"].to_list()
    [['beef', 'fruit'], ['beef', 'fruit']]
    """

    def __post_init__(self) -> None:
        check_settings(self)
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
            parameters=parameters_of(self, taxonomy=taxonomy.source),
            seeded=self.seed is not None,
            rng=rng,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Partition(PartitionSettings):
    """Start with everything as the root of the taxonomy and say more while k transactions still agree.

    Promise: every released transaction is identical, as a set of items, to at least k-1 others.
    Not promised: how many items of a kind there were; Partition keeps sets, not bags.

    Parameters
    ----------
    k: transactions that must be identical, 2 or more
    unit: a transaction is what one `user` asked for, or one `query`
    taxonomy: the words that are items, and what they are kinds of; None: WordNet's nouns
    seed: repeat a run; not for releases

    Examples
    --------
    >>> food = Taxonomy.from_pairs([("fruit", "food"), ("apple", "fruit"), ("pear", "fruit"), ("beef", "food")])
    >>> bags = Transactions.from_frame({"items": [["apple", "beef"], ["pear", "beef"]]})
    >>> Partition(k=2, taxonomy=food).anonymize(bags).transactions.n_transactions
    2
    """

    def __post_init__(self) -> None:
        check_settings(self)
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
            parameters=parameters_of(self, taxonomy=taxonomy.source),
            seeded=self.seed is not None,
            rng=generator(self.seed),
        )
