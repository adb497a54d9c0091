"""The items that may represent a term after generalisation: the term and its ancestors in the taxonomy."""

from dataclasses import dataclass
from typing import Self

import numpy as np
import polars as pl

from queryveil.data import Bools, Floats, Int64s, Transactions
from queryveil.data.rows import Rows, group
from queryveil.guarantees import KmAnonymity
from queryveil.release import Release
from queryveil.text.taxonomy import Taxonomy
from queryveil.text.taxonomy.tree import places


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Ancestors:
    """The items of a release by the node of the taxonomy that they name.

    - `taxonomy`: the taxonomy that the release was made with.
    - `vocabulary`, `released`: the texts of original and release, items being places in it, and which the release has.
    - `node`, `node_items`: the node of each text, -1 if the taxonomy does not know it, and the released items at each.
    """

    taxonomy: Taxonomy
    vocabulary: pl.Series
    released: Bools
    node: Int64s
    node_items: Rows[np.int64]

    @classmethod
    def of(cls, vocabulary: pl.Series, *, released: Bools, taxonomy: Taxonomy) -> Self:
        """Find the nodes of the released texts: names of nodes in one word, in angle brackets or without."""
        names = taxonomy.item_names
        is_first = names.is_first_distinct()
        texts = vocabulary.filter(pl.Series(released)).str.replace(r"^<(.*)>$", "${1}")
        place = places(texts, table=names.filter(is_first))
        node = np.append(np.flatnonzero(is_first.to_numpy()), -1)[place]
        known = node >= 0
        ptr, places_by_node = group(node[known].astype(np.int32), taxonomy.n_nodes)
        items = np.flatnonzero(released)[known]
        nodes = taxonomy.find_all(vocabulary).astype(np.int64) if len(vocabulary) else node
        nodes[items] = node[known]
        at = Rows(ptr, items[places_by_node])
        return cls(taxonomy=taxonomy, vocabulary=vocabulary, released=released, node=nodes, node_items=at)

    @property
    def n_unknown(self) -> int:
        """The number of released texts that are no node."""
        return int(self.released.sum()) - len(self.node_items.values)

    def losses(self) -> Floats:
        """Return what is lost of a term that each text of the vocabulary stands for, from 0 to 1."""
        return np.where(self.node >= 0, self.taxonomy.loss[self.node], 0.0)

    def items_for(self, terms: pl.Series) -> Rows[np.int64]:
        """Return the items that may stand for each term, each once: the term itself and all above.

        >>> food = Taxonomy.from_pairs([("fruit", "food"), ("pear", "fruit"), ("milk", "food")])
        >>> texts = pl.Series(["pear", "milk", "fruit", "food", "dog"])
        >>> ancestors = Ancestors.of(texts, released=np.array([True, False, True, True, True]), taxonomy=food)
        >>> found = ancestors.items_for(pl.Series(["milk", "pear", "dog", "cat"]))
        >>> found.to_series(texts.gather(found.values)).to_list()
        [['food'], ['pear', 'fruit', 'food'], ['dog'], []]
        """
        own = places(terms, table=self.vocabulary).astype(np.int64)
        node = self.taxonomy.find_all(terms).astype(np.int64) if len(terms) else own
        own = np.where(np.append(self.released, False)[own], own, -1)
        # The name of a node is that node, though it may be a word of another.
        node = np.where(own >= 0, np.append(self.node, -1)[own], node)
        pairs = [(np.flatnonzero(own >= 0), own[own >= 0])]
        parent = np.append(self.taxonomy.parent, -1)
        while (node >= 0).any():
            asked = np.flatnonzero(node >= 0)
            found = self.node_items.take(node[asked])
            pairs.append((asked[found.row_of_entry], found.values))
            node = parent[node]
        term, item = (np.concatenate(part) for part in zip(*pairs, strict=True))
        distinct = np.unique(term * max(1, len(self.vocabulary)) + item)
        term, item = np.divmod(distinct, max(1, len(self.vocabulary)))
        return Rows.from_entries(term, item, n_rows=len(terms))

    def __repr__(self) -> str:
        return f"Ancestors(n_items={len(self.node_items.values)})"


def is_generalised(release: Release) -> bool:
    """Return whether an item of the release may stand for what is below it in a taxonomy."""
    has_items = isinstance(release.data, Transactions) or isinstance(release.manifest.promise, KmAnonymity)
    return has_items and release.manifest.parameters.get("taxonomy") is not None
