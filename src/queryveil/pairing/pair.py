"""An original and a release of it side by side: one numbering of terms and queries, and who is who."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import cached_property

import numpy as np
import polars as pl

from queryveil.data import Int32s, QueryLog, Tallies, Transactions
from queryveil.data.rows import Rows
from queryveil.errors import BadInput
from queryveil.guarantees import DifferentialPrivacy, KmAnonymity, NoPromise
from queryveil.pairing._identify import identify
from queryveil.pairing._rows import LogRows, Original, bags_of, released_rows, share_numbers
from queryveil.pairing.ancestors import Ancestors, is_generalised
from queryveil.pairing.identity import Identity
from queryveil.release import ColumnReport, Counts, Ids, Manifest, Release, TimeDetail
from queryveil.text.histories import Histories, collect
from queryveil.text.taxonomy import Taxonomy
from queryveil.text.tokens import Tokens, encode, tokenize


@dataclass(frozen=True, repr=False, eq=False)
class Pair:
    """An original and a release of it, as attackers and measures look at them.

    Everything is worked out on first use and cached, so that one pair serves all of them. The terms of both sides have
    one `vocabulary`. A candidate is a user of a released log, or else a transaction, a group or a tallied query.

    Parameters
    ----------
    original
        What the release was made from. Attackers need a log.
    release
        The release.
    key
        The key of keyed ids or of hashed terms, if there are any.
    taxonomy
        The taxonomy that items moved up in, if that is not WordNet.

    Examples
    --------
    >>> from queryveil.testing import tiny_log
    >>> Pair.pseudonymised(tiny_log()).identity
    Identity(n_candidates=4, exact=True)
    """

    original: Original
    _: KW_ONLY
    release: Release
    key: bytes | None = None
    taxonomy: Taxonomy | None = None

    @classmethod
    def pseudonymised(cls, log: QueryLog) -> Pair:
        """Pair a log with itself, with nothing but the ids changed: what there was before anything was done."""
        return cls(log, release=pseudonymised(log))

    @cached_property
    def baseline(self) -> Pair:
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
        if n_rows == n_before:
            return None
        return (
            f"the release says that it was made from {n_before:,} rows, and there are {n_rows:,}: "
            f"give the log that it was made from"
        )

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
        return released_rows(self.release)

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
    def before(self) -> Histories:
        """The terms of each user of the original."""
        return collect(self.tokens[0], self.user, n_users=self.n_users)

    @cached_property
    def after(self) -> Histories:
        """The terms of each candidate of the release; the counts of a group's terms are 1."""
        return collect(self.tokens[1], self.candidate, n_users=self.n_candidates)

    @cached_property
    def original_rows(self) -> LogRows:
        """The rows of the original log."""
        return LogRows.of(self.log, tokens=self.tokens[0], user=self.user)

    @cached_property
    def released_rows(self) -> LogRows:
        """The rows of the released log."""
        return LogRows.of(self.release.log, tokens=self.tokens[1], user=self.candidate)

    @property
    def is_by_query(self) -> bool:
        """Whether a released transaction was a query, and not all queries of a user."""
        is_log = isinstance(self.original, QueryLog) and isinstance(self.release.data, Transactions)
        return is_log and self.release.manifest.parameters.get("unit") == "query"

    @cached_property
    def bags(self) -> Transactions:
        """The terms of each user or query of the original, as often as they stand there."""
        tokens = self.original_tokens if isinstance(self.original, QueryLog) else None
        return bags_of(self.original, tokens=tokens, by_query=self.is_by_query)

    @cached_property
    def known_taxonomy(self) -> Taxonomy | None:
        """The taxonomy that is given, or WordNet if the release was made with it."""
        by_wordnet = self.taxonomy is None and self.release.manifest.parameters.get("taxonomy") == "wordnet"
        return Taxonomy.wordnet() if by_wordnet else self.taxonomy

    @cached_property
    def ancestors(self) -> Ancestors | None:
        """What may stand for a term in a release whose items moved up in a taxonomy; None in any other."""
        tree = self.known_taxonomy if is_generalised(self.release) else None
        if tree is None:
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

    def __repr__(self) -> str:
        # Privacy: numbers only.
        return f"Pair(n_rows={self.original.n_rows}, method={self.release.manifest.method!r})"


def pseudonymised(log: QueryLog) -> Release:
    """Return the log as a release that promises nothing; ids stay, since no attacker reads them."""
    counts = Counts(
        n_rows_before=log.n_rows, n_rows_after=log.n_rows, n_users_before=log.n_users, n_users_after=log.n_users
    )
    time = TimeDetail.KEEP if "time" in log.columns else TimeDetail.DROP
    kept = tuple(name for name in log.columns if name not in ("user", "query", "time"))
    return Release(
        data=log,
        manifest=Manifest(
            method="pseudonymise",
            promise=NoPromise(reason="only the user ids were changed"),
            parameters={},
            counts=counts,
            removed={},
            columns=ColumnReport(ids=Ids.KEEP, time=time, kept=kept),
        ),
    )
