"""Personalised search: how much of a search's order is left if the group's profile stands in for the user's own.

Paper: Zhu and Xiong, section 4. A query is searched, its results are ranked again by their similarity to a profile, and
the order under the user's own profile is taken as the truth: its first 30 results are relevant, the rest are not.

Each user asks words of the user's own profile: terms are drawn at random and put into one query until it finds 100
documents, so that there are always more results than relevant ones. The similarity is the cosine between a document's
tf-idf and the profile's weights, over the tokens of the index. It alone decides the new order; only where two documents
are equally similar does the search's own order count.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl

from queryveil.data import Bools, Floats, Groups, Int32s, Int64s, Profiles
from queryveil.data.rows import Rows
from queryveil.errors import BadInput, BadParameter, MissingExtra
from queryveil.kernels import njit
from queryveil.pairing import Pair
from queryveil.progress import step
from queryveil.rng import generator
from queryveil.text.tokens import ENGLISH
from queryveil.utility.score import Measures, Score, note
from queryveil.utility.search_index import SearchIndex


def average_precision(relevant: Bools, *, n_relevant: int, at: int) -> Floats:
    """Return the average precision at rank `at` of each ranking: a row says which of its ranks are relevant.

    It is the sum of the precision at each of the first `at` ranks that are relevant, divided by the smaller of `at` and
    the number of relevant documents there are: 1 if the first ranks are all relevant.

    >>> rankings = np.array([[True, False, True, False], [False, False, False, True], [True, True, False, False]])
    >>> average_precision(rankings, n_relevant=2, at=4).round(4).tolist()
    [0.8333, 0.125, 1.0]
    """
    first = relevant[:, :at]
    precision = np.cumsum(first, axis=1) / np.arange(1, first.shape[1] + 1)
    return np.asarray((precision * first).sum(axis=1) / max(1, min(at, n_relevant)), np.float64)


Vectors = tuple[Rows[np.int32], Floats]
"""Rows of tokens, and the weight of each token there."""


@njit(cache=True, nogil=True)
def similarities(found: Int32s, profile_of: Int64s, documents: Vectors, profiles: Vectors, n_tokens: int) -> Floats:
    """Return the products of the documents of each search (a row of `found`) with the profile it is for, 0 for -1."""
    # Searches for one profile share its unpacking.
    (doc_ptr, doc_tokens), doc_weights = documents
    (profile_ptr, profile_tokens), profile_weights = profiles
    n_searches, n_found = found.shape
    products = np.zeros((n_searches, n_found))
    unpacked = np.zeros(n_tokens)
    last = -1
    for i in range(n_searches):
        profile = profile_of[i]
        if profile < 0:
            continue
        if profile != last:
            unpacked[:] = 0.0
            for j in range(profile_ptr[profile], profile_ptr[profile + 1]):
                unpacked[profile_tokens[j]] += profile_weights[j]
            last = profile
        for k in range(n_found):
            document = found[i, k]
            total = 0.0
            for j in range(doc_ptr[document], doc_ptr[document + 1]):
                total += doc_weights[j] * unpacked[doc_tokens[j]]
            products[i, k] = total
    return products


N_RESULTS = 100
N_RELEVANT = 30
AT = 10
MOST_TERMS = 6  # a query of so many terms that still finds too little is given up, and others are drawn


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPrecision:
    """Average precision at 10, over all queries; with the user's own profile it would be 1, as that is the truth.

    - `without_profile`: of the search alone.
    - `group_profile`: with the group's profile.
    - `n_queries`, `n_users`: the number of queries, and of users who ask them.
    """

    without_profile: float
    group_profile: float
    n_queries: int
    n_users: int

    @property
    def score(self) -> Score:
        """The measure of the group's profile."""
        name = "average_precision_at_10"
        about = f"of the users' own order is kept, 1 is all of it, {self.without_profile:.4f} is no profile"
        return Score(name=name, value=self.group_profile, better="more", about=about, group="search")


class PersonalisedSearch:
    """Queries of users and the order their own profiles give the results, to measure groups by.

    The same arguments give the same queries. Users of whose terms no query finds enough ask none.

    - `profiles`: the users' own profiles.
    - `index`: what is searched.
    - `queries_per_user`: how many queries each user asks.
    - `seed`: decides which terms are drawn.
    """

    def __init__(self, profiles: Profiles, *, index: SearchIndex, queries_per_user: int = 5, seed: int = 0) -> None:
        if queries_per_user < 1:
            raise BadParameter("queries_per_user", queries_per_user, allowed="1 or more")
        if index.n_documents < N_RESULTS:
            raise BadInput(f"personalised search needs a corpus of {N_RESULTS} documents, not {index.n_documents}")
        self._index = index
        self._users = profiles.frame["user"]
        self._asking, self._found = _ask(profiles, index=index, per_user=queries_per_user, rng=generator(seed))
        if not len(self._asking):
            raise BadInput(f"no query of the users' terms finds {N_RESULTS} documents; give a larger corpus")
        truth = self._order(profiles.frame, self._asking)
        self._is_relevant = np.zeros(self._found.shape, np.bool_)
        np.put_along_axis(self._is_relevant, truth[:, :N_RELEVANT], values=True, axis=1)

    @property
    def n_queries(self) -> int:
        """The number of queries."""
        return len(self._asking)

    @property
    def n_users(self) -> int:
        """The number of users who ask."""
        return len(np.unique(self._asking))

    def measure(self, groups: Groups, *, membership: pl.DataFrame) -> SearchPrecision:
        """Rank by the profiles of groups, for users in none without; `membership` has the columns user and group."""
        rows = groups.frame.select("group").with_row_index("row")
        members = membership.select("user", "group").join(rows, on="group", how="left")
        joined = self._users.to_frame().join(members, on="user", how="left", maintain_order="left")
        if joined.height != len(self._users) or (joined["group"].is_not_null() & joined["row"].is_null()).any():
            raise BadInput("membership must name each user once, with a group that there is")
        group_of = joined["row"].cast(pl.Int64).fill_null(-1).to_numpy()
        order = self._order(groups.frame, group_of[self._asking])
        rankings = (self._is_relevant, np.take_along_axis(self._is_relevant, order, axis=1))
        alone, by_group = (float(average_precision(r, n_relevant=N_RELEVANT, at=AT).mean()) for r in rankings)
        n_queries, n_users = self.n_queries, self.n_users
        return SearchPrecision(without_profile=alone, group_profile=by_group, n_queries=n_queries, n_users=n_users)

    def _order(self, profiles: pl.DataFrame, profile_of: Int64s) -> Int64s:
        index, vectors = self._index, _vectors(profiles, index=self._index)
        alike = similarities(self._found, profile_of, (index.doc_tokens, index.weights), vectors, index.n_tokens)
        # Rounded, since sums that should be equal may differ in the last bits.
        return np.argsort(-alike.round(9), axis=1, kind="stable")

    def __repr__(self) -> str:
        return f"PersonalisedSearch(n_queries={self.n_queries}, n_users={self.n_users}, index={self._index!r})"


def personalised_search(
    groups: Groups,
    *,
    profiles: Profiles,
    membership: pl.DataFrame,
    index: SearchIndex | None = None,
    queries_per_user: int = 5,
    seed: int = 0,
) -> SearchPrecision:
    """Measure groups once; to measure several groupings of the same profiles, keep a `PersonalisedSearch`.

    Without an index, the corpus of the package is searched.
    """
    search = PersonalisedSearch(profiles, index=index or SearchIndex.of(), queries_per_user=queries_per_user, seed=seed)
    return search.measure(groups, membership=membership)


def _ask(profiles: Profiles, *, index: SearchIndex, per_user: int, rng: np.random.Generator) -> tuple[Int64s, Int32s]:
    """Draw queries and search them; return the row of the user who asks each, and the documents it finds."""
    asking, found = [], []
    for row, terms in enumerate(profiles.frame["terms"].to_list()):
        if row % 50 == 0:
            step("searching", row / profiles.n_users)
        known = [term for term in terms if index.tokens_of(term)]
        drawn = [known[i] for i in rng.permutation(len(known))]
        n_asked = 0
        while drawn and n_asked < per_user:
            # Terms are put into a query until it finds enough.
            for n_terms in range(1, 1 + min(MOST_TERMS, len(drawn))):
                documents = index.search(drawn[:n_terms], limit=N_RESULTS)
                if len(documents) == N_RESULTS:
                    asking.append(row)
                    found.append(documents)
                    n_asked += 1
                    break
            drawn = drawn[n_terms:]
    return np.array(asking, np.int64), np.array(found, np.int32).reshape(-1, N_RESULTS)


def _vectors(profiles: pl.DataFrame, *, index: SearchIndex) -> Vectors:
    """Return profiles over the index's tokens, scaled to length 1; the tokens of a phrase all get its weight."""
    entries = profiles.with_row_index("owner").explode("terms", "weights", empty_as_null=False)
    terms = entries["terms"].unique()
    tokens = pl.Series([index.tokens_of(term) for term in terms], dtype=pl.List(pl.Int32))
    found = entries.join(pl.DataFrame({"terms": terms, "token": tokens}), on="terms")
    by_token = found.explode("token", empty_as_null=False).group_by("owner", "token")
    summed = by_token.agg(pl.col("weights").sum()).sort("owner", "token")
    scaled = summed.select(pl.col("weights") / (pl.col("weights") ** 2).sum().sqrt().over("owner"))["weights"]
    owner = summed["owner"].to_numpy().astype(np.int64)
    return Rows.from_entries(owner, summed["token"].to_numpy(), n_rows=profiles.height), scaled.to_numpy()


MOST_USERS = 500  # users whose searches are tried, drawn at random if there are more
_SEED = 0


def group_search(pair: Pair, *, membership: pl.DataFrame | None) -> Measures:
    """Measure how much of the order of a user's search results the group's profile keeps."""
    if membership is None:
        return note("personalised search is left out: who is in which group is needed: add --membership FILE")
    profiles = _own_profiles(pair)
    drawn = generator(_SEED).permutation(profiles.n_users)[:MOST_USERS]
    some = profiles.with_frame(profiles.frame[np.sort(drawn)])
    try:
        found = personalised_search(pair.release.groups, profiles=some, membership=membership)
    except (MissingExtra, BadInput) as error:
        return note(f"personalised search is left out: {error}")
    return Measures(scores=(found.score,))


def _own_profiles(pair: Pair) -> Profiles:
    """Return people's own profiles: as they are, or a log's terms that the taxonomy knows, without stop words."""
    if isinstance(pair.original, Profiles):
        return pair.original
    taxonomy = pair.known_taxonomy
    bags = pair.bags.frame.rename({"id": "user"}).explode("items", empty_as_null=False)
    counted = bags.group_by("user", "items", maintain_order=True).agg(pl.len().alias("n"))
    words = counted["items"].unique(maintain_order=True)
    is_term = ~words.is_in(list(ENGLISH)).to_numpy()
    if taxonomy is not None and len(words):
        is_term &= taxonomy.find_all(words) >= 0
    counted = counted.filter(pl.col("items").is_in(words.filter(is_term).implode()))
    n, rarity = pl.col("n").cast(pl.Float64), 1 + (pl.col("user").n_unique() / pl.len().over("items")).log()
    weights = {"tfidf": n * rarity, "count": n}.get(str(pair.release.manifest.parameters.get("weights")), pl.lit(1.0))
    profiles = counted.with_columns(weight=weights).group_by("user", maintain_order=True)
    return Profiles(frame=profiles.agg(terms="items", weights="weight"))
