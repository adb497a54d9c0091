"""What the clump figures are measured on: transactions of nouns, the tree they are from, and where both come from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from queryveil.errors import BadInput
from queryveil.kernels.arrays import Int32s, Int64s
from queryveil.log import QueryLog
from queryveil.methods.bags import Unit, bags_of
from queryveil.synth import synthesize
from queryveil.text.taxonomy import Taxonomy

# Paper: section V.1 and its table III.
USERS = 53_058
AVERAGE_LENGTH = 20.93
DENSITY = 0.11
THEIR_TREE = "25,645 nodes, height 18"
LARGEST_K = 15


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Material:
    """Transactions as compressed rows of distinct nodes, and the tree of the nodes that occur; notes on both."""

    row_ptr: Int64s
    nodes: Int32s
    taxonomy: Taxonomy
    notes: tuple[str, ...]

    @property
    def n_rows(self) -> int:
        """The number of transactions."""
        return len(self.row_ptr) - 1

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
    if bags.n_rows < LARGEST_K:
        raise BadInput(
            f"{bags.n_rows} users of the log have a noun of WordNet, too few for k={LARGEST_K}; give a larger log"
        )
    taxonomy, number = nouns.restricted_to(bags.nodes)
    n_leaves = int(taxonomy.n_leaves[0])
    n_items, length = len(np.unique(bags.nodes)), len(bags.nodes) / bags.n_rows
    return Material(
        row_ptr=bags.row_ptr,
        nodes=number[bags.nodes],
        taxonomy=taxonomy,
        notes=(
            f"{origin}: {bags.n_rows:,} transactions, one per user with a noun, {length:.2f} nouns long on average "
            f"(theirs: {USERS:,} and {AVERAGE_LENGTH})",
            f"the tree: the {n_items:,} nouns that occur and those above them, {taxonomy.n_nodes:,} nodes on "
            f"{taxonomy.level.max()} levels, {n_leaves:,} leaves (theirs: {THEIR_TREE})",
            f"density: {100 * length / n_leaves:.2f} % of the leaves in a transaction (theirs: {DENSITY} %), "
            "so figures that hang on how alike transactions are need not agree",
        ),
    )
