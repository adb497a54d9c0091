"""Profiles as compressed rows of numbered terms, from a log or as they were given."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from queryveil import progress
from queryveil.data import Floats, Int32s, Int64s, Profiles, QueryLog
from queryveil.data.rows import Rows
from queryveil.methods.bots import without_bots
from queryveil.methods.settings import Weights
from queryveil.text import tokenize
from queryveil.text.histories import Histories, collect
from queryveil.text.taxonomy import Taxonomy
from queryveil.text.tokens import ENGLISH, encode, encode_normalised


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class TermProfiles:
    """The profiles that have a term, and what was left out to get there.

    - users: the ids of the users
    - user_terms: the terms of each user
    - weights: the weight of each of them, beside `user_terms.values`
    - vocabulary: the texts of the terms
    - removed: how much was left out, by reason
    """

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

    def __repr__(self) -> str:
        return f"TermProfiles(n_users={self.n_users}, n_terms={len(self.vocabulary)}, n_entries={len(self.terms)})"


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
    frame = profiles.frame
    codes, vocabulary = encode_normalised(frame["terms"].explode(empty_as_null=False))
    terms = codes.astype(np.int64)
    weights = frame["weights"].explode(empty_as_null=False).to_numpy().astype(np.float64)
    is_text = (vocabulary != "").to_numpy()[terms] if len(vocabulary) else np.zeros(0, np.bool_)
    owner = np.repeat(np.arange(frame.height), frame["terms"].list.len().to_numpy())
    entries, place = np.unique((owner * max(1, len(vocabulary)) + terms)[is_text], return_inverse=True)
    heaviest = np.zeros(len(entries))
    np.maximum.at(heaviest, place, weights[is_text])
    of_user, term = np.divmod(entries, max(1, len(vocabulary)))
    user_terms = Rows.from_entries(of_user, term.astype(np.int32), n_rows=frame.height)
    removed = {
        "bad_rows_skipped": profiles.reading.n_bad_rows_skipped,
        "terms_written_in_two_ways": len(terms) - len(entries),
    }
    return _with_terms(frame["user"], user_terms, heaviest, vocabulary=vocabulary, removed=removed)


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
