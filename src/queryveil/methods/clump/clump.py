"""k-anonymous transactions by clustering and generalisation: Fard and Wang."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from queryveil import progress
from queryveil.data import Int32s, Int64s, QueryLog, Transactions, with_own_texts
from queryveil.data.rows import Rows, group, pointers
from queryveil.errors import BadParameter, BadRow
from queryveil.formats import transactions_layout
from queryveil.guarantees import TransactionAnonymity
from queryveil.methods.bots import caveats, no_events, nothing_kept
from queryveil.methods.clump._clustering import Algorithm, Clustering, clump, cost, without_duplicates
from queryveil.methods.clump._partition import partition
from queryveil.methods.settings import ClumpSettings, PartitionSettings, Unit
from queryveil.release import Counts, Manifest, Release
from queryveil.rng import generator
from queryveil.settings import check_settings, parameters_of
from queryveil.text import tokenize
from queryveil.text.taxonomy import Taxonomy
from queryveil.text.tokens import encode

_OF_PEOPLE = "a transaction is a query: those of a cluster are of k people or more, which the files alone cannot show"


class _Transactional:
    """What Clump and Partition share: the promise, and the way from bags over clusters to a release."""

    __slots__ = ()

    k: int
    unit: Unit
    taxonomy: Taxonomy | None
    seed: int | None

    def __post_init__(self) -> None:
        check_settings(self)
        self.promise  # noqa: B018 - it checks k

    @property
    def promise(self) -> TransactionAnonymity:
        """What a release will promise."""
        return TransactionAnonymity(k=self.k)

    def anonymize(self, data: QueryLog | Transactions) -> Release:
        """Return a release of the transactions that keeps the promise."""
        taxonomy = self.taxonomy or Taxonomy.wordnet()
        rng = generator(self.seed)
        # Partition releases sets, and has no such setting.
        distinct = self.distinct if isinstance(self, Clump) else True
        bags = bags_of(data, taxonomy, unit=self.unit, distinct=distinct)
        is_by_query = self.unit is Unit.QUERY and isinstance(data, QueryLog)
        layers = bags.layers(rng) if is_by_query else [np.arange(bags.nodes.n_rows)]
        # Privacy: k queries of one person hide nobody, so what is left of those who asked most does not leave.
        if is_by_query and layers and len(layers[0]) < self.k:
            raise BadParameter("k", self.k, allowed=f"at most the number of people, {len(layers[0])}")
        kept = [layer for number, layer in enumerate(layers) if number == 0 or len(layer) >= self.k]
        nodes = bags.nodes.take(np.concatenate(kept)) if is_by_query and kept else bags.nodes
        clustering = _joined([self._cluster(bags.nodes.take(layer), taxonomy, rng) for layer in kept if len(layer)])
        n_others = len(bags.nodes.values) - len(nodes.values)
        spent = cost(clustering, nodes, loss=taxonomy.loss, level=taxonomy.level, n_others=n_others)
        frame = _rows(clustering, taxonomy, rng)
        n_too_few = bags.nodes.n_rows - frame.height
        n_suppressed = len(bags.nodes.values) - int(frame["items"].list.len().sum())
        notes = [_OF_PEOPLE] if is_by_query else []
        manifest = Manifest(
            method="clump" if isinstance(self, Clump) else "partition",
            promise=self.promise,
            parameters=parameters_of(self, taxonomy=taxonomy.source),
            counts=Counts(
                n_rows_before=data.n_rows,
                n_rows_after=frame.height,
                n_users_before=data.n_users if isinstance(data, QueryLog) else data.n_transactions,
                n_users_after=len(kept[0]) if kept else 0,
            ),
            removed=bags.removed
            | ({"transactions_of_too_few_people": n_too_few} if is_by_query else {})
            | {"items_suppressed": n_suppressed},
            measures={
                "ggd": round(spent.distortion, 2),
                "ncp": round(spent.ncp, 6),
                "average_length": round(spent.average_length, 3),
                "average_level": round(spent.average_level, 3),
            },
            columns=nothing_kept(data),
            events=no_events(data),
            warnings=(*notes, *caveats(data.reading, seed=self.seed, columns=[], shuffled="rows")),
        )
        made = Transactions(frame=frame, layout=transactions_layout(data.layout), reading=data.reading)
        return Release(data=made, manifest=manifest)

    def _cluster(self, items: Rows[np.int32], taxonomy: Taxonomy, rng: np.random.Generator, /) -> Clustering:
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Clump(_Transactional, ClumpSettings):
    """Put similar transactions together and release their least common generalisation.

    Promise: every released transaction is identical, as a bag of items, to at least k-1 others. Where a transaction is
    a query, those of a cluster are of k people or more; that is kept, but the released files cannot show it.
    Not promised: that the k people of a cluster differ in anything else; what all of them share is revealed about each.

    - k: transactions that must be identical, 2 or more
    - r: open clusters that the paper's algorithm compares
    - unit: a transaction is what one `user` asked for, or one `query`
    - distinct: take each item of a transaction once, not as often as it stands there
    - dedupe: release each item of a cluster once (Clump2 in the paper)
    - paper: the paper's algorithm to the letter
    - taxonomy: the words that are items, and what they are kinds of; None: WordNet's nouns
    - seed: repeat a run; not for releases

    >>> food = Taxonomy.from_pairs([("fruit", "food"), ("apple", "fruit"), ("pear", "fruit"), ("beef", "food")])
    >>> bags = Transactions.from_frame({"items": [["apple", "beef"], ["pear", "beef"]]})
    >>> Clump(k=2, taxonomy=food).anonymize(bags).transactions.frame["items"].to_list()
    [['beef', 'fruit'], ['beef', 'fruit']]
    """

    def _cluster(self, items: Rows[np.int32], taxonomy: Taxonomy, rng: np.random.Generator) -> Clustering:
        algorithm = Algorithm(r=self.r, carry=not self.paper, by_rise=not self.paper, refine=not self.paper)
        found = clump(items, taxonomy.parent, taxonomy.loss, k=self.k, algorithm=algorithm, rng=rng)
        return replace(found, released=without_duplicates(found.released)) if self.dedupe else found


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Partition(_Transactional, PartitionSettings):
    """Generalise everything to the root, then specialise as long as k transactions stay identical.

    Promise: every released transaction is identical, as a set of items, to at least k-1 others. Where a transaction is
    a query, those of a class are of k people or more; that is kept, but the released files cannot show it.
    Not promised: how many items of a kind there were; Partition keeps sets, not bags.

    - k: transactions that must be identical, 2 or more
    - unit: a transaction is what one `user` asked for, or one `query`
    - taxonomy: the words that are items, and what they are kinds of; None: WordNet's nouns
    - seed: repeat a run; not for releases

    >>> food = Taxonomy.from_pairs([("fruit", "food"), ("apple", "fruit"), ("pear", "fruit"), ("beef", "food")])
    >>> bags = Transactions.from_frame({"items": [["apple", "beef"], ["pear", "beef"]]})
    >>> Partition(k=2, taxonomy=food).anonymize(bags).transactions.n_transactions
    2
    """

    def _cluster(self, items: Rows[np.int32], taxonomy: Taxonomy, _rng: np.random.Generator) -> Clustering:
        return partition(items, taxonomy.parent, taxonomy.loss, k=self.k)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Bags:
    """The nodes of each transaction that has one, the number of the person behind it, and what was left out."""

    nodes: Rows[np.int32]
    people: Int32s
    removed: dict[str, int]

    def layers(self, rng: np.random.Generator) -> list[Int64s]:
        """Return the transactions in layers, each of different people; the longest of each person are in the first."""
        n = self.nodes.n_rows
        order = np.lexsort((rng.permutation(n), -self.nodes.lengths, self.people))
        is_first = np.append(True, np.diff(self.people[order]) != 0) if n else np.zeros(0, np.bool_)
        begins = np.maximum.accumulate(np.where(is_first, np.arange(n), 0))
        layer = np.empty(n, np.int64)
        layer[order] = np.arange(n) - begins
        by_layer = np.argsort(layer, kind="stable")
        return np.split(by_layer, np.cumsum(np.bincount(layer))[:-1]) if n else []


def bags_of(data: QueryLog | Transactions, taxonomy: Taxonomy, *, unit: Unit, distinct: bool) -> Bags:
    """Find the nodes of every transaction; words of a log that the taxonomy does not know are dropped and counted."""
    progress.step("finding items in the taxonomy")
    removed = {"bad_rows_skipped": data.reading.n_bad_rows_skipped}
    if isinstance(data, Transactions):
        lists = data.frame["items"]
        owner = np.repeat(np.arange(len(lists), dtype=np.int32), lists.list.len().to_numpy())
        items = lists.explode(empty_as_null=False)
        people = np.arange(data.n_transactions, dtype=np.int32)
    else:
        tokens = tokenize(data.frame["query"], by_blanks=data.terms_are_items)
        terms = tokens.row_terms()
        owner, items = terms.row_of_entry.astype(np.int32), tokens.vocabulary.gather(terms.values)
        people, distinct_users = encode(data.frame["user"])
        if unit is not Unit.QUERY:
            owner, people = people[owner], np.arange(len(distinct_users), dtype=np.int32)
    n_rows = len(people)
    codes, words = encode(items)
    nodes = taxonomy.find_all(words)[codes] if len(words) else codes
    known = nodes >= 0
    n_unknown = int((~known).sum())
    if n_unknown and (isinstance(data, Transactions) or data.terms_are_items):
        reason = f"an item is outside the taxonomy ({n_unknown} such in all); add them to it, or leave them out"
        raise BadRow("the transactions", int(owner[~known][0]) + 1, reason=reason)
    removed["words_outside_the_taxonomy"] = n_unknown
    owner, nodes = owner[known], nodes[known]
    if distinct:
        pairs = np.unique(owner.astype(np.int64) * taxonomy.n_nodes + nodes)
        removed["duplicate_items"] = len(nodes) - len(pairs)
        owner, nodes = (pairs // taxonomy.n_nodes).astype(np.int32), (pairs % taxonomy.n_nodes).astype(np.int32)
    ptr, places = group(owner, n_rows)
    bags = Rows(ptr, nodes[places].astype(np.int32))
    there = np.flatnonzero(bags.lengths)
    removed["transactions_without_items"] = n_rows - len(there)
    return Bags(nodes=bags.take(there), people=people[there], removed=removed)


def _joined(parts: list[Clustering]) -> Clustering:
    """Return the clusters of all layers; an empty log, which has none, is no failure."""
    firsts = np.cumsum([0, *(part.released.n_rows for part in parts)])
    numbers = [part.cluster_of + first for part, first in zip(parts, firsts, strict=False)]
    lengths = [part.released.lengths for part in parts]
    values = [part.released.values for part in parts]
    return Clustering(
        cluster_of=_flat(numbers),
        released=Rows(pointers(_flat(lengths)), _flat(values)),
    )


def _flat(values: Sequence[Int32s | Int64s]) -> Int32s:
    return np.concatenate([np.zeros(0, np.int32), *values]).astype(np.int32)


def _rows(clustering: Clustering, taxonomy: Taxonomy, rng: np.random.Generator) -> pl.DataFrame:
    released = clustering.released
    lists = released.to_series(taxonomy.names.cast(pl.String).gather(released.values))
    items = lists.gather(rng.permutation(clustering.cluster_of))
    ids = pl.int_range(1, len(items) + 1, eager=True).cast(pl.String)
    frame = pl.DataFrame({"id": ids, "items": items.cast(pl.List(pl.String))})
    return with_own_texts(frame, but="id")
