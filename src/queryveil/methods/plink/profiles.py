"""Profiles as compressed rows of numbered terms, and how similar they are: cosines after augmenting with hypernyms."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from queryveil import progress
from queryveil.data import Floats, Int32s, Int64s, Profiles, QueryLog
from queryveil.data.rows import Rows, insert_best
from queryveil.errors import BadParameter
from queryveil.kernels import njit
from queryveil.methods.bots import without_bots
from queryveil.methods.settings import PlinkSettings, Weights
from queryveil.settings import settings_of
from queryveil.text import tokenize
from queryveil.text.histories import Histories, collect
from queryveil.text.taxonomy import Taxonomy
from queryveil.text.taxonomy.tree import fold_all
from queryveil.text.tokens import ENGLISH, encode, encode_normal_form


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class TermProfiles:
    """The profiles that have a term, `weights` beside the values of `user_terms`, and how much was left out and why."""

    users: pl.Series
    user_terms: Rows[np.int32]
    weights: Floats
    vocabulary: pl.Series
    removed: dict[str, int]

    @property
    def n_users(self) -> int:
        """The number of users who have a term."""
        return len(self.users)

    @property
    def terms(self) -> Int32s:
        """The terms of all users, one after another."""
        return self.user_terms.values

    @property
    def entry_user(self) -> Int64s:
        """The user of each entry."""
        return self.user_terms.row_of_entry

    def as_profiles(self) -> Profiles:
        """Return the same as a value that others understand."""
        terms = self.user_terms.to_series(self.vocabulary.gather(self.terms))
        weights = self.user_terms.to_series(self.weights)
        return Profiles(frame=pl.DataFrame({"user": self.users, "terms": terms, "weights": weights}))


def profiles_of(
    data: QueryLog | Profiles, taxonomy: Taxonomy, *, weights: Weights, bot_threshold: int | None
) -> TermProfiles:
    """Number the terms of given profiles, in one way of writing, or of a log those that the taxonomy knows."""
    progress.step("reading profiles")
    if isinstance(data, Profiles):
        return _given(data)
    removed = {"bad_rows_skipped": data.reading.n_bad_rows_skipped}
    people = without_bots(data, threshold=bot_threshold, removed=removed)
    tokens = tokenize(people["query"], by_blanks=data.terms_are_items)
    owners, users = encode(people["user"])
    histories = collect(tokens, owners, n_users=len(users))
    is_stop = tokens.vocabulary.str.to_lowercase().is_in(list(ENGLISH)).to_numpy()
    # Paper: section 4; terms that WordNet does not know count as typing errors.
    is_known = taxonomy.find_all(tokens.vocabulary) >= 0 if tokens.n_terms else is_stop
    removed["stop_word_occurrences"] = int(histories.counts[is_stop[histories.terms]].sum())
    removed["term_occurrences_outside_the_taxonomy"] = int(
        histories.counts[~(is_stop | is_known)[histories.terms]].sum()
    )
    kept = histories.keep((is_known & ~is_stop)[histories.terms])
    return _with_terms(users, kept.user_terms, _weigh(kept, weights), vocabulary=tokens.vocabulary, removed=removed)


def _weigh(histories: Histories, weights: Weights) -> Floats:
    if weights is Weights.BINARY:
        return np.ones(len(histories.terms))
    counts = histories.counts.astype(np.float64)
    if weights is Weights.COUNT:
        return counts
    n_users = int((histories.user_terms.lengths > 0).sum())
    # The 1 keeps a term that everybody has above 0.
    rarity = 1 + np.log(n_users / np.maximum(1, histories.support()))
    return np.asarray(counts * rarity[histories.terms], np.float64)


def _given(profiles: Profiles) -> TermProfiles:
    # Privacy: HIV and hiv would be two terms, each held by half of those who have it.
    lists = profiles.frame.select(owner=pl.int_range(pl.len()), term="terms", weight="weights")
    entries = lists.explode("term", "weight", empty_as_null=False).cast({"weight": pl.Float64})
    codes, vocabulary = encode_normal_form(entries["term"])
    entries = entries.with_columns(term=codes).filter(vocabulary.gather(codes) != "")
    heaviest = entries.group_by("owner", "term").max().sort("owner", "term")
    owner, term, weights = (heaviest[name].to_numpy() for name in heaviest.columns)
    user_terms = Rows.from_entries(owner, term, n_rows=lists.height)
    removed = {
        "bad_rows_skipped": profiles.reading.n_bad_rows_skipped,
        "terms_written_in_two_ways": len(codes) - heaviest.height,
    }
    return _with_terms(profiles.frame["user"], user_terms, weights, vocabulary=vocabulary, removed=removed)


def _with_terms(
    users: pl.Series, user_terms: Rows[np.int32], weights: Floats, *, vocabulary: pl.Series, removed: dict[str, int]
) -> TermProfiles:
    """Leave out the users who have no term, and count them."""
    there = np.flatnonzero(user_terms.lengths)
    return TermProfiles(
        users=users.gather(there),
        user_terms=user_terms.take(there),
        weights=weights,
        vocabulary=vocabulary,
        removed=removed | {"users_without_terms": len(users) - len(there)},
    )


_MARGIN = 1e-9
"""A later sense must be better by this much, so that rounding does not decide."""


@njit(cache=True, nogil=True)
def choose_senses(
    ptr: Int64s, terms: Int32s, weights: Floats, sense_ptr: Int64s, senses: Int32s, parent: Int32s, rise: Floats
) -> Int32s:
    """Return the node of every entry, -1 for a term without senses.

    A sense is worth the sum, over the other terms of the profile, of their weight times how specific the lowest node is
    that the path of the sense shares with any path of the other term; the first of the best counts. `rise` is by how
    much a node is more specific than its parent, so that the sum of rises down a path is how specific its end is.
    """
    chosen = np.full(len(terms), -1, np.int32)
    weight_under = np.zeros(len(parent))
    seen_by = np.full(len(parent), -1, np.int64)
    met = np.empty(len(parent), np.int32)
    for user in range(len(ptr) - 1):
        n_met = 0
        for i in range(ptr[user], ptr[user + 1]):
            for j in range(sense_ptr[terms[i]], sense_ptr[terms[i] + 1]):
                node = senses[j]
                # What is above a node that this term has reached before, it has reached too.
                while node >= 0 and seen_by[node] != i:
                    if weight_under[node] == 0:
                        met[n_met] = node
                        n_met += 1
                    seen_by[node] = i
                    weight_under[node] += weights[i]
                    node = parent[node]
        for i in range(ptr[user], ptr[user + 1]):
            best = -np.inf
            for j in range(sense_ptr[terms[i]], sense_ptr[terms[i] + 1]):
                worth = 0.0
                node = senses[j]
                while node >= 0:
                    worth += rise[node] * (weight_under[node] - weights[i])
                    node = parent[node]
                if worth > best + _MARGIN:
                    best, chosen[i] = worth, senses[j]
        for k in range(n_met):
            weight_under[met[k]] = 0
    return chosen


COMPANIONS = 3
"""So many companions of each term are compared, too, when groups are strict: whoever knows terms of a member and what
goes with them elsewhere finds several members who are as likely to have that, though by other words."""


@njit(cache=True, nogil=True)
def companions(user_terms: Rows[np.int32], holders: Rows[np.int32], most: int) -> Int32s:
    """Return the terms that go most with each term, at most so many, -1 where there are fewer.

    Two terms go together by the number of profiles that have both, two or more, divided by the root of the product of
    how many have each; of equals the first term counts.
    """
    n_terms = len(holders.ptr) - 1
    found = np.full((n_terms, most), -1, np.int32)
    best, rank = np.empty(most), np.arange(n_terms)
    both, met = np.zeros(n_terms, np.int64), np.empty(n_terms, np.int32)
    for term in range(n_terms if most > 0 else 0):
        n_met = 0
        for user in holders.values[holders.ptr[term] : holders.ptr[term + 1]]:
            for other in user_terms.values[user_terms.ptr[user] : user_terms.ptr[user + 1]]:
                if both[other] == 0:
                    met[n_met] = other
                    n_met += 1
                both[other] += 1
        own, n_best = found[term], 0
        for other in met[:n_met]:
            if other != term and both[other] > 1:
                worth = both[other] ** 2 / (holders.ptr[other + 1] - holders.ptr[other])
                n_best = insert_best(other, worth, own, best, n_best, rank)
            both[other] = 0
    return found


@njit(cache=True, nogil=True)
def largest_weights(
    ptr: Int64s, reached: NDArray[np.int32], weights: Floats, n_nodes: int
) -> tuple[Rows[np.int32], Floats]:
    """Return the nodes that the terms of each profile reach, -1 for none, as they first come, with largest weights."""
    out_ptr = np.zeros(len(ptr), np.int64)
    out = np.empty(reached.size, np.int32)
    out_weights = np.empty(len(out))
    weight = np.zeros(n_nodes)
    n = 0
    for user in range(len(ptr) - 1):
        for i in range(ptr[user], ptr[user + 1]):
            for node in reached[i]:
                if node >= 0:
                    if weight[node] == 0:
                        out[n] = node
                        n += 1
                    weight[node] = max(weight[node], weights[i])
        out_ptr[user + 1] = n
        own = out[out_ptr[user] : n]
        out_weights[out_ptr[user] : n] = weight[own]
        weight[own] = 0
    return Rows(out_ptr, out[:n].copy()), out_weights[:n].copy()


_SMALLEST = 1e-100
"""Weights are taken as shares of the largest one; smaller ones would have a square of 0."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Vectors:
    """Augmented profiles: `weights` stand beside the nodes of each user, numbered otherwise than in the taxonomy."""

    user_nodes: Rows[np.int32]
    weights: Floats
    n_nodes: int

    @property
    def norms(self) -> Floats:
        """The length of each vector."""
        first = self.user_nodes.ptr[:-1]
        return np.sqrt(np.add.reduceat(self.weights**2, first)) if len(first) else np.zeros(0)

    def cosine(self, first: int, second: int) -> float:
        """Return the similarity of two users."""
        dense = np.zeros((2, self.n_nodes))
        mine = self.user_nodes.entries(np.array([first, second]))
        dense[mine.row_of_entry, self.user_nodes.values[mine.values]] = self.weights[mine.values]
        return float(dense[0] @ dense[1] / np.linalg.norm(dense[0]) / np.linalg.norm(dense[1]))


def specificity(taxonomy: Taxonomy) -> Floats:
    """How specific each node is, from 0 for the root to 1 for a leaf: 1 - log(leaves under it) / log(all leaves).

    >>> pairs = [("fruit", "food"), ("apple", "fruit"), ("pear", "fruit"), ("egg", "food"), ("tea", "food")]
    >>> specificity(Taxonomy.from_pairs(pairs)).tolist()
    [0.0, 0.5, 1.0, 1.0, 1.0, 1.0]
    """
    n_leaves = int(taxonomy.n_leaves[0])
    return np.asarray(1 - np.log(taxonomy.n_leaves) / np.log(n_leaves) if n_leaves > 1 else 0.0 * taxonomy.loss)


def augmented(profiles: TermProfiles, taxonomy: Taxonomy, *, a: int | None, n_companions: int = 0) -> Vectors:
    """Replace terms by what they mean and add what lies up to `a` steps above and so many companions; None: neither."""
    if a is None:
        return _compact(profiles.user_terms, _scaled(profiles.weights))
    settings_of(PlinkSettings)["a"].check(a)
    progress.step("comparing meanings")
    weights = _scaled(profiles.weights)
    reached = [synsets(profiles, taxonomy)]
    # Terms that the taxonomy does not know have nothing above them, and nor has -1, the last place.
    n_nodes = int(reached[0].max(initial=taxonomy.n_nodes - 1)) + 1
    parent = np.append(taxonomy.parent, np.full(n_nodes + 1 - taxonomy.n_nodes, -1, np.int32))
    for _ in range(a):
        reached.append(parent[reached[-1]])
    # Companions are nodes of their own behind the others.
    holders = profiles.user_terms.transpose(len(profiles.vocabulary))
    beside = companions(profiles.user_terms, holders, n_companions)[profiles.terms]
    nodes = np.column_stack([*reached, np.where(beside >= 0, n_nodes + beside, -1).astype(np.int32)])
    return _compact(*largest_weights(profiles.user_terms.ptr, nodes, weights, n_nodes + len(profiles.vocabulary)))


def synsets(profiles: TermProfiles, taxonomy: Taxonomy) -> Int32s:
    """Return the node of every entry; terms that the taxonomy does not know have nodes of their own behind the others.

    A word of several senses has the one whose path to the root is most similar to the rest of the profile: the sum over
    the other terms of weight times specificity of the lowest node that the path shares with one of theirs. If several
    are equally similar, WordNet's first, which is the most frequent.
    """
    # Paper: section 3.2; "the similarity between the terms on the candidate paths and the user profile" is not defined
    # there, the above is our reading. Differs: a synset with several hypernyms goes by the first.
    specific = specificity(taxonomy)
    rise = specific - np.append(specific, 0.0)[taxonomy.parent]
    senses = taxonomy.all_senses(profiles.vocabulary)
    nodes = choose_senses(*profiles.user_terms, _scaled(profiles.weights), *senses, taxonomy.parent, rise)
    own, _ = encode(fold_all(profiles.vocabulary))
    return np.where(nodes < 0, taxonomy.n_nodes + own[profiles.terms], nodes).astype(np.int32)


def similarity(
    first: Mapping[str, float], second: Mapping[str, float], *, a: int | None = 1, taxonomy: Taxonomy | None = None
) -> float:
    """Return the similarity of two profiles that have terms.

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


def _compact(user_nodes: Rows[np.int32], weights: Floats) -> Vectors:
    is_used = np.bincount(user_nodes.values) > 0
    number = (np.cumsum(is_used) - 1).astype(np.int32)
    user_nodes = Rows(user_nodes.ptr, number[user_nodes.values])
    return Vectors(user_nodes=user_nodes, weights=weights, n_nodes=int(is_used.sum()))
