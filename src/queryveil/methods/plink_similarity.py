"""How similar two profiles are: the cosine of what their terms mean and of what lies above that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from queryveil import progress
from queryveil.errors import BadParameter
from queryveil.kernels.arrays import Floats, Int32s, Int64s
from queryveil.kernels.synsets import augment, choose_senses
from queryveil.methods.plink_profiles import TermProfiles, Weights, profiles_of
from queryveil.profiles import Profiles
from queryveil.text.codes import encode
from queryveil.text.taxonomy import Taxonomy
from queryveil.text.word_table import fold_all

MAX_STEPS = 3

_SMALLEST = 1e-100
"""Weights are taken as shares of the largest one; smaller ones would have a square of 0."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Vectors:
    """Augmented profiles: user u has the nodes `nodes[ptr[u]:ptr[u + 1]]` with `weights` beside them.

    Nodes are numbered from 0 to `n_nodes` - 1 and are no longer those of the taxonomy.
    """

    ptr: Int64s
    nodes: Int32s
    weights: Floats
    n_nodes: int

    @property
    def norms(self) -> Floats:
        """The length of each vector."""
        return np.sqrt(np.add.reduceat(self.weights**2, self.ptr[:-1])) if len(self.ptr) > 1 else np.zeros(0)

    def cosine(self, first: int, second: int) -> float:
        """Give the similarity of two users."""
        spread = np.zeros((2, self.n_nodes))
        for row, user in enumerate((first, second)):
            mine = slice(self.ptr[user], self.ptr[user + 1])
            spread[row, self.nodes[mine]] = self.weights[mine]
        return float(spread[0] @ spread[1] / np.linalg.norm(spread[0]) / np.linalg.norm(spread[1]))

    def __repr__(self) -> str:
        return f"Vectors(n_users={len(self.ptr) - 1}, n_nodes={self.n_nodes})"


def check_steps(a: int) -> None:
    """Raise unless `a` is a number of steps up that makes sense."""
    if a not in range(MAX_STEPS + 1):
        raise BadParameter("a", a, allowed=f"a whole number from 0 to {MAX_STEPS}")


def specificity(taxonomy: Taxonomy) -> Floats:
    """Say how specific each node is, from 0 for the root to 1 for a leaf: 1 - log(leaves under it) / log(all leaves).

    >>> pairs = [("fruit", "food"), ("apple", "fruit"), ("pear", "fruit"), ("egg", "food"), ("tea", "food")]
    >>> specificity(Taxonomy.from_pairs(pairs)).tolist()
    [0.0, 0.5, 1.0, 1.0, 1.0, 1.0]
    """
    n_leaves = int(taxonomy.n_leaves[0])
    return np.asarray(1 - np.log(taxonomy.n_leaves) / np.log(n_leaves) if n_leaves > 1 else 0.0 * taxonomy.loss)


def augmented(profiles: TermProfiles, taxonomy: Taxonomy, *, a: int | None) -> Vectors:
    """Replace terms by what they mean and add what lies up to `a` steps above; `None` leaves the terms as they are."""
    if a is None:
        return _compact(profiles.ptr, profiles.terms, _scaled(profiles.weights))
    check_steps(a)
    progress.step("comparing meanings")
    weights = _scaled(profiles.weights)
    nodes = synsets(profiles, taxonomy)
    n_nodes = int(nodes.max(initial=taxonomy.n_nodes - 1)) + 1
    return _compact(*augment(profiles.ptr, nodes, weights, taxonomy.parent, a, n_nodes))


def synsets(profiles: TermProfiles, taxonomy: Taxonomy) -> Int32s:
    """Give the node of every entry; terms that the taxonomy does not know have nodes of their own behind the others.

    A word of several senses has the one whose path to the root is most similar to the rest of the profile: the sum over
    the other terms of weight times specificity of the lowest node that the path shares with one of theirs. If several
    are equally similar, WordNet's first, which is the most frequent.
    """
    # Paper: section 3.2; "the similarity between the terms on the candidate paths and the user profile" is not defined
    # there, the above is our reading. Differs: a synset with several hypernyms goes by the first.
    specific = specificity(taxonomy)
    rise = specific - np.append(specific, 0.0)[taxonomy.parent]
    sense_ptr, senses = taxonomy.all_senses(profiles.vocabulary)
    weights = _scaled(profiles.weights)
    nodes = choose_senses(profiles.ptr, profiles.terms, weights, sense_ptr, senses, taxonomy.parent, rise)
    own, _ = encode(fold_all(profiles.vocabulary))
    return np.where(nodes < 0, taxonomy.n_nodes + own[profiles.terms], nodes).astype(np.int32)


def similarity(
    first: Mapping[str, float], second: Mapping[str, float], *, a: int | None = 1, taxonomy: Taxonomy | None = None
) -> float:
    """Give the similarity of two profiles that have terms.

    >>> round(similarity({"kitten": 1, "riding": 0.8}, {"pup": 0.6, "equitation": 1}), 3)
    0.737
    """
    taxonomy = taxonomy or Taxonomy.wordnet()
    both = Profiles.from_dicts({"first": first, "second": second})
    profiles = profiles_of(both, taxonomy, weights=Weights.BINARY, bot_threshold=None)
    if profiles.n_users < 2:
        raise BadParameter("a profile", "one without terms", allowed="terms with weights")
    return augmented(profiles, taxonomy, a=a).cosine(0, 1)


def _scaled(weights: Floats) -> Floats:
    return np.asarray(np.maximum(weights / weights.max(initial=1e-300), _SMALLEST), np.float64)


def _compact(ptr: Int64s, nodes: Int32s, weights: Floats) -> Vectors:
    used = np.flatnonzero(np.bincount(nodes)) if len(nodes) else nodes[:0]
    number = np.zeros(int(nodes.max(initial=-1)) + 1, np.int32)
    number[used] = np.arange(len(used))
    return Vectors(ptr=ptr, nodes=number[nodes], weights=weights, n_nodes=len(used))
