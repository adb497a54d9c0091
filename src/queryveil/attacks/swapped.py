"""A swapped release in numbers, and the truth about it: what attackers on swap read, and what they are judged by."""

from dataclasses import dataclass
from threading import Lock
from weakref import WeakKeyDictionary

import numpy as np
import polars as pl

from queryveil.attacks.attacker import Exposure
from queryveil.data import Int8s, Int32s, Int64s, QueryLog
from queryveil.errors import BadInput
from queryveil.pairing import Pair
from queryveil.text.classifier import CATEGORIES, Classifier
from queryveil.text.identifiers import remove_identifiers
from queryveil.text.tokens import encode, normal_form

N_POOLS = len(CATEGORIES) + 1
"""A pool for each category, and one for queries without."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Guess:
    """Rows of the release: the user of `user_row[i]` asked the query of `query_row[i]`; and the last k of each pool."""

    user_row: Int64s
    query_row: Int64s
    k_now: Int64s

    def __len__(self) -> int:
        return len(self.user_row)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class EncodedLog:
    """A released log with users, texts and pools as numbers; texts that differ in case or blanks are one.

    - `log`: the released log.
    - `user`, `text`, `category`: the number of each row's user, text and pool, the last being for texts without any.
    - `users`, `texts`: the distinct users and texts, by number.

    >>> rows = QueryLog.from_frame({"user": ["u1", "u2", "u1"], "query": ["Soccer cup", "soccer  cup", "piano song"]})
    >>> released = EncodedLog.of(rows)
    >>> released.user.tolist(), released.text.tolist(), [CATEGORIES[c] for c in released.category]
    ([0, 1, 0], [0, 0, 1], ['Sports', 'Sports', 'Arts'])
    """

    log: QueryLog
    user: Int32s
    text: Int32s
    category: Int32s
    users: pl.Series
    texts: pl.Series

    @classmethod
    def of(cls, log: QueryLog, *, classifier: Classifier | None = None, category: Int8s | None = None) -> "EncodedLog":
        """Return a log with its users, texts and pools numbered; it is classified unless `category` has the pools."""
        # Paper: the worst case is an attacker who has the same classifier.
        user, users = encode(log.frame["user"])
        text, texts = encode(normal_form(log.frame["query"]))
        if category is None:
            found = (classifier or Classifier()).classify(texts).category
            by_text = np.where(found < 0, N_POOLS - 1, found).astype(np.int32)
        else:
            # Backwards, so that the first row of a text decides.
            by_text = np.zeros(len(texts), np.int32)
            by_text[text[::-1]] = category[::-1]
        return cls(log=log, user=user, text=text, category=by_text[text], users=users, texts=texts)

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(self.user)

    @property
    def pair(self) -> Int32s:
        """One number for each row's user and category."""
        return self.user * np.int32(N_POOLS) + self.category

    def time_order(self) -> Int64s:
        """Return the rows in order of time, those of the same time in the order they have; those without come last."""
        if "time" not in self.log.columns:
            raise BadInput("the release has no times to sort by; attack it in the order it has")
        rows = self.log.frame.select("time").with_row_index("row")
        return rows.sort("time", "row", nulls_last=True)["row"].cast(pl.Int64).to_numpy()

    def log_of(self, guess: Guess) -> QueryLog:
        """Return a guess as a log."""
        users, queries = self.log.frame["user"][guess.user_row], self.log.frame["query"][guess.query_row]
        return QueryLog(frame=pl.DataFrame({"user": users, "query": queries}))

    def __repr__(self) -> str:
        # Privacy: users and texts stay out of it.
        return f"EncodedLog(n_rows={self.n_rows}, n_users={len(self.users)})"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Truth:
    """The rows of the original, in the numbers of a released log.

    - `released`: the released log.
    - `user`, `text`: the number of each row's user and text, if a query is left once identifiers are gone; those that
      the release lacks have further numbers.
    - `pairs`, `counts`: the distinct pairs of a user and a text that the release both has, and the rows of each.
    """

    released: EncodedLog
    user: Int32s
    text: Int32s
    pairs: Int64s
    counts: Int64s

    @classmethod
    def of(cls, original: QueryLog, *, released: EncodedLog, cleaned: bool = False) -> "Truth":
        """Return the truth about a release by ids of the original, which loses identifiers unless it is `cleaned`."""
        queries = original.frame["query"]
        texts = normal_form(queries if cleaned else remove_identifiers(queries).queries)
        rows = pl.DataFrame({"user": original.frame["user"], "text": texts}).filter(pl.col("text") != "")
        user, text = _codes(rows["user"], known=released.users), _codes(rows["text"], known=released.texts)
        is_released = (user < len(released.users)) & (text < len(released.texts))
        pairs, counts = np.unique(_pair(user[is_released], text[is_released], released=released), return_counts=True)
        return cls(released=released, user=user, text=text, pairs=pairs, counts=counts)

    @property
    def n_targets(self) -> int:
        """The number of rows with a query once identifiers are gone."""
        return len(self.user)

    @property
    def category_of_text(self) -> Int64s:
        """The pool of each released text."""
        of_text = np.zeros(len(self.released.texts), np.int64)
        of_text[self.released.text] = self.released.category
        return of_text

    def hits_by_user(self) -> Int64s:
        """Return how many rows of each category are hit if all of them are taken for one user's, for each user."""
        released = self.released
        user, text = np.divmod(self.pairs, max(1, len(released.texts)))
        n_hit = np.minimum(self.counts, np.bincount(released.text, minlength=len(released.texts))[text])
        place = user * N_POOLS + self.category_of_text[text]
        hits = np.bincount(place, weights=n_hit, minlength=len(released.users) * N_POOLS)
        return hits.astype(np.int64).reshape(-1, N_POOLS)

    @property
    def n_by_chance(self) -> int:
        """How many rows the best blind guess hits: in each category the same user for every query, the best one."""
        return int(self.hits_by_user().max(axis=0, initial=0).sum())

    def n_hit(self, guess: Guess | None = None) -> int:
        """Return the number of rows of a guess, or of the release as it is, that the original has too.

        A row counts as often as both have it: the same user with the same query, in any case and with any blanks.
        """
        # Paper: section 3.3.3, identical logs appearing in the two input streams.
        user, text = self.released.user, self.released.text
        if guess is not None:
            user, text = user[guess.user_row], text[guess.query_row]
        pairs, counts = np.unique(_pair(user, text, released=self.released), return_counts=True)
        _, ours, theirs = np.intersect1d(self.pairs, pairs, assume_unique=True, return_indices=True)
        return int(np.minimum(self.counts[ours], counts[theirs]).sum())

    def exposure(self, attacker: str, *, knows: str, guess: Guess | None = None) -> Exposure:
        """Return how many rows of a guess are true, beside the best blind guess; None is the release as it is."""
        n, n_found, n_by_chance = self.n_targets, self.n_hit(guess), self.n_by_chance
        return Exposure(
            attacker=attacker, knows=knows, what="rows", n_targets=n, n_found=n_found, n_by_chance=n_by_chance
        )

    def __repr__(self) -> str:
        # Privacy: numbers only.
        return f"Truth(n_targets={self.n_targets})"


def _codes(texts: pl.Series, *, known: pl.Series) -> Int32s:
    """Return the place of each text among the known ones; others get numbers from there on."""
    codes, _ = encode(pl.concat([known.rename(""), texts.rename("")]))
    return codes[len(known) :]


def _pair(user: Int32s, text: Int32s, *, released: EncodedLog) -> Int64s:
    return np.asarray(user.astype(np.int64) * len(released.texts) + text, np.int64)


_TRUTHS: WeakKeyDictionary[Pair, Truth] = WeakKeyDictionary()
_TRUTHS_LOCK = Lock()


def truth_of(pair: Pair) -> Truth:
    """Return the truth about a swapped release, computed once for all who attack the pair."""
    with _TRUTHS_LOCK:
        if pair not in _TRUTHS:
            released = pair.release.log.frame
            user = pair.identity.sole_user()[pair.candidate]
            # Users whom the original lacks keep their own ids, so that their rows are nobody's.
            ids = pair.users.gather(np.maximum(0, user)).zip_with(pl.Series(user >= 0), released["user"])
            encoded = EncodedLog.of(pair.release.log.with_frame(released.with_columns(user=ids)))
            _TRUTHS[pair] = Truth.of(pair.log, released=encoded)
        return _TRUTHS[pair]


def most_active_rows(pair: Pair) -> Int64s:
    """Return a row of the id that has most rows of each category, the first one."""
    category, candidate = truth_of(pair).released.category, pair.candidate
    if not len(candidate):
        return np.zeros(N_POOLS, np.int64)
    n_rows = np.bincount(candidate * np.int64(N_POOLS) + category, minlength=pair.n_candidates * N_POOLS)
    row_of = np.zeros(pair.n_candidates, np.int64)
    row_of[candidate[::-1]] = np.arange(len(candidate))[::-1]
    return np.asarray(row_of[n_rows.reshape(-1, N_POOLS).argmax(axis=0)], np.int64)
