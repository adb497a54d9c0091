"""An original and a release of it side by side: one numbering of terms and queries, and who is who."""

from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from typing import Self

import numpy as np
import polars as pl

from queryveil.data import Groups, Int8s, Int32s, Int64s, Profiles, QueryLog, Tallies, Transactions
from queryveil.data.rows import Rows
from queryveil.errors import BadInput
from queryveil.guarantees import DifferentialPrivacy, KmAnonymity, NoPromise
from queryveil.pairing.ancestors import Ancestors, is_generalised
from queryveil.pairing.identity import Identity, identify
from queryveil.release import (
    ColumnReport,
    Counts,
    Ids,
    Manifest,
    Release,
    TimeDetail,
    as_made_from,
    pseudonyms_of_window_ids,
    window_numbers,
)
from queryveil.text.classifier import Classifier
from queryveil.text.histories import Histories, collect
from queryveil.text.taxonomy import Taxonomy
from queryveil.text.tokens import Tokens, encode, tokenize

Original = QueryLog | Transactions | Profiles
"""What a release may have been made from."""


def _rows(log: QueryLog, *, tokens: Tokens, user: Int32s) -> pl.DataFrame:
    """Return the `user` and `query` of each row as numbers, -1 for a query without a term, and its `time` and `url`.

    A column that is empty, as dropped ones are in AOL's format, is left out.
    """
    is_empty = (tokens.queries == "").to_numpy()
    query = np.where(is_empty[tokens.row_query], -1, tokens.row_query).astype(np.int32)
    others = [log.frame[name] for name in ("time", "url") if name in log.columns]
    filled = [column for column in others if not len(column) or column.null_count() < len(column)]
    return pl.DataFrame({"user": user, "query": query}).with_columns(filled)


def share_numbers(one: Tokens, other: Tokens) -> tuple[Tokens, Tokens]:
    """Return both with the same queries and terms: those of `one` keep their numbers, new ones of `other` follow.

    >>> from queryveil.text.tokens import tokenize
    >>> one, other = share_numbers(tokenize(pl.Series(["b a"])), tokenize(pl.Series(["c a", "b a"])))
    >>> other.row_query.tolist(), other.vocabulary.to_list(), other.terms.tolist()
    ([1, 0], ['b', 'a', 'c'], [0, 1, 2, 1])
    """
    if one is other:
        return one, one
    query, queries = encode(pl.concat([one.queries.rename(""), other.queries.rename("")]))
    term, vocabulary = encode(pl.concat([one.vocabulary.rename(""), other.vocabulary.rename("")]))
    query, term = query[len(one.queries) :], term[len(one.vocabulary) :]
    new = other.query_terms.take(np.flatnonzero(query >= len(one.queries)))
    query_terms = Rows(
        np.concatenate([one.query_terms.ptr, one.query_terms.ptr[-1] + new.ptr[1:]]),
        np.concatenate([one.terms, term[new.values]]),
    )
    shared = replace(one, queries=queries, query_terms=query_terms, vocabulary=vocabulary)
    return shared, replace(shared, row_query=query[other.row_query] if len(query) else other.row_query)


def released_texts(release: Release) -> tuple[Int32s, pl.Series, pl.Series]:
    """Return the candidate of each released row, the candidates, and the rows' texts."""
    data = release.data
    if isinstance(data, QueryLog):
        return *encode(data.frame["user"]), data.frame["query"]
    places = np.arange(data.frame.height, dtype=np.int32)
    candidates = pl.Series(places).cast(pl.String)
    if isinstance(data, Tallies):
        return places, candidates, data.frame["query"]
    lists = data.frame["terms"] if isinstance(data, Groups) else data.frame["items"]
    # An item may have blanks inside, which would split it.
    return places, candidates, lists.list.eval(pl.element().str.replace_all(r"\s+", "_")).list.join(" ")


@dataclass(frozen=True, repr=False, eq=False)
class Pair:
    """An original and a release of it, as attackers and measures look at them.

    Where rows of the release were made of clicks, the original has a row for each click, too. Everything is computed
    once, on first use. The terms of both sides have one `vocabulary`. A candidate is a user of a
    released log, or else a transaction, a group or a tallied query.

    - `original`: what the release was made from. Attackers need a log.
    - `given`: the same as it was given, with its clicks among the events.
    - `release`: the release.
    - `key`: the key of keyed ids or of hashed terms, if there are any.
    - `taxonomy`: the taxonomy that items moved up in, if that is not WordNet.

    >>> from queryveil.testing import tiny_log
    >>> Pair.pseudonymised(tiny_log()).identity
    Identity(n_candidates=4, exact=True)
    """

    original: Original
    _: KW_ONLY
    release: Release
    key: bytes | None = None
    taxonomy: Taxonomy | None = None
    given: Original = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "given", self.original)
        if isinstance(self.original, QueryLog):
            object.__setattr__(self, "original", as_made_from(self.original, self.release.manifest))

    @classmethod
    def pseudonymised(cls, log: QueryLog) -> Self:
        """Return a log paired with itself, with nothing but the ids changed."""
        return cls(log, release=pseudonymised(log))

    @cached_property
    def baseline(self) -> "Pair":
        """The original paired with its pseudonymised self, which shares its tokens with this pair."""
        pair = Pair.pseudonymised(self.log)
        pair.__dict__.update(original_tokens=self.original_tokens, _user_codes=self._user_codes)
        return pair

    @property
    def log(self) -> QueryLog:
        """The original, where it is a log."""
        if not isinstance(self.original, QueryLog):
            raise BadInput("the original must be the log that the release was made from")
        return self.original

    @property
    def mismatch(self) -> str | None:
        """Why the original is not what the release was made from, by the number of its rows; None if it may be."""
        release, n_rows = self.release, self.original.n_rows
        n_before = release.manifest.counts.n_rows_before
        # A stream counts what came while it ran, which may be a part of the log; noisy counts do not tell its size.
        if isinstance(release.promise, DifferentialPrivacy) or getattr(release.promise, "remembered", None) is not None:
            return None
        made_from = f"the release says that it was made from {n_before:,} rows, and there are {n_rows:,}"
        return None if n_rows == n_before else f"{made_from}: give the log that it was made from"

    def check_original(self) -> None:
        """Raise if the original is not what the release was made from."""
        if self.mismatch is not None:
            # By another log nobody would be found, as if the release were safe.
            raise BadInput(self.mismatch)

    @cached_property
    def _user_codes(self) -> tuple[Int32s, pl.Series]:
        return encode(self.log.frame["user"])

    @property
    def user(self) -> Int32s:
        """The number of the user of each row of the original."""
        return self._user_codes[0]

    @property
    def users(self) -> pl.Series:
        """The ids of the users of the original, by number."""
        return self._user_codes[1]

    @property
    def n_users(self) -> int:
        """The number of users of the original."""
        return len(self.users)

    @cached_property
    def _released(self) -> tuple[Int32s, pl.Series, pl.Series]:
        return released_texts(self.release)

    @property
    def candidate(self) -> Int32s:
        """The number of the candidate of each row of the released log; of each row of anything else, its place."""
        return self._released[0]

    @property
    def candidates(self) -> pl.Series:
        """The ids of the candidates in a released log, by number; of anything else, their places."""
        return self._released[1]

    @property
    def n_candidates(self) -> int:
        """The number of users, transactions, groups or tallied queries of the release."""
        return len(self.candidates)

    @cached_property
    def original_tokens(self) -> Tokens:
        """The terms of the original log, in numbers of its own."""
        return tokenize(self.log.frame["query"], by_blanks=self.log.terms_are_items)

    @cached_property
    def release_tokens(self) -> Tokens:
        """The terms of the released rows, in numbers of their own."""
        if self.release.data is self.original:
            return self.original_tokens
        data, promise = self.release.data, self.release.promise
        # Items are released as they stand, phrases and nodes among them.
        has_items = not isinstance(data, QueryLog | Tallies) or (isinstance(promise, KmAnonymity) and promise.items)
        return tokenize(self._released[2], by_blanks=self.log.terms_are_items or has_items)

    @cached_property
    def tokens(self) -> tuple[Tokens, Tokens]:
        """The terms of the original and of the release, in the same numbers."""
        return share_numbers(self.original_tokens, self.release_tokens)

    @property
    def vocabulary(self) -> pl.Series:
        """The terms of both, by number."""
        return self.tokens[0].vocabulary

    @property
    def queries(self) -> pl.Series:
        """The distinct queries of both as their terms, by number."""
        return self.tokens[0].queries

    @cached_property
    def categories(self) -> Int8s:
        """The category of each of these queries, as its place in `CATEGORIES`; -1 for none."""
        return Classifier().classify(self.queries).category

    @cached_property
    def before(self) -> Histories:
        """The terms of each user of the original."""
        return collect(self.tokens[0], self.user, n_users=self.n_users)

    @cached_property
    def after(self) -> Histories:
        """The terms of each candidate of the release; the counts of a group's terms are 1."""
        return collect(self.tokens[1], self.candidate, n_users=self.n_candidates)

    @cached_property
    def holders(self) -> Rows[np.int32]:
        """The candidates that have each term, ascending."""
        return self.after.user_terms.transpose(self.after.n_terms)

    @cached_property
    def original_rows(self) -> pl.DataFrame:
        """The number of the `user` and the `query` of each row of the original log, `time` and `url` if it has them."""
        return _rows(self.log, tokens=self.tokens[0], user=self.user)

    @cached_property
    def released_rows(self) -> pl.DataFrame:
        """The same of the released log, the user being the candidate."""
        return _rows(self.release.log, tokens=self.tokens[1], user=self.candidate)

    @cached_property
    def n_asked(self) -> tuple[Int64s, Int64s]:
        """The number of rows of each query in the original log and in the released one."""
        asked = (rows["query"].to_numpy() for rows in (self.original_rows, self.released_rows))
        before, after = (np.bincount(query[query >= 0], minlength=len(self.queries)) for query in asked)
        return before, after

    @property
    def is_by_query(self) -> bool:
        """Whether a released transaction was a query, and not all queries of a user."""
        is_log = isinstance(self.original, QueryLog) and isinstance(self.release.data, Transactions)
        return is_log and self.release.manifest.parameters.get("unit") == "query"

    @cached_property
    def bags(self) -> Transactions:
        """The terms of each user or query of the original, as often as they stand there."""
        if isinstance(self.original, Transactions):
            return self.original
        if isinstance(self.original, Profiles):
            return Transactions(frame=self.original.frame.select(id="user", items="terms"))
        tokens = self.original_tokens
        lists = tokens.queries.gather(tokens.row_query).str.split(" ")
        words = self.original.frame.select(id="user", items=lists.list.filter(pl.element() != ""))
        if self.is_by_query:
            return Transactions(frame=words.select(pl.int_range(1, pl.len() + 1).cast(pl.String).alias("id"), "items"))
        joined = words.group_by("id", maintain_order=True).agg(pl.col("items").explode(empty_as_null=False))
        return Transactions(frame=joined)

    @cached_property
    def known_taxonomy(self) -> Taxonomy | None:
        """The taxonomy that is given, or WordNet if the release was made with it."""
        by_wordnet = self.taxonomy is None and self.release.manifest.parameters.get("taxonomy") == "wordnet"
        return Taxonomy.wordnet() if by_wordnet else self.taxonomy

    @cached_property
    def ancestors(self) -> Ancestors | None:
        """What may stand for a term in a release whose items moved up in a taxonomy; None in any other."""
        if not is_generalised(self.release) or (tree := self.known_taxonomy) is None:
            return None
        found = Ancestors.of(self.vocabulary, released=self.after.support() > 0, taxonomy=tree)
        if isinstance(self.release.data, Transactions) and found.n_unknown:
            raise BadInput("the release has items that the taxonomy does not know; give the one it was made with")
        return found

    @cached_property
    def generalisations(self) -> Rows[np.int64] | None:
        """The released items that may stand for each term of the vocabulary; None where terms stand for themselves."""
        return None if self.ancestors is None else self.ancestors.items_for(self.vocabulary)

    @cached_property
    def identity(self) -> Identity:
        """Which users of the original each candidate may be; raises BadInput where nobody can tell."""
        return identify(self)

    def pseudonyms(self, names: pl.Series, *, key: bytes) -> pl.Series:
        """Return the candidates under the pseudonyms of their users, where a user has several ids."""
        window, parameters, log = self.release.promise.window, self.release.manifest.parameters, self.log.frame
        if self.release.promise.changes_ids:
            # A user has at most as many mini-sessions as rows.
            each = pl.DataFrame({"user": names.gather(self.user)}).with_columns(
                window=pl.int_range(pl.len()).over("user")
            )
            return pseudonyms_of_window_ids(self.candidates, people=each, windows=(), key=key)
        if window is None:
            return self.candidates
        times = log["time"] if "time" in log.columns else pl.Series([None], dtype=pl.Datetime("us"))
        number = window_numbers(times, window=window)
        first, last = (parameters.get(f"{end}_window") for end in ("first", "last"))
        if isinstance(first, int) and isinstance(last, int):
            people = pl.DataFrame({"user": names}).with_columns(window=pl.lit(first))
            windows = set(range(first, last + 1))
        else:
            people = pl.DataFrame({"user": names.gather(self.user), "window": number})
            known = number.filter(times.is_not_null()).to_numpy()
            windows = set(range(int(known.min()), int(known.max()) + 1)) if len(known) else set[int]()
            windows |= set(number.filter(times.is_null()))
        return pseudonyms_of_window_ids(self.candidates, people=people, windows=windows, key=key)

    def __repr__(self) -> str:
        # Privacy: numbers only.
        return f"Pair(n_rows={self.original.n_rows}, method={self.release.manifest.method!r})"


def pseudonymised(log: QueryLog) -> Release:
    """Return the log as a release that promises nothing; ids stay, since no attacker reads them."""
    n_rows, n_users = log.n_rows, log.n_users
    counts = Counts(n_rows_before=n_rows, n_rows_after=n_rows, n_users_before=n_users, n_users_after=n_users)
    time = TimeDetail.KEEP if "time" in log.columns else TimeDetail.DROP
    # What a search is called in the log nobody else knows.
    kept = tuple(name for name in log.columns if name not in ("user", "query", "time", "search"))
    columns, promise = (
        ColumnReport(ids=Ids.KEEP, time=time, kept=kept),
        NoPromise(reason="only the user ids were changed"),
    )
    manifest = Manifest(
        method="pseudonymise", promise=promise, parameters={}, counts=counts, removed={}, columns=columns
    )
    return Release(data=log, manifest=manifest)
