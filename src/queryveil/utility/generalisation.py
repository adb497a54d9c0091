"""Loss of generalised transactions: GGD, NCP, length and level.

Which transaction became which is not in a release, and is not needed: each released item stands for one item of its
transaction and the others are suppressed, so that totals give the distortion exactly.
"""

import numpy as np
import polars as pl

from queryveil.data import Int32s, Transactions
from queryveil.errors import BadInput
from queryveil.pairing import Pair
from queryveil.text.taxonomy import Taxonomy
from queryveil.text.tokens import encode
from queryveil.utility.score import Measures, Score

GROUP = "generalisation"


def generalisation(pair: Pair, *, taxonomy: Taxonomy) -> Measures:
    """Measure a release of transactions as its method counts them, without items that the taxonomy does not know."""
    released, parameters = pair.release.transactions, pair.release.manifest.parameters
    before = _known(pair.bags, taxonomy=taxonomy, distinct=bool(parameters.get("distinct")))
    lost = (measured(released, original=before, taxonomy=taxonomy) for measured in (ggd, ncp))
    return Measures(scores=(*lost, average_length(released), average_level(released, taxonomy=taxonomy)))


def ggd(released: Transactions, *, original: Transactions, taxonomy: Taxonomy) -> Score:
    """Return the distortion of the whole release (GGD in the paper): LM of every released item plus suppressed items.

    LM is `Taxonomy.loss`. The items of transactions that were not released count as suppressed, and so do items of the
    original that the taxonomy does not know; leave them out of the original to leave them out here.

    >>> fruit = Taxonomy.from_pairs([("apple", "fruit"), ("pear", "fruit"), ("plum", "fruit")])
    >>> before = Transactions.from_frame({"items": [["apple", "pear"], ["pear"]]})
    >>> after = Transactions.from_frame({"items": [["pear"], ["pear"]]})
    >>> ggd(after, original=before, taxonomy=fruit).value
    1.0
    """
    value = _distortion(released, original=original, taxonomy=taxonomy)
    return Score(name="ggd", value=value, better="less", about="items lost, a generalised one in part", group=GROUP)


def ncp(released: Transactions, *, original: Transactions, taxonomy: Taxonomy) -> Score:
    """Return the distortion per item of the original: 0 if nothing changed, 1 if all is suppressed or the root."""
    value = _distortion(released, original=original, taxonomy=taxonomy) / max(1, original.n_items)
    return Score(name="ncp", value=value, better="less", about="of each item lost, between 0 and 1", group=GROUP)


def average_length(released: Transactions) -> Score:
    """Return the average number of items of a released transaction; 0 for a release without any."""
    value, about = released.n_items / max(1, released.n_transactions), "items that a transaction has left"
    return Score(name="average_length", value=value, better="more", about=about, group=GROUP)


def average_level(released: Transactions, *, taxonomy: Taxonomy) -> Score:
    """Return the average level of a released item, the root being at level 1; 0 for a release without items."""
    levels = taxonomy.level[nodes_of(released, taxonomy=taxonomy)]
    value, about = float(levels.mean()) if levels.size else 0.0, "levels down to an item, the root is 1"
    return Score(name="average_level", value=value, better="more", about=about, group=GROUP)


def _distortion(released: Transactions, *, original: Transactions, taxonomy: Taxonomy) -> float:
    n_suppressed = original.n_items - released.n_items
    if n_suppressed < 0:
        raise BadInput("the release has more items than the original; measure it against the one it was made from")
    return float(taxonomy.loss[nodes_of(released, taxonomy=taxonomy)].sum()) + n_suppressed


def _known(bags: Transactions, *, taxonomy: Taxonomy, distinct: bool) -> Transactions:
    """Return the nodes of the items that the taxonomy knows."""
    codes, words = encode(bags.frame["items"].explode(empty_as_null=False))
    nodes = taxonomy.find_all(words)[codes] if len(words) else codes
    row = np.repeat(np.arange(bags.n_transactions), bags.frame["items"].list.len().to_numpy())
    found = pl.DataFrame({"id": row, "node": nodes}).filter(pl.col("node") >= 0)
    if distinct:
        found = found.unique(maintain_order=True)
    named = found.select(pl.col("id").cast(pl.String), items=taxonomy.names.gather(found["node"]))
    return Transactions(frame=named.group_by("id", maintain_order=True).agg("items"))


def nodes_of(released: Transactions, *, taxonomy: Taxonomy) -> Int32s:
    """Return the node of every released item."""
    codes, distinct = encode(released.frame["items"].explode(empty_as_null=False))
    named = taxonomy.named(distinct)
    nodes = np.where(named >= 0, named, taxonomy.find_all(distinct)).astype(np.int32)
    if (nodes < 0).any():
        raise BadInput("the release has items that the taxonomy does not know; give the one it was made with")
    return nodes[codes]
