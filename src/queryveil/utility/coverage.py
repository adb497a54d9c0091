"""What leaves as people typed it: the coverage of searches and of rare queries, words as typed, and count queries.

A query is as typed if its words are all there in their order, in lower case. A count query asks how many people asked
for a word, or for two of them; it is answered from the release as a recipient would, where what was generalised stands
for each word below it alike.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
import polars as pl

from queryveil.data import Floats, Groups, Int32s, Int64s, QueryLog, Tallies
from queryveil.data.rows import Rows
from queryveil.kernels import njit
from queryveil.pairing import Pair
from queryveil.pairing.ancestors import Ancestors, is_generalised
from queryveil.rng import generator
from queryveil.text.histories import Histories
from queryveil.text.tokens import encode
from queryveil.utility.kept import TermCounts
from queryveil.utility.score import Measures, Score, kept, note, share
from queryveil.utility.views import View

COVERAGE = "coverage"
TAILS = (5, 10, 50)
"""A query is of the tail if it is asked by fewer users than that."""


def coverage(before: View, *, after: View) -> Measures:
    """Measure which searches of the log, and which of its rare queries, can be found in a release as typed."""
    n_asked, n_askers = before.n_asked, before.n_askers
    leaves = after.n_asked[: len(n_asked)] > 0
    about = "of the searches have a query that the release holds as it was typed"
    volume = kept("coverage_volume", share(int(n_asked[leaves].sum()), int(n_asked.sum())), about=about, group=COVERAGE)
    scores, notes = [volume], []
    for n_users in TAILS:
        is_tail = (n_askers > 0) & (n_askers < n_users)
        name, about = f"coverage_tail_{n_users}", f"of the queries that fewer than {n_users} users asked leave as typed"
        if is_tail.any():
            value = share(int((leaves & is_tail).sum()), int(is_tail.sum()))
            scores.append(kept(name, value, about=about, group=COVERAGE))
        else:
            notes.append(f"coverage of the tail is left out: no query is asked by fewer than {n_users} users")
    return Measures(scores=tuple(scores), notes=tuple(notes))


def words_as_typed(terms: TermCounts) -> Measures:
    """Measure the share of word occurrences that leave as typed; what was generalised or made up does not count."""
    n_left, n = float(terms.kept.sum()), int(terms.before.sum())
    about = f"of all {n:,} words searched for are in the release as they were typed, none of them generalised"
    return Measures(scores=(kept("words_as_typed", share(n_left, n), about=about, group=COVERAGE),))


N_COUNTED = 200  # count queries, half of them of one word and half of two
_SANITY = 0.001  # share of the users below which a count is taken for that many: rare words would decide all


@njit(cache=True, nogil=True)
def expected_counts(
    asked: Rows[np.int32],
    items: Rows[np.int64],
    part: Floats,
    holders: Rows[np.int32],
    chance: Floats,
    people: Floats,
) -> Floats:
    """Return how many people are expected to have all words of each query, by what is released.

    `items` are those that may stand for each word, `part` the chance that one of them does, `holders` the candidates
    that have each item, once for each time, `chance` that of one of their people to have it, and `people` for how many
    each candidate stands.
    """
    found = np.zeros(len(asked.ptr) - 1)
    have, lack = np.empty(len(people)), np.empty(len(people))
    for query in range(len(found)):
        have[:] = people
        for i in range(asked.ptr[query], asked.ptr[query + 1]):
            word = asked.values[i]
            lack[:] = 1.0
            for j in range(items.ptr[word], items.ptr[word + 1]):
                item = items.values[j]
                for k in range(holders.ptr[item], holders.ptr[item + 1]):
                    lack[holders.values[k]] *= 1.0 - part[j] * chance[k]
            have *= 1.0 - lack
        found[query] = have.sum()
    return found


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class CountQueries:
    """Count queries on an original, and their true answers.

    - `words`: the words asked for, by number.
    - `asked`: the words of each query.
    - `answers`: how many users (transactions) have all of them.
    - `least`: the answer below which an error is no longer measured by the answer itself.
    - `unit`: what is counted, users or queries.
    """

    words: pl.Series
    asked: Rows[np.int32]
    answers: Floats
    least: float
    unit: str = "users"

    @classmethod
    def of(cls, histories: Histories, *, vocabulary: pl.Series, seed: int, unit: str = "users") -> Self | None:
        """Draw queries from what users asked, frequent words more often than rare ones; None if there is no word."""
        n = len(histories.terms)
        if not n:
            return None
        rng = generator(seed)
        entry = rng.integers(0, n, N_COUNTED)
        owner = histories.entry_user[entry]
        first, length = histories.user_terms.ptr[owner], histories.user_terms.lengths[owner]
        other = first + (rng.random(N_COUNTED) * length).astype(np.int64)
        # Half of the queries have two words of one user; if both are the same word, it is a query of one.
        is_pair = (np.arange(N_COUNTED) % 2 == 1) & (other != entry)
        flat = np.concatenate([histories.terms[entry], histories.terms[other[is_pair]]])
        query = np.concatenate([np.arange(N_COUNTED), np.flatnonzero(is_pair)])
        number, code = np.unique(flat, return_inverse=True)
        order = np.argsort(query, kind="stable")
        asked = Rows.from_entries(query[order], code[order].astype(np.int32), n_rows=N_COUNTED)
        holders = histories.user_terms.transpose(histories.n_terms)
        one = Rows(np.arange(len(number) + 1), number.astype(np.int64))
        certain, people = np.ones(len(holders.values)), np.ones(histories.n_users)
        answers = expected_counts(asked, one, np.ones(len(number)), holders, certain, people)
        least = max(1.0, _SANITY * histories.n_users)
        return cls(words=vocabulary.gather(number), asked=asked, answers=answers, least=least, unit=unit)

    def measure(
        self,
        histories: Histories,
        *,
        vocabulary: pl.Series,
        ancestors: Ancestors | None,
        people: Floats,
        chance: Floats,
    ) -> Score:
        """Return the mean relative error of the answers that a release gives.

        - `histories`, `vocabulary`: the items of each candidate of the release.
        - `ancestors`: what may stand for a word, where items moved up in a taxonomy.
        - `people`: for how many people each candidate stands.
        - `chance`: of each entry of the histories, that of one of these people to have the item.
        """
        items, part = _stand_ins(self.words, vocabulary=vocabulary, ancestors=ancestors)
        times = np.ones(len(histories.terms), np.int64) if ancestors is None else histories.counts.astype(np.int64)
        entry = np.repeat(np.arange(len(histories.terms)), times)
        by_item = entry[np.argsort(histories.terms[entry], kind="stable")]
        holders = Rows.from_entries(
            histories.terms[by_item].astype(np.int64), histories.entry_user[by_item], n_rows=histories.n_terms
        )
        found = expected_counts(self.asked, items, part, holders, chance[by_item], people)
        error = float((np.abs(found - self.answers) / np.maximum(self.answers, self.least)).mean())
        about = f"mean relative error of how many {self.unit} asked for a word, or for two of them; 0 is exact"
        return Score(name="count_query_error", value=error, better="less", about=about, group="counting")


def _stand_ins(
    words: pl.Series, *, vocabulary: pl.Series, ancestors: Ancestors | None
) -> tuple[Rows[np.int64], Floats]:
    """Return the released items that may stand for each word, and the chance that such an item is this word."""
    if ancestors is None:
        place = words.to_frame("word").join(
            vocabulary.to_frame("word").with_columns(item=pl.int_range(pl.len(), dtype=pl.Int64)),
            on="word",
            how="left",
            maintain_order="left",
        )["item"]
        is_known = place.is_not_null().to_numpy()
        items = Rows.from_entries(np.flatnonzero(is_known), place.drop_nulls().to_numpy(), n_rows=len(words))
        return items, np.ones(len(items.values))
    items = ancestors.items_for(words)
    node = ancestors.node[items.values]
    is_word = (words.gather(items.row_of_entry) == vocabulary.gather(items.values)).to_numpy()
    n_leaves = np.where(node >= 0, ancestors.taxonomy.n_leaves[node], 1)
    return items, np.where(is_word, 1.0, 1.0 / np.maximum(1, n_leaves))


def counted_by_user(pair: Pair, *, seed: int) -> CountQueries | None:
    """Return count queries on the users of a log."""
    return CountQueries.of(pair.before, vocabulary=pair.tokens[0].vocabulary, seed=seed)


def count_queries(pair: Pair, *, asked: CountQueries | None, seed: int) -> Measures:
    """Measure the error of count queries; `asked` are those on the users of the original, where they are known."""
    is_log = isinstance(pair.original, QueryLog) and not pair.is_by_query
    if is_log and isinstance(pair.release.data, QueryLog | Tallies):
        asked = asked or counted_by_user(pair, seed=seed)
        histories, vocabulary, ancestors = pair.after, pair.vocabulary, pair.ancestors
    else:
        before, histories, vocabulary = _bags(pair)
        asked = CountQueries.of(
            before, vocabulary=vocabulary, seed=seed, unit="queries" if pair.is_by_query else "users"
        )
        ancestors = None
        if is_generalised(pair.release) and pair.known_taxonomy is not None:
            there = histories.support() > 0
            ancestors = Ancestors.of(vocabulary, released=there, taxonomy=pair.known_taxonomy)
    if asked is None:
        return note("count queries are left out: the log has no words")
    people, chance = np.ones(histories.n_users), np.ones(len(histories.terms))
    if isinstance(pair.release.data, Groups):
        people = pair.release.groups.frame["members"].cast(pl.Float64).to_numpy()
        chance = _chance_of_members(pair.release.groups, vocabulary=vocabulary)
    if isinstance(pair.release.data, Tallies):
        people = pair.release.tallies.frame["count"].clip(lower_bound=0).cast(pl.Float64).to_numpy()
    score = asked.measure(histories, vocabulary=vocabulary, ancestors=ancestors, people=people, chance=chance)
    return Measures(scores=(score,))


def _chance_of_members(groups: Groups, *, vocabulary: pl.Series) -> Floats:
    """Return the chance that a member has each term of a group, in the order of the group and the number of the term.

    Without the number of holders it is the same for all terms of a group, so that its size comes out.
    """
    numbers = vocabulary.to_frame("terms").with_columns(number=pl.int_range(pl.len()))
    alike = pl.col("size") / (pl.col("members") * pl.col("terms").list.len())
    known = pl.col("holders").is_not_null()
    shares = pl.when(known).then(pl.col("holders").list.eval(pl.element().cast(pl.Float64)) / pl.col("members"))
    frame = groups.frame.with_row_index("row").with_columns(
        chance=shares.otherwise(alike.repeat_by(pl.col("terms").list.len()))
    )
    entries = frame.select("row", "terms", "chance").explode("terms", "chance", empty_as_null=False)
    return entries.join(numbers, on="terms").sort("row", "number")["chance"].clip(upper_bound=1.0).to_numpy()


def _bags(pair: Pair) -> tuple[Histories, Histories, pl.Series]:
    """Return the items of each transaction or profile of the original, those of the release, and their texts."""
    frame = pair.release.data.frame
    lists = (pair.bags.frame["items"], frame["terms" if isinstance(pair.release.data, Groups) else "items"])
    codes, vocabulary = encode(pl.concat([each.explode(empty_as_null=False).rename("") for each in lists]))
    sides, start = [], 0
    for each in lists:
        owner = np.repeat(np.arange(len(each)), each.list.len().to_numpy())
        sides.append(_histories(owner, codes[start : start + len(owner)], n_users=len(each), n_terms=len(vocabulary)))
        start += len(owner)
    return sides[0], sides[1], vocabulary


def _histories(owner: Int64s, codes: Int32s, *, n_users: int, n_terms: int) -> Histories:
    pairs, counts = np.unique(owner * max(1, n_terms) + codes, return_counts=True)
    terms = Rows.from_entries(pairs // max(1, n_terms), (pairs % max(1, n_terms)).astype(np.int32), n_rows=n_users)
    return Histories(user_terms=terms, counts=counts.astype(np.int32), n_terms=n_terms)
