"""Profiles as compressed rows of numbered terms, from a log or as they were given."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import polars as pl
import pyarrow as pa

from queryveil import progress
from queryveil.data import Floats, Int32s, Int64s, Profiles, QueryLog
from queryveil.errors import BadParameter
from queryveil.methods.bots import without_bots
from queryveil.text import tokenize
from queryveil.text.histories import Histories, collect
from queryveil.text.taxonomy import Taxonomy
from queryveil.text.tokens import ENGLISH, encode, normalise


class Weights(StrEnum):
    """What the weight of a term of a log is."""

    BINARY = "binary"
    COUNT = "count"
    TFIDF = "tfidf"


def parse_weights(weights: Weights | str) -> Weights:
    """Read `binary`, `count` or `tfidf`.

    >>> parse_weights("count")
    <Weights.COUNT: 'count'>
    """
    try:
        return Weights(weights)
    except ValueError:
        raise BadParameter("weights", weights, allowed="binary, count or tfidf") from None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class TermProfiles:
    """The profiles that have a term, and what was left out to get there.

    User u is `users[u]` and has the terms `terms[ptr[u]:ptr[u + 1]]` with `weights` beside them; term t reads
    `vocabulary[t]`.
    """

    users: pl.Series
    ptr: Int64s
    terms: Int32s
    weights: Floats
    vocabulary: pl.Series
    removed: dict[str, int]

    @property
    def n_users(self) -> int:
        """The number of users who have a term."""
        return len(self.users)

    @property
    def sizes(self) -> Int64s:
        """The number of terms of each user."""
        return np.diff(self.ptr)

    @property
    def entry_user(self) -> Int32s:
        """The user of each entry."""
        return np.repeat(np.arange(self.n_users, dtype=np.int32), self.sizes)

    def as_profiles(self) -> Profiles:
        """Return the same as a value that others understand."""
        starts, lists = pa.array(self.ptr), pa.LargeListArray.from_arrays
        texts = self.vocabulary.gather(self.terms).to_arrow().cast(pa.large_string())
        columns = {"terms": lists(starts, texts), "weights": lists(starts, pa.array(self.weights, pa.float64()))}
        return Profiles(frame=pl.DataFrame({"user": self.users} | {k: pl.Series(v) for k, v in columns.items()}))

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
    return _with_terms(
        users, kept.row_ptr, kept.terms, _weigh(kept, weights), vocabulary=tokens.vocabulary, removed=removed
    )


def _weigh(histories: Histories, weights: Weights) -> Floats:
    if weights is Weights.BINARY:
        return np.ones(len(histories.terms))
    counts = histories.counts.astype(np.float64)
    if weights is Weights.COUNT:
        return counts
    n_users = int((np.diff(histories.row_ptr) > 0).sum())
    # The 1 keeps a term that everybody has above 0.
    rarity = 1 + np.log(n_users / np.maximum(1, histories.support()))
    return np.asarray(counts * rarity[histories.terms], np.float64)


def _given(profiles: Profiles) -> TermProfiles:
    # Privacy: HIV and hiv would be two terms, each held by half of those who have it.
    frame = profiles.frame
    sizes = frame["terms"].list.len().to_numpy().astype(np.int64)
    written, texts = encode(frame["terms"].explode(empty_as_null=False))
    number, vocabulary = encode(normalise(texts))
    terms = number[written].astype(np.int64) if len(texts) else written.astype(np.int64)
    weights = frame["weights"].explode(empty_as_null=False).to_numpy().astype(np.float64)
    is_text = (vocabulary != "").to_numpy()[terms] if len(texts) else np.zeros(0, np.bool_)
    owner = np.repeat(np.arange(len(sizes)), sizes)
    entries, place = np.unique((owner * max(1, len(vocabulary)) + terms)[is_text], return_inverse=True)
    heaviest = np.zeros(len(entries))
    np.maximum.at(heaviest, place, weights[is_text])
    of_user, term = np.divmod(entries, max(1, len(vocabulary)))
    ptr = np.concatenate([[0], np.cumsum(np.bincount(of_user, minlength=len(sizes)))]).astype(np.int64)
    removed = {
        "bad_rows_skipped": profiles.reading.n_bad_rows_skipped,
        "terms_written_in_two_ways": len(terms) - len(entries),
    }
    return _with_terms(frame["user"], ptr, term.astype(np.int32), heaviest, vocabulary=vocabulary, removed=removed)


def _with_terms(
    users: pl.Series, ptr: Int64s, terms: Int32s, weights: Floats, *, vocabulary: pl.Series, removed: dict[str, int]
) -> TermProfiles:
    """Leave out the users who have no term, and count them."""
    sizes = np.diff(ptr)
    there = np.flatnonzero(sizes > 0)
    return TermProfiles(
        users=users.gather(there),
        ptr=np.concatenate([[0], np.cumsum(sizes[there])]).astype(np.int64),
        terms=terms,
        weights=weights,
        vocabulary=vocabulary,
        removed=removed | {"users_without_terms": len(users) - len(there)},
    )
